import Logging
import Synchronization

/// The parts that a session and its views share: event loop, connection pool, running calls, and their shutdown.
///
/// An actor, because the shutdown has an order: new calls are rejected, running calls end or are cancelled, connections
/// are closed, and the delegate is notified. Calls do not enter the actor; they use parts with locks of their own.
package actor SessionCore {
    package nonisolated let pool: ConnectionPool
    package nonisolated let loop: EventLoop
    /// The limits on the transfer rate of bodies.
    package nonisolated let bandwidth: BandwidthLimiter
    /// The minimum times between requests to one origin.
    package nonisolated let pacer: RequestPacer
    /// The number of retries that calls may still make.
    nonisolated let retryBudget = RetryBudget()
    /// The known challenges and credentials of servers.
    nonisolated let authentication = AuthenticationCache()
    /// The rule that decides whether a request that runs alone polls its socket instead of suspending.
    nonisolated let briefWait = AdaptiveSpinWait()
    package nonisolated let calls = CallRegistry()
    nonisolated let events = EventBroadcaster<SessionEvent>()

    private enum Phase: Comparable {
        case open
        /// No call can start. Running calls may end.
        case finishing
        /// No call can start. Running calls were cancelled.
        case cancelling
        /// No call runs, and no connection is open.
        case closed
    }

    private var phase = Phase.open
    /// Whether the session cannot be invalidated, like ``HTTPSession/shared``.
    private nonisolated let isPermanent: Bool

    /// The objects that features store with the session.
    private struct Features {
        var limits: PoolLimits
        var attachments: [any SessionAttachment] = []
        /// The object that works on behalf of the session, such as an offline queue.
        weak var companion: (any AnyObject & Sendable)?

        func attachment<Attachment: SessionAttachment>(as type: Attachment.Type) -> Attachment? {
            for case let attachment as Attachment in attachments { return attachment }
            return nil
        }
    }
    /// The lock on the features. It may be acquired under the pool's lock, never the other way round.
    private let features: Mutex<Features>

    init(configuration: SessionConfiguration, loop: EventLoop, isPermanent: Bool) {
        (self.loop, self.isPermanent) = (loop, isPermanent)
        bandwidth = BandwidthLimiter(limits: configuration.bandwidth, loop: loop)
        pacer = RequestPacer(configuration.requestInterval.bounded, loop: loop)
        features = Mutex(Features(limits: configuration.pool))
        let logger = configuration.logger
        pool = ConnectionPool(limits: configuration.pool, wireLimits: configuration.wireLimits, loop: loop) { waits in
            for wait in waits {
                logger.notice(
                    "requests have waited for a connection for more than 10 s",
                    metadata: ["requests": "\(wait.requestCount)", "reason": "\(wait.shortage)"])
            }
        }
        let attachments = configuration.settings.attachments.map { $0.attachment(configuration, self) }
        guard !attachments.isEmpty else { return }
        features.withLock { $0.attachments = attachments }
        limitsChanged()
    }

    deinit {
        for attachment in features.withLock({ $0.attachments }) { attachment.end() }
        events.end()
        calls.end()
        pool.shutDown()
    }

    // MARK: The end

    /// Rejects new calls, cancels running ones on request, waits until all have ended, and closes all connections.
    ///
    /// If the program's code calls this within a running call, it does not wait for that call and for others whose code
    /// waits here. The connections are closed when these have ended, too.
    /// - Parameters:
    ///   - limit: The time after which running calls are cancelled; `nil` for no limit.
    ///   - delegate: Notified when the session is closed, unless the session was invalidated before.
    func end(cancelling: Bool, after limit: Duration? = nil, notifying delegate: (any SessionDelegate)? = nil) async {
        guard !isPermanent else { return }
        let notified = phase == .open ? delegate : nil
        phase = max(phase, cancelling ? .cancelling : .finishing)
        let running = calls.reject()
        if cancelling { for control in running { control.cancel() } }
        // Unstructured, because it may cancel the very call that calls this function.
        let timer = limit.map { limit in Task { await cancelCalls(after: limit) } }
        let own = calls.running(UserCode.enclosingCalls)
        guard own.isEmpty else {
            // Unstructured, because it waits for the call whose code runs here.
            Task {
                await close(notifying: notified)
                timer?.cancel()
            }
            return await calls.waitUntilEmpty(except: own)
        }
        await close(notifying: notified)
        timer?.cancel()
    }

    private func cancelCalls(after limit: Duration) async {
        let end = MonotonicTime.now().deadline(after: limit)
        guard case .timedOut = await OneShot<Void>().waitUnlessCancelled(until: end, on: loop) else { return }
        phase = max(phase, .cancelling)
        for control in calls.reject() { control.cancel() }
    }

    private func close(notifying delegate: (any SessionDelegate)?) async {
        await calls.waitUntilEmpty()
        if phase != .closed {
            phase = .closed
            pool.shutDown()
            events.end(with: SessionEvent(.sessionInvalidated))
            calls.end()
        }
        guard let delegate else { return }
        try? await waitUnlessCancelled { await delegate.sessionInvalidated() }
    }

    // MARK: Features

    /// Returns the attachment of a type; `make` creates it if the session has none. `make` runs outside of the lock; of
    /// two concurrent results, the first one is used.
    package nonisolated func attachment<Attachment: SessionAttachment>(_ make: () -> Attachment) -> Attachment {
        if let known = features.withLock({ $0.attachment(as: Attachment.self) }) { return known }
        let made = make()
        return features.withLock { features in
            if let known = features.attachment(as: Attachment.self) { return known }
            features.attachments.append(made)
            return made
        }
    }

    nonisolated var companion: (any AnyObject & Sendable)? {
        get { features.withLock { $0.companion } }
        set { features.withLock { $0.companion = newValue } }
    }

    /// The connection limits that are in force.
    package nonisolated var poolLimits: PoolLimits {
        let (limits, attachments) = features.withLock { ($0.limits, $0.attachments) }
        return attachments.reduce(limits) { $1.limits($0) }
    }

    /// Changes the connection limits that come from the settings.
    nonisolated func setPoolLimits(_ limits: PoolLimits) {
        features.withLock { $0.limits = limits }
        limitsChanged()
    }

    /// Applies the limits in force to the pool.
    package nonisolated func limitsChanged() {
        // Read again under the pool's lock, so that two concurrent changes both take effect.
        pool.setLimits { self.poolLimits }
    }

    // MARK: Running calls

    /// Whether the only running call should poll its socket for a moment.
    nonisolated var spinsBriefly: Bool { calls.runningCount == 1 && briefWait.isDue() }

    nonisolated var runningCount: Int { calls.runningCount }

    /// Whether the events of a call are reported to a delegate, a middleware, an instrument or a subscriber.
    nonisolated func observesCalls(_ settings: SessionSettings) -> Bool { settings.isObserved || events.isWatched }
}

