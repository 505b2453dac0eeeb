package import MartletConnections
import MartletTransport
import MartletWire
import Synchronization

/// What a session and the views of it share: the loop, the pool, the tasks that run.
package final class SessionCore: Sendable {
    private struct Registry {
        var isInvalidated = false
        /// By the number of their calls; vacant places are used again.
        var running: [TransferControl?] = []
        var vacant: [Int] = []
        var waiters: [Waiter<Void>] = []

        var runningCount: Int { running.count - vacant.count }
    }

    /// The connections.
    package let pool: ConnectionPool
    let loop: EventLoop
    /// What servers asked for, so that later calls answer unasked.
    let authenticationMemory = AuthenticationMemory()
    /// How many repetitions calls may still have.
    let retryBudget = RetryBudget()
    /// When a request that runs alone waits awake.
    let briefWait = BriefWait()
    /// Guards which calls run: each call's beginning and end, and invalidation.
    private let registry = Mutex(Registry())

    init(configuration: SessionConfiguration, loop: EventLoop) {
        self.loop = loop
        pool = ConnectionPool(limits: configuration.pool, wireLimits: configuration.wireLimits, loop: loop)
    }

    deinit {
        pool.shutDown()
    }

    // MARK: Who runs

    /// Notes a call, unless the session was invalidated.
    func enter(_ control: TransferControl) -> Int? {
        registry.withLock { registry in
            guard !registry.isInvalidated else { return nil }
            if let number = registry.vacant.popLast() {
                registry.running[number] = control
                return number
            }
            registry.running.append(control)
            return registry.running.count - 1
        }
    }

    /// Notes the end of a call.
    func leave(_ number: Int) {
        let waiters = registry.withLock { registry -> [Waiter<Void>]? in
            registry.running[number] = nil
            registry.vacant.append(number)
            guard registry.isInvalidated, registry.runningCount == 0 else { return nil }
            defer { registry.waiters = [] }
            return registry.waiters
        }
        guard let waiters else { return }
        for waiter in waiters { waiter.resume(returning: ()) }
    }

    /// Whether one call runs, and it is one to wait awake for.
    var waitsAwake: Bool {
        registry.withLock { $0.runningCount == 1 } && briefWait.isDue()
    }

    /// How many calls run.
    var runningCount: Int {
        registry.withLock { $0.runningCount }
    }

    /// Refuses further calls; cancels those that run, if asked to; returns when all have ended and nothing is open.
    func invalidate(cancelling: Bool) async {
        let running = registry.withLock { registry in
            registry.isInvalidated = true
            return cancelling ? registry.running.compactMap(\.self) : []
        }
        for control in running { control.cancel() }
        await suspend { (waiter: Waiter<Void>) in
            let isOver = registry.withLock { registry in
                if registry.runningCount == 0 { return true }
                registry.waiters.append(waiter)
                return false
            }
            if isOver { waiter.resume(returning: ()) }
        }
        pool.shutDown()
    }
}
