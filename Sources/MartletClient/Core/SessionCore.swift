package import MartletConnections
import MartletTransport
import MartletWire
import Synchronization

/// What a session and the views of it share: the loop, the pool, the tasks that run.
package final class SessionCore: Sendable {
    private struct Registry {
        var isInvalidated = false
        var running: [UInt64: TransferControl] = [:]
        var lastNumber: UInt64 = 0
        var waiters: [Waiter<Void>] = []
    }

    /// The connections.
    package let pool: ConnectionPool
    let loop: EventLoop
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
    func enter(_ control: TransferControl) -> UInt64? {
        registry.withLock { registry in
            guard !registry.isInvalidated else { return nil }
            registry.lastNumber += 1
            registry.running[registry.lastNumber] = control
            return registry.lastNumber
        }
    }

    /// Notes the end of a call.
    func leave(_ number: UInt64) {
        let waiters = registry.withLock { registry -> [Waiter<Void>] in
            registry.running[number] = nil
            guard registry.isInvalidated, registry.running.isEmpty else { return [] }
            let waiters = registry.waiters
            registry.waiters = []
            return waiters
        }
        for waiter in waiters { waiter.resume(returning: ()) }
    }

    /// How many calls run.
    var runningCount: Int {
        registry.withLock { $0.running.count }
    }

    /// Refuses further calls; cancels those that run, if asked to; returns when all have ended and nothing is open.
    func invalidate(cancelling: Bool) async {
        let running = registry.withLock { registry in
            registry.isInvalidated = true
            return cancelling ? Array(registry.running.values) : []
        }
        for control in running { control.cancel() }
        await suspend { (waiter: Waiter<Void>) in
            let isOver = registry.withLock { registry in
                if registry.running.isEmpty { return true }
                registry.waiters.append(waiter)
                return false
            }
            if isOver { waiter.resume(returning: ()) }
        }
        pool.shutDown()
    }
}
