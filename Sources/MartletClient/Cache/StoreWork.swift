import MartletCache
import MartletTransport
import Synchronization

/// Work on the store on behalf of a response. The response waits for it, so that whoever asks next finds what was stored;
/// but not while another process keeps the folder locked: then the work goes on alone.
final class StoreWork<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var waiter: OneShot<Void>?
    }

    private let store: ResponseStore
    private let loop: EventLoop
    /// Guards the above: the worker and the one task that waits.
    private let state = Mutex(State())

    init(in store: ResponseStore, on loop: EventLoop) {
        self.store = store
        self.loop = loop
    }

    /// Runs a closure that blocks on files on a worker.
    /// - Returns: What it returns; `nil` where the folder is held up. The closure still runs to its end.
    static func run(
        in store: ResponseStore, on loop: EventLoop, _ body: @escaping @Sendable () -> Value
    ) async -> Value? {
        let work = StoreWork(in: store, on: loop)
        BlockingWorkers.shared.submit { work.finish(body()) }
        return await work.value
    }

    /// Notes what came of it.
    func finish(_ value: Value) {
        let waiter = state.withLock { state in
            state.value = value
            return state.waiter.take()
        }
        waiter?.fulfil(())
    }

    /// The result; `nil` where the folder is held up.
    var value: Value? {
        get async {
            while true {
                let waiter = OneShot<Void>()
                let value = state.withLock { state in
                    if state.value == nil { state.waiter = waiter }
                    return state.value
                }
                if let value { return value }
                let deadline = MonotonicTime.now().advanced(by: .milliseconds(20))
                if case .timedOut = await waiter.wait(until: deadline, on: loop), store.isHeldUp {
                    return nil
                }
            }
        }
    }
}
