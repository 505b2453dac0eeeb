import MartletConnections
package import MartletTransport
import Synchronization

/// The handle on a running call: what cancels it, pauses it and tells its progress, whatever it is doing just now.
package final class TransferControl: TransferGate {
    /// What a cancel has to interrupt.
    enum Activity: Sendable {
        case none
        case waiting(ConnectionPool.Ticket)
        case exchanging(Exchange)
        case pausing(OneShot<Void>)
    }

    private struct State {
        var isCancelled = false
        var isPaused = false
        var activity = Activity.none
        var waiters: [UInt64: OneShot<Void>] = [:]
        var lastWaiter: UInt64 = 0
    }

    /// Guards the above: the call's tasks, and whoever cancels or pauses.
    private let state = Mutex(State())
    /// What has gone up; `nil` where nobody can ask.
    let upload: ProgressState?
    /// What has come down; likewise.
    let download: ProgressState?
    /// Who watches its requests; nobody, mostly.
    let observer: CallObserver?

    /// The control of a call that has not begun.
    /// - Parameters:
    ///   - tellsProgress: Whether anybody can ask how far it has come; most calls are awaited and no more.
    ///   - observer: Who watches the call's requests.
    package init(tellsProgress: Bool = true, observer: CallObserver? = nil) {
        self.observer = observer
        upload = tellsProgress ? ProgressState() : nil
        download = tellsProgress ? ProgressState() : nil
    }

    /// Whether somebody outside of the call holds it, and so may pause the call.
    var isExposed: Bool { upload != nil }

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
        let (activity, waiters) = state.withLock { state -> (Activity, [OneShot<Void>]) in
            state.isCancelled = true
            return (state.activity, Array(state.waiters.values))
        }
        TransferControl.interrupt(activity)
        for waiter in waiters { waiter.fulfil(()) }
    }

    private static func interrupt(_ activity: Activity) {
        switch activity {
        case .none: break
        case .waiting(let ticket): ticket.cancel()
        case .exchanging(let exchange): exchange.cancel()
        case .pausing(let pause): pause.interrupt()
        }
    }

    // MARK: Pausing

    /// Stops reading and writing at the next buffer.
    package func pause() {
        state.withLock { $0.isPaused = true }
    }

    /// Goes on.
    package func resume() {
        let (activity, waiters) = state.withLock { state -> (Activity, [OneShot<Void>]) in
            state.isPaused = false
            return (state.activity, Array(state.waiters.values))
        }
        if case .exchanging(let exchange) = activity { exchange.transferResumed() }
        for waiter in waiters { waiter.fulfil(()) }
    }

    package var isPaused: Bool {
        state.withLock { $0.isPaused }
    }

    package func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async {
        while !Task.isCancelled, MonotonicTime.now() < deadline {
            let waiter = OneShot<Void>()
            let number = state.withLock { state -> UInt64? in
                guard state.isPaused, !state.isCancelled else { return nil }
                state.lastWaiter += 1
                state.waiters[state.lastWaiter] = waiter
                return state.lastWaiter
            }
            guard let number else { return }
            // A writer is stopped by cancelling its task; nothing else would call it out of a pause that never ends.
            _ = await withTaskCancellationHandler {
                await waiter.wait(until: deadline, on: loop)
            } onCancel: {
                waiter.interrupt()
            }
            _ = state.withLock { $0.waiters.removeValue(forKey: number) }
        }
    }
}
