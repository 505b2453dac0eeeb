import Logging
package import MartletConnections
package import MartletTransport
import MartletWire
import Synchronization

/// What a session and the views of it share: the loop, the pool, the tasks that run.
package final class SessionCore: Sendable {
    /// The connections.
    package let pool: ConnectionPool
    package let loop: EventLoop
    /// How fast bodies may go.
    package let bandwidth: BandwidthGovernor
    /// How many repetitions calls may still have.
    let retryBudget = RetryBudget()
    /// When a request that runs alone waits awake.
    let briefWait = BriefWait()
    /// Which calls run.
    package let calls = CallRegistry()
    /// The tasks that have not ended.
    let tasks = TaskList()
    /// Where what happens is told.
    let events = EventHub<SessionEvent>()
    /// What works on behalf of the session.
    let companion = SessionCompanion()

    /// What features keep with the session.
    private struct Features {
        /// The limits of connections, as the settings have them.
        var limits: PoolLimits
        var attachments: [any SessionAttachment] = []
        var states: [ObjectIdentifier: any AnyObject & Sendable] = [:]
    }
    /// Guards the above. It may be taken under the pool's lock, and never the other way round.
    private let features: Mutex<Features>

    init(configuration: SessionConfiguration, loop: EventLoop) {
        self.loop = loop
        bandwidth = BandwidthGovernor(limits: configuration.bandwidth, loop: loop)
        features = Mutex(Features(limits: configuration.pool))
        let logger = configuration.logger
        pool = ConnectionPool(limits: configuration.pool, wireLimits: configuration.wireLimits, loop: loop) {
            waits in
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

    // MARK: Features

    /// The state that a feature keeps with the session and its views: one object of each type.
    package func state<State: AnyObject & Sendable>(_ make: () -> State) -> State {
        features.withLock { features in
            let key = ObjectIdentifier(State.self)
            if let state = features.states[key] as? State { return state }
            let state = make()
            features.states[key] = state
            return state
        }
    }

    /// The attachment of a type; `make` makes one for a session that has none.
    package func attachment<Attachment: SessionAttachment>(_ make: () -> Attachment) -> Attachment {
        features.withLock { features in
            for case let attachment as Attachment in features.attachments { return attachment }
            let attachment = make()
            features.attachments.append(attachment)
            return attachment
        }
    }

    /// The limits of connections that are in force.
    package var poolLimits: PoolLimits {
        let (limits, attachments) = features.withLock { ($0.limits, $0.attachments) }
        return attachments.reduce(limits) { $1.limits($0) }
    }

    /// Changes the limits of connections, as the settings have them.
    func setPoolLimits(_ limits: PoolLimits) {
        features.withLock { $0.limits = limits }
        limitsChanged()
    }

    /// Applies the limits in force to the pool.
    package func limitsChanged() {
        // Read again under the pool's lock: two changes at once both take effect.
        pool.setLimits { self.poolLimits }
    }

    // MARK: Who runs

    /// Whether one call runs, and it is one to wait awake for.
    var waitsAwake: Bool { calls.runningCount == 1 && briefWait.isDue() }

    /// How many calls run.
    var runningCount: Int { calls.runningCount }

    /// Refuses further calls; cancels those that run, if asked to; returns when all have ended and nothing is open.
    ///
    /// Code of a call that runs does not wait for that call, nor for others whose code waits here: the session is closed when
    /// the last of these has ended.
    /// - Parameter ended: Called when the session is closed, the first time.
    func invalidate(cancelling: Bool, _ ended: @escaping @Sendable () async -> Void) async {
        let (running, isFirst) = calls.invalidate()
        if cancelling {
            for control in running { control.cancel() }
        }
        let own = calls.running(UserCode.enclosingCalls)
        guard own.isEmpty else {
            // Unstructured, because it waits for the very call that this one is made in.
            Task {
                await close()
                if isFirst { await ended() }
            }
            return await calls.waitUntilEmpty(except: own)
        }
        await close()
        if isFirst { await ended() }
    }

    private func close() async {
        await calls.waitUntilEmpty()
        pool.shutDown()
        events.end(with: SessionEvent(.sessionInvalidated))
        calls.end()
    }
}

/// Something that works on behalf of a session and is found by it, without being kept alive.
final class SessionCompanion: Sendable {
    private struct Reference: Sendable { weak var object: (any AnyObject & Sendable)? }

    /// Guards the reference: who opens it, and who looks for it.
    private let reference = Mutex(Reference())

    init() {}

    /// The one that was named last, as long as somebody keeps it.
    var object: (any AnyObject & Sendable)? {
        get { reference.withLock { $0.object } }
        set { reference.withLock { $0.object = newValue } }
    }
}

extension HTTPSession {
    /// What was named to work on behalf of this session and of its views; `nil` where nothing was, or nobody keeps it.
    package nonisolated func companion<Object: AnyObject & Sendable>(as type: Object.Type) -> Object? {
        core.companion.object as? Object
    }

    /// Names what works on behalf of this session and of its views.
    package nonisolated func setCompanion(_ object: any AnyObject & Sendable) {
        core.companion.object = object
    }
}
