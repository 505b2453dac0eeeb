package import MartletTransport
import Synchronization

// A transfer that is paused, held to a limit of bandwidth, or held up by code of the program.
extension Exchange {
    /// Whether the transfer is paused.
    package var isPaused: Bool { gate?.isPaused ?? false }

    /// Waits while the transfer is paused; the total clock goes on meanwhile.
    package func waitWhilePaused() async throws(ExchangeError) {
        if let gate, gate.isPaused {
            await gate.waitWhilePaused(until: clocks.totalDeadline, on: loop)
            let now = MonotonicTime.now()
            let isCancelled = state.withLock { state in
                if state.phase == .awaitingHead { state.headResumed = now }
                return state.isCancelled
            }
            if isCancelled { throw failure(.cancelled) }
        }
        try checkTotalTimeout()
    }

    /// A wait would check the total clock, but a reader that always finds bytes never waits.
    private func checkTotalTimeout() throws(ExchangeError) {
        let deadline = clocks.totalDeadline
        if deadline != .distantFuture, MonotonicTime.now() >= deadline { throw failure(.timedOut(.total)) }
    }

    /// Restarts the waits of a transfer that is resumed after a pause: the idle clock stood meanwhile.
    package func transferResumed() {
        guard !isFinished else { return }
        connection.stream.wakeReader()
        connection.stream.wakeWriter()
    }

    /// Whether a direction is held to a limit now.
    package func isHeldBack(_ direction: TransferDirection) -> Bool {
        pace?.governor.isActive(direction) ?? false
    }

    /// Waits until some of the body may be read; the idle clock stands meanwhile, the total clock goes on.
    ///
    /// Bytes that are granted and not read are given back by ``giveBack(_:)``.
    /// - Returns: The number of bytes that may be read now, at least 1.
    package func allowance(of wanted: Int) async throws(ExchangeError) -> Int {
        guard let pace, isHeldBack(.down) else { return wanted }
        let turn = BandwidthLimiter.Wait()
        let isCancelled = state.withLock { state in
            state.turn = turn
            return state.isCancelled
        }
        if isCancelled { throw failure(.cancelled) }
        let outcome = await pace.governor.take(
            wanted, .down, in: pace.lane, by: turn, until: clocks.totalDeadline)
        state.withLock { $0.turn = nil }
        switch outcome {
        case .value(let count): return count
        case .timedOut: throw failure(.timedOut(.total))
        case .interrupted: throw failure(.cancelled)
        }
    }

    /// Gives back bytes that were granted by ``allowance(of:)`` and not read.
    package func giveBack(_ count: Int) {
        if let pace { pace.governor.giveBack(count, .down, in: pace.lane) }
    }

    /// Notes that a closure gets the body, which may take as long as it likes.
    package func closureBegins() { if !isFinished { connection.use = .closure } }

    /// Notes that the program holds the body, which it may read at any time.
    package func holdBegins() { if !isFinished { connection.use = .held } }

    /// Keeps the connection out of its pool's limits while code of the program runs; `nil` if it has been given back.
    package func exemption() -> Exemption? { isFinished ? nil : Exemption(lease, loop: loop) }
}

/// Pauses a transfer; queried before each write and each read.
///
/// A paused transfer reads nothing, so that the peer is held by the TCP window (RFC 9293 §3.8.6).
package protocol TransferPauseGate: AnyObject, Sendable {
    /// Whether the transfer is paused now.
    var isPaused: Bool { get }

    /// Returns when the transfer is not paused, or was cancelled, or the deadline has passed, or the waiting task was
    /// cancelled.
    func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async
}
