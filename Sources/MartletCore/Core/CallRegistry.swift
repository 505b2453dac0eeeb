import MartletTransport
package import MartletWire
import Synchronization

/// Which calls of a session run, and who waits for a change of that.
package final class CallRegistry: Sendable {
    private struct State {
        var isInvalidated = false
        /// Whether no call can come any more.
        var isOver = false
        /// By the number of their calls; vacant places are used again.
        var running: [TransferControl?] = []
        var vacant: [Int] = []
        /// Who waits for the last call's end.
        var waiters: [Waiter<Void>] = []
        /// The calls whose own code waits for the end of the others.
        var excused: [TransferControl] = []
        /// The waits of those.
        var innerWaiters: [Waiter<Void>] = []
        /// Who waits for another number of calls.
        var watchers: [UInt64: Waiter<Void>] = [:]
        var lastWatcher: UInt64 = 0

        var runningCount: Int { running.count - vacant.count }

        /// Takes the waits that are over.
        mutating func takeWaiters() -> [Waiter<Void>] {
            guard isInvalidated else { return [] }
            var taken: [Waiter<Void>] = []
            if runningCount == 0 {
                taken = waiters
                waiters = []
            }
            if !innerWaiters.isEmpty,
                running.allSatisfy({ call in call == nil || excused.contains { $0 === call } })
            {
                taken += innerWaiters
                innerWaiters = []
            }
            return taken
        }

        mutating func takeWatchers() -> [UInt64: Waiter<Void>] {
            guard !watchers.isEmpty else { return [:] }
            defer { watchers = [:] }
            return watchers
        }
    }

    /// Guards the above: each call's beginning and end, invalidation, and those who watch.
    private let state = Mutex(State())

    /// How many calls run.
    var runningCount: Int { state.withLock { $0.runningCount } }

    /// Notes a call, unless the session was invalidated.
    package func enter(_ control: TransferControl) -> Int? {
        let (number, watchers) = state.withLock { state -> (Int?, [UInt64: Waiter<Void>]) in
            guard !state.isInvalidated else { return (nil, [:]) }
            if let number = state.vacant.popLast() {
                state.running[number] = control
                return (number, state.takeWatchers())
            }
            state.running.append(control)
            return (state.running.count - 1, state.takeWatchers())
        }
        for watcher in watchers.values { watcher.resume(returning: ()) }
        return number
    }

    /// Notes the end of a call.
    package func leave(_ number: Int) {
        let (waiters, watchers) = state.withLock { state -> ([Waiter<Void>], [UInt64: Waiter<Void>]) in
            state.running[number] = nil
            state.vacant.append(number)
            return (state.takeWaiters(), state.takeWatchers())
        }
        for watcher in watchers.values { watcher.resume(returning: ()) }
        for waiter in waiters { waiter.resume(returning: ()) }
    }

    /// Refuses further calls.
    /// - Returns: Those that run, and whether this was the first time.
    func invalidate() -> (running: [TransferControl], isFirst: Bool) {
        state.withLock { state in
            defer { state.isInvalidated = true }
            return (state.running.compactMap(\.self), !state.isInvalidated)
        }
    }

    /// Whether the session was invalidated.
    var isInvalidated: Bool { state.withLock { $0.isInvalidated } }

    /// Those of some calls that run here.
    func running(_ calls: [TransferControl]) -> [TransferControl] {
        guard !calls.isEmpty else { return [] }
        return state.withLock { state in
            calls.filter { call in state.running.contains { $0 === call } }
        }
    }

    /// Waits until no call runs; after an invalidation.
    /// - Parameter calls: The calls whose code waits. Neither this wait nor another like it waits for them.
    func waitUntilEmpty(except calls: [TransferControl] = []) async {
        await suspend { (waiter: Waiter<Void>) in
            let waiters = state.withLock { state in
                if calls.isEmpty {
                    state.waiters.append(waiter)
                } else {
                    state.excused += calls
                    state.innerWaiters.append(waiter)
                }
                return state.takeWaiters()
            }
            for waiter in waiters { waiter.resume(returning: ()) }
        }
    }

    /// Ends the waits of all who watch, since no call comes any more.
    func end() {
        let watchers = state.withLock { state in
            state.isOver = true
            return state.takeWatchers()
        }
        for watcher in watchers.values { watcher.resume(returning: ()) }
    }

    /// The number of calls, once it is another one; `nil` when there is none to come, or the task is cancelled.
    func runningCount(otherThan seen: Int?) async -> Int? {
        while true {
            let (count, isOver) = state.withLock { ($0.runningCount, $0.isOver) }
            if count != seen { return count }
            if isOver || Task.isCancelled { return nil }
            let number = state.withLock { state in
                state.lastWatcher += 1
                return state.lastWatcher
            }
            await withTaskCancellationHandler {
                await suspend { (waiter: Waiter<Void>) in
                    let isLate = state.withLock { state in
                        if state.runningCount != seen || state.isOver || Task.isCancelled { return true }
                        state.watchers[number] = waiter
                        return false
                    }
                    if isLate { waiter.resume(returning: ()) }
                }
            } onCancel: {
                let waiter = state.withLock { $0.watchers.removeValue(forKey: number) }
                waiter?.resume(returning: ())
            }
        }
    }
}

/// Watches the requests of a call go by, for programs that show each of them.
///
/// Its closures are called by the call itself, one after the other, and must be quick.
package final class CallWatcher: Sendable {
    /// Told of each request's head, byte by byte and with its credentials, before it goes out.
    let sent: @Sendable ([UInt8]) -> Void
    /// Told whenever there is a connection for a request, new or kept: the heads of what a proxy answered to CONNECT, where
    /// it is new.
    let connected: @Sendable ([ResponseHead]) -> Void
    /// Told of the heads of an answer after which the same request is sent once more: a 417, or a 407.
    let repeated: @Sendable ([ResponseHead]) -> Void
    /// Told of each request that another follows, and of what answered it, without the body; nothing where it failed.
    let followed: @Sendable (HTTPHop, HTTPExchange?) -> Void

    /// A watcher.
    package init(
        sent: @escaping @Sendable ([UInt8]) -> Void,
        connected: @escaping @Sendable ([ResponseHead]) -> Void = { _ in },
        repeated: @escaping @Sendable ([ResponseHead]) -> Void = { _ in },
        followed: @escaping @Sendable (HTTPHop, HTTPExchange?) -> Void
    ) {
        self.sent = sent
        self.connected = connected
        self.repeated = repeated
        self.followed = followed
    }
}

/// The tasks of a session that have not ended.
final class TaskList: Sendable {
    /// Guards them: each task's beginning and end, and those who ask.
    private let running = Mutex<[UInt64: HTTPTask]>([:])

    /// The tasks, in the order they were made.
    var all: [HTTPTask] {
        running.withLock { $0.values.sorted { $0.id < $1.id } }
    }

    func add(_ task: HTTPTask) { running.withLock { $0[task.id] = task } }

    func remove(_ id: UInt64) {
        // Let go of behind the lock.
        _ = running.withLock { $0.removeValue(forKey: id) }
    }
}
