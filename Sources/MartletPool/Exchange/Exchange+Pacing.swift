package import MartletTransport
import Synchronization

// Transfers that are paused, limited in bandwidth, or waiting for user code.
extension Exchange {
    package var isPaused: Bool { gate?.isPaused ?? false }

    /// Waits while the transfer is paused. The total timeout continues to run.
    package func waitWhilePaused() async throws(ExchangeError) {
        if let gate, gate.isPaused {
            await gate.waitWhilePaused(until: timeouts.totalDeadline, on: loop)
            let now = MonotonicTime.now()
            let isCancelled = state.withLock { state in
                if state.phase == .awaitingHead { state.headResumed = now }
                return state.isCancelled
            }
            if isCancelled { throw failure(.cancelled) }
        }
        // A wait would check the total timeout, but a reader that always finds bytes never waits.
        let deadline = timeouts.totalDeadline
        if deadline != .distantFuture, MonotonicTime.now() >= deadline { throw failure(.timedOut(.total)) }
    }

    /// Restarts the waits of a transfer that is resumed after a pause, during which the idle timeout was suspended.
    package func transferResumed() {
        guard !isFinished else { return }
        connection.stream.wakeReader()
        connection.stream.wakeWriter()
    }

    package func isHeldBack(_ direction: TransferDirection) -> Bool { pace?.limiter.isActive(direction) ?? false }

    /// Waits until the bandwidth limits permit reading. During the wait only the total timeout runs. Granted bytes that
    /// are not read are returned by ``refund(_:)``.
    /// - Returns: The number of bytes that may be read now, at least 1.
    package func allowance(of wanted: Int) async throws(ExchangeError) -> Int {
        guard let pace, isHeldBack(.down) else { return wanted }
        let turn = BandwidthLimiter.Wait()
        let isCancelled = state.withLock { state in
            state.turn = turn
            return state.isCancelled
        }
        if isCancelled { throw failure(.cancelled) }
        let outcome = await pace.limiter.acquire(wanted, .down, in: pace.scope, by: turn, until: timeouts.totalDeadline)
        state.withLock { $0.turn = nil }
        switch outcome {
        case .value(let count): return count
        case .timedOut: throw failure(.timedOut(.total))
        case .interrupted: throw failure(.cancelled)
        }
    }

    /// Returns bytes that were granted by ``allowance(of:)`` and not read.
    package func refund(_ count: Int) { if let pace { pace.limiter.refund(count, .down, in: pace.scope) } }

    /// Records that a closure of the program receives the body.
    package func closureBegins() { if !isFinished { connection.use = .closure } }

    /// Records that the program holds the body, and may read it at any time.
    package func holdBegins() { if !isFinished { connection.use = .held } }

    /// Exempts the connection from its pool's limits while user code runs; `nil` if it was returned.
    package func exemption() -> Exemption? { isFinished ? nil : Exemption(lease, loop: loop) }

    /// The number of bytes sent after the head of the request: those of the body and its framing.
    package var sentBodyByteCount: UInt64 {
        state.withLock { state in
            let sent = state.timeline.sentByteCount + (state.writer?.byteCount ?? 0)
            return sent - min(sent, UInt64(state.headByteCount))
        }
    }
}

/// A gate that pauses a transfer; queried before each write and each read. A paused transfer reads nothing, so that the
/// TCP window stops the peer (RFC 9293 §3.8.6).
package protocol TransferPauseGate: AnyObject, Sendable {
    var isPaused: Bool { get }

    /// Waits until the transfer is not paused, the transfer or the task is cancelled, or the deadline passes.
    func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async
}
