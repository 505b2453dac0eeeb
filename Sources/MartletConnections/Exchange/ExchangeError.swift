package import MartletTransport
package import MartletWire

/// The failure of an exchange, or of the wait for its connection.
package struct ExchangeError: Error, Sendable {
    package enum Cause: Sendable {
        case transport(TransportError)
        /// The peer's bytes were wrong, or too few, or the request could not be written as HTTP.
        case wire(WireError)
        /// A proxy did not open a way to the server.
        case proxy(ProxyHandshakeError)
        /// The response's content coding cannot be decoded.
        case coding(any Error & CustomStringConvertible)
        case source(any Error)
        /// The body's source gave fewer or more bytes than it had announced.
        case lengthMismatch(announced: UInt64, actual: UInt64)
        case timedOut(Clock)
        case cancelled
    }

    /// The clocks that run while an exchange does.
    package enum Clock: Sendable {
        /// The wait for a free connection.
        case poolWait
        /// Opening a connection.
        case connect
        /// The wait for the final head, once the request is sent.
        case head
        /// The wait for any byte to move.
        case idle
        /// The whole call.
        case total
    }

    package enum Phase: Sendable {
        case waiting
        /// Opening one: look-up.
        case resolving
        case connecting
        /// Opening one: the way through a proxy.
        case tunneling
        /// Opening one: TLS.
        case tlsHandshake
        case sending
        case awaitingHead
        case receivingBody
    }

    package struct Details: Sendable {
        package var cause: Cause
        package var phase: Phase
        /// Whether any byte of the request may have reached the peer.
        package var wasSent: Bool
        /// The duration of the wait that a clock ended.
        package var waited: Duration?
        /// The proxy that the failure is about; `nil` if it is about the server, or none.
        package var proxy: ProxyServer?
        /// The reason why a request waited for a connection, if that is where it ended.
        package var shortage: String?
        /// The connection that was established before the failure; `nil` if there was none, or an exchange had it.
        package var reached: ReachedConnection?
        /// The heads of a proxy's responses to CONNECT, if its tunnel was established and a later step failed.
        package var tunnelHeads: [ResponseHead] = []
    }

    /// One reference, so that the frames of functions that may throw it stay small.
    private final class Box: Sendable {
        let details: Details

        init(_ details: Details) { self.details = details }
    }

    private var box: Box

    package var details: Details {
        get { box.details }
        set { box = Box(newValue) }
    }

    // No key paths: they cost much code at each use.
    package var cause: Cause { box.details.cause }
    package var phase: Phase { box.details.phase }
    package var wasSent: Bool { box.details.wasSent }
    package var waited: Duration? { box.details.waited }
    package var proxy: ProxyServer? { box.details.proxy }
    package var shortage: String? { box.details.shortage }
    package var reached: ReachedConnection? { box.details.reached }
    package var tunnelHeads: [ResponseHead] { box.details.tunnelHeads }

    package init(
        cause: Cause, phase: Phase, wasSent: Bool, waited: Duration? = nil, proxy: ProxyServer? = nil,
        shortage: String? = nil
    ) {
        box = Box(
            Details(cause: cause, phase: phase, wasSent: wasSent, waited: waited, proxy: proxy, shortage: shortage))
    }

    /// Creates the error of a connection that could not be opened.
    /// - Parameter proxy: The proxy that it was to lead to; `nil` for the server.
    package init(_ error: DialError, proxy: ProxyServer? = nil) {
        let phase: Phase =
            switch error.phase {
            case .resolving: .resolving
            case .connecting: .connecting
            case .tlsHandshake: .tlsHandshake
            }
        let cause: Cause =
            switch error.cause {
            case .timedOut: .timedOut(.connect)
            case .interrupted: .cancelled
            default: .transport(error.cause)
            }
        self.init(cause: cause, phase: phase, wasSent: false, waited: error.elapsed, proxy: proxy)
        details.reached = error.reached
    }

    /// Whether the connection ended or failed, as against the message on it: a request on a reused connection may meet
    /// that through no fault of either side (RFC 9112 §9.3.1).
    package var isConnectionLoss: Bool {
        switch self.cause {
        case .transport(.system), .transport(.closed), .transport(.addressLost), .transport(.tls): true
        case .wire(let error): error.code == .emptyResponse
        default: false
        }
    }
}
