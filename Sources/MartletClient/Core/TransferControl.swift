import MartletConnections
import MartletTransport
import Synchronization

/// The handle on a running call: what cancels it, pauses it and tells its progress, whatever it is doing just now.
package final class TransferControl: TransferGate {
    /// What a cancel has to interrupt.
    enum Activity: Sendable {
        case none
        case waiting(ConnectionPool.Ticket)
        case exchanging(Exchange)
    }

    private struct State {
        var isCancelled = false
        var isPaused = false
        var activity = Activity.none
        var waiters: [Waiter<Void>] = []
    }

    /// Guards the above: the call's tasks, and whoever cancels or pauses.
    private let state = Mutex(State())
    /// What has gone up.
    let upload = ProgressState()
    /// What has come down.
    let download = ProgressState()

    package init() {}

    /// Whether the call was cancelled.
    package var isCancelled: Bool {
        state.withLock { $0.isCancelled }
    }

    /// Notes what the call is doing, and interrupts it at once if it was cancelled before.
    func begin(_ activity: Activity) {
        let isCancelled = state.withLock { state in
            state.activity = activity
            return state.isCancelled
        }
        if isCancelled { TransferControl.interrupt(activity) }
    }

    /// Cancels the call, once and for all.
    package func cancel() {
        let (activity, waiters) = state.withLock { state -> (Activity, [Waiter<Void>]) in
            state.isCancelled = true
            let waiters = state.waiters
            state.waiters = []
            return (state.activity, waiters)
        }
        TransferControl.interrupt(activity)
        for waiter in waiters { waiter.resume(returning: ()) }
    }

    private static func interrupt(_ activity: Activity) {
        switch activity {
        case .none: break
        case .waiting(let ticket): ticket.cancel()
        case .exchanging(let exchange): exchange.cancel()
        }
    }

    // MARK: Pausing

    /// Stops reading and writing at the next buffer.
    package func pause() {
        state.withLock { $0.isPaused = true }
    }

    /// Goes on.
    package func resume() {
        let waiters = state.withLock { state -> [Waiter<Void>] in
            state.isPaused = false
            let waiters = state.waiters
            state.waiters = []
            return waiters
        }
        for waiter in waiters { waiter.resume(returning: ()) }
    }

    package var isPaused: Bool {
        state.withLock { $0.isPaused }
    }

    package func waitWhilePaused() async {
        while state.withLock({ $0.isPaused && !$0.isCancelled }) {
            await suspend { (waiter: Waiter<Void>) in
                let isLate = state.withLock { state in
                    if !state.isPaused || state.isCancelled { return true }
                    state.waiters.append(waiter)
                    return false
                }
                if isLate { waiter.resume(returning: ()) }
            }
        }
    }
}