/// The registry of the running work of a session and its views: calls, and the tasks that callers hold.
///
/// Calls are added and removed synchronously.
package final class CallRegistry: Sendable {
    private enum Admission {
        case open
        /// The session was invalidated.
        case rejected
        /// No call runs, and no call can start.
        case over
    }

    private struct State {
        var admission = Admission.open
        /// The running calls by their numbers. Free numbers are reused.
        var running: [Entry?] = []
        var vacant: [Int] = []
        /// The calls whose own code waits for the end of the other calls.
        var excused: [TransferControl] = []
        var tasks: [UInt64: HTTPTask] = [:]

        var runningCount: Int { running.count - vacant.count }
    }

    /// A running call, with the values for ``RunningCall``.
    private struct Entry {
        let control: TransferControl
        let call: Call
        let kind: HTTPTask.Kind
    }

    private let state = GuardedState(State())

    var runningCount: Int { state.withLock { $0.runningCount } }

    /// Registers a call.
    /// - Returns: The number of the call; `nil` if the session was invalidated.
    package func enter(_ control: TransferControl, _ call: Call, _ kind: HTTPTask.Kind) -> Int? {
        state.change { state in
            guard state.admission == .open else { return nil }
            let entry = Entry(control: control, call: call, kind: kind)
            if let number = state.vacant.popLast() {
                state.running[number] = entry
                return number
            }
            state.running.append(entry)
            return state.running.count - 1
        }
    }

    package func leave(_ number: Int) {
        state.change { state in
            state.running[number] = nil
            state.vacant.append(number)
        }
    }

    /// Rejects new calls.
    /// - Returns: The running calls.
    func reject() -> [TransferControl] {
        state.change { state in
            if state.admission == .open { state.admission = .rejected }
            return state.running.compactMap { $0?.control }
        }
    }

    var isInvalidated: Bool { state.withLock { $0.admission != .open } }

    /// Returns the given calls that are registered here.
    func running(_ calls: [TransferControl]) -> [TransferControl] {
        guard !calls.isEmpty else { return [] }
        return state.withLock { state in calls.filter { call in state.running.contains { $0?.control === call } } }
    }

    /// Waits until no call runs, after the session was invalidated.
    /// - Parameter calls: The calls whose code waits here. This and other waits with this parameter exclude them.
    func waitUntilEmpty(except calls: [TransferControl] = []) async {
        guard !calls.isEmpty else { return await state.wait { $0.runningCount == 0 } }
        state.change { $0.excused += calls }
        await state.wait { state in
            state.running.allSatisfy { entry in
                guard let call = entry?.control else { return true }
                return state.excused.contains { $0 === call }
            }
        }
    }

    /// Ends the waits in ``runningCount(otherThan:)``.
    func end() { state.change { $0.admission = .over } }

    /// Waits until the number of running calls is not `seen`, and returns it; `nil` after ``end()`` or when cancelled.
    func runningCount(otherThan seen: Int?) async -> Int? {
        let count = await state.next { state -> Int?? in
            if state.runningCount != seen { return state.runningCount }
            return state.admission == .over ? .some(nil) : nil
        }
        return count ?? nil
    }

    // MARK: Tasks

    /// The running calls and the tasks that have not ended, in the order of their start.
    var all: [RunningCall] {
        let (running, tasks) = state.withLock { ($0.running.compactMap(\.self), $0.tasks) }
        let calls =
            tasks.values.map { RunningCall($0) }
            + running.filter { tasks[$0.call.number] == nil }.map { RunningCall($0.control, $0.call, $0.kind) }
        return calls.sorted { ($0.start, $0.id) < ($1.start, $1.id) }
    }

    func add(_ task: HTTPTask) { state.withLock { $0.tasks[task.id] = task } }

    /// Removes a task that has ended. The task is released outside of the lock.
    func remove(task id: UInt64) { _ = state.withLock { $0.tasks.removeValue(forKey: id) } }
}

/// A weak reference to a session and its views, which can invalidate them.
package struct WeakSession: Sendable {
    private weak var core: SessionCore?

    package init(_ session: HTTPSession) { core = session.core }

    /// Whether the session still exists.
    package var isAlive: Bool { core != nil }

    /// Ends the session as ``HTTPSession/invalidateAndCancel()`` does. Delegates are not notified.
    package func invalidateAndCancel() async { await core?.end(cancelling: true) }
}
