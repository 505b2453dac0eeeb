import MartletCore
import Synchronization

/// Stops sending requests to a host that keeps failing, and tries it again after a pause.
///
/// A circuit breaker is shared by all calls of the sessions that have it. Errors other than cancellation count as
/// failures, and so do statuses from 500 to 599.
public final class CircuitBreaker: Sendable {
    /// The error of a call that was not sent, because its host had failed too often.
    public struct OpenError: Error, Equatable {
        /// The host and port.
        public let authority: String

        /// Creates an error for a host.
        public init(authority: String) { self.authority = authority }
    }

    private struct Circuit {
        var failures = 0
        /// The time until which no request is sent.
        var opensUntil: ContinuousClock.Instant?
    }

    private let failures: Int
    private let pause: Duration
    private let now: @Sendable () -> ContinuousClock.Instant
    private let circuits = Mutex<[String: Circuit]>([:])

    /// Creates a circuit breaker.
    /// - Parameters:
    ///   - failures: The number of consecutive failures that open the circuit, 5 by default.
    ///   - pause: The time without requests after that, 30 s by default. Then one request is sent to try the host.
    ///   - now: The clock.
    public init(
        failures: Int = 5, pause: Duration = .seconds(30),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }
    ) {
        self.failures = failures
        self.pause = pause
        self.now = now
    }

    func admit(_ authority: String) throws(OpenError) {
        let isOpen = circuits.withLock { circuits in
            guard var circuit = circuits[authority], let end = circuit.opensUntil else { return false }
            let now = now()
            if now < end { return true }
            // The other calls wait for the result of this request.
            circuit.opensUntil = now + pause
            circuits[authority] = circuit
            return false
        }
        if isOpen { throw OpenError(authority: authority) }
    }

    func finished(_ authority: String, failed: Bool) {
        circuits.withLock { circuits in
            guard failed else {
                circuits[authority] = nil
                return
            }
            var circuit = circuits[authority] ?? Circuit()
            circuit.failures += 1
            if circuit.failures >= failures { circuit.opensUntil = now() + pause }
            circuits[authority] = circuit
        }
    }
}
