package import MartletTransport
import Synchronization

/// Keeps a connection out of its pool's limits while the call that holds it waits for code of the program.
///
/// That code may make calls to the same host, or wait for other calls that do. The exemption begins after a grace period,
/// so that code which returns at once does not make the pool open connections above its limits.
package final class Exemption: TimerTarget {
    /// The time after which the connection no longer counts.
    package static let grace = Duration.milliseconds(20)

    private enum State {
        case pending
        case exempt
        case ended
    }

    private let lease: Lease
    /// Guards the state: the loop's thread, and the call that ends the exemption.
    private let state = Mutex(State.pending)

    init(_ lease: Lease, loop: EventLoop) {
        self.lease = lease
        loop.schedule(self, token: 0, at: MonotonicTime.now().advanced(by: Exemption.grace))
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let begins = state.withLock { state in
            guard case .pending = state else { return false }
            state = .exempt
            return true
        }
        guard begins else { return nil }
        lease.exempt()
        // The call may have ended the exemption before the pool began it.
        if state.withLock({ $0 == .ended }) { lease.endExemption() }
        return nil
    }

    /// Ends the exemption. Only the first call counts.
    package func end() {
        let wasExempt = state.withLock { state in
            defer { state = .ended }
            if case .exempt = state { return true }
            return false
        }
        if wasExempt { lease.endExemption() }
    }
}

extension ConnectionPool {
    /// Stops counting a connection in use against the limits.
    func exempt(_ id: PoolConnectionID) {
        let work = state.withLock { state in collect(state.machine.exempt(id), &state) }
        run(work)
    }

    /// Counts a connection in use again.
    func endExemption(_ id: PoolConnectionID) {
        state.withLock { $0.machine.endExemption(id) }
    }
}
