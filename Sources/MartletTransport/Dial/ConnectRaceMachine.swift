/// Decides which addresses of a host are tried, when, and which attempt wins (RFC 8305 §5).
///
/// The machine never sees a socket or a clock; times are nanoseconds of any monotonic clock. Each event is one
/// `mutating` function that returns what has to be done (``Effects``).
///
/// The first TCP connection wins, and only on it TLS is tried. If that fails, the race goes on: first with the
/// attempts that were cancelled when it won (they never had a verdict), then with the addresses not tried yet. Each
/// attempt that was started ends by exactly one of: won, failed, cancelled.
package struct ConnectRaceMachine<Address: RaceAddress, Failure: Sendable>: Sendable {
    /// One try of one address. An address that is tried again is another attempt.
    package struct Attempt: Hashable, Sendable {
        /// The number of the attempt in the order of starting, from 0.
        package let number: Int
        /// The address to connect to.
        package let address: Address
    }

    /// An address and why it failed.
    package struct FailedAttempt: Sendable {
        /// The attempt.
        package let attempt: Attempt
        /// Why it failed.
        package let failure: Failure
    }

    /// What the race's owner has to do after an event. The parts do not depend on each other.
    package struct Effects: Sendable {
        /// An attempt to be started. Report its end with `connected` or `attemptFailed`.
        package var start: Attempt?
        /// Attempts to be cancelled and their sockets closed. Their end need not be reported.
        package var cancels: [Attempt] = []
        /// When `timerFired` has to be called, in place of any earlier such time; nothing changes if `nil`.
        package var timer: UInt64?
        /// The attempt whose connection won. Report how TLS went with `winnerSucceeded` (at once, without TLS) or
        /// `winnerFailed`.
        package var winner: Attempt?
        /// All failures in the order they happened, when the race is lost. Empty when there was no address to try.
        package var failures: [FailedAttempt]?

        /// Whether there is nothing to do.
        package var isEmpty: Bool {
            start == nil && cancels.isEmpty && timer == nil && winner == nil && failures == nil
        }
    }

    /// Where the race is.
    private enum State: Sendable {
        /// Not started. Left by `start` and `cancel`.
        case ready
        /// Attempts are running, at least one. Left when one connects, the last fails, or by `cancel`.
        case racing
        /// An attempt has connected, no other is running. Left by `winnerSucceeded`, `winnerFailed`, `cancel`.
        case proving(Attempt)
        /// The race is over; nothing is running. Holds the winner, if there is one.
        case over(Attempt?)
    }

    private var state = State.ready
    /// Addresses still to be tried, the next first.
    private var waiting: ArraySlice<Address>
    /// Attempts without a verdict, in the order of starting; at most `addressLimit`.
    private var running: [Attempt] = []
    private var failures: [FailedAttempt] = []
    private var nextNumber = 0
    private let delay: UInt64

    /// When the timer has to fire; `nil` when no address waits for it.
    package private(set) var deadline: UInt64?

    /// Creates a race that is not started yet.
    ///
    /// - Parameters:
    ///   - addresses: What the resolver returned, best first.
    ///   - memory: Addresses that failed recently; they are tried last.
    package init(
        addresses: [Address], settings: ConnectRaceSettings = ConnectRaceSettings(),
        memory: AddressMemory<Address> = AddressMemory(), now: UInt64
    ) {
        waiting =
            ConnectRacePlan.order(addresses, settings: settings) { memory.hasFailedRecently($0, now: now) }[
                ...]
        delay = settings.attemptDelayInNanoseconds
    }

    /// Whether the race is over: won, lost or cancelled.
    package var isOver: Bool { if case .over = state { true } else { false } }

    /// The one address there is to try, where the race has not started: nothing has to be decided then.
    package var onlyAddress: Address? {
        guard case .ready = state, waiting.count == 1 else { return nil }
        return waiting.first
    }

    /// Starts the race; does nothing if it was started.
    package mutating func start(now: UInt64) -> Effects {
        guard case .ready = state else { return Effects() }
        return startNext(now: now)
    }

    /// The attempt has a TCP connection.
    ///
    /// If it won, all other attempts are cancelled. One that connects although it was cancelled is to be closed.
    package mutating func connected(_ attempt: Attempt) -> Effects {
        var effects = Effects()
        guard let index = running.firstIndex(of: attempt) else {
            if !isWinner(attempt) { effects.cancels = [attempt] }
            return effects
        }
        running.remove(at: index)
        effects.winner = attempt
        effects.cancels = running
        waiting = running.map(\.address) + waiting
        running = []
        deadline = nil
        state = .proving(attempt)
        return effects
    }

    /// The attempt failed; the next one starts at once. The last failure loses the race.
    package mutating func attemptFailed(_ attempt: Attempt, _ failure: Failure, now: UInt64) -> Effects {
        guard let index = running.firstIndex(of: attempt) else { return Effects() }
        running.remove(at: index)
        failures.append(FailedAttempt(attempt: attempt, failure: failure))
        return startNext(now: now)
    }

    /// The timer fired: starts the next attempt beside those that are running. Too early, it does nothing.
    package mutating func timerFired(now: UInt64) -> Effects {
        guard case .racing = state, let deadline, deadline <= now else { return Effects() }
        return startNext(now: now)
    }

    /// The winner is ready for use. The race is over.
    package mutating func winnerSucceeded() {
        guard case .proving(let winner) = state else { return }
        state = .over(winner)
        waiting = []
    }

    /// The winner failed after all, during the TLS handshake.
    ///
    /// - Parameter isFatal: Whether other addresses could only fail likewise, or must not be tried: an invalid
    ///   certificate, a refused identity. Then the race is lost; else it goes on.
    package mutating func winnerFailed(_ failure: Failure, isFatal: Bool, now: UInt64) -> Effects {
        guard case .proving(let winner) = state else { return Effects() }
        failures.append(FailedAttempt(attempt: winner, failure: failure))
        if isFatal { waiting = [] }
        return startNext(now: now)
    }

    /// Nobody needs the connection any more: all attempts are cancelled, the winner too.
    package mutating func cancel() -> Effects {
        var effects = Effects()
        effects.cancels = running
        if case .proving(let winner) = state { effects.cancels.append(winner) }
        running = []
        waiting = []
        deadline = nil
        state = .over(nil)
        return effects
    }

    /// Starts the next attempt, if there is an address left. Without one running the race is lost.
    private mutating func startNext(now: UInt64) -> Effects {
        var effects = Effects()
        deadline = nil
        if let address = waiting.popFirst() {
            let attempt = Attempt(number: nextNumber, address: address)
            nextNumber += 1
            running.append(attempt)
            effects.start = attempt
            state = .racing
            if !waiting.isEmpty {
                let (time, isTooLate) = now.addingReportingOverflow(delay)
                deadline = isTooLate ? .max : time
                effects.timer = deadline
            }
        } else if running.isEmpty {
            state = .over(nil)
            effects.failures = failures
        }
        return effects
    }

    private func isWinner(_ attempt: Attempt) -> Bool {
        switch state {
        case .ready, .racing: false
        case .proving(let winner): winner == attempt
        case .over(let winner): winner == attempt
        }
    }
}
