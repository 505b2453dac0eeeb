import FoundationEssentials
import MartletAuthentication
import MartletCache
import MartletCaching
public import MartletCore

/// A queue of requests that are stored until a server accepts them, across network failures and ends of the process.
///
/// Each request is written to a directory before it is first sent, and removed when its final response has arrived. The
/// requests of a lane are sent one after the other, in the order of submission; lanes do not wait for each other. A
/// lane whose first request fails waits (``OfflineBackoff``), and resumes immediately when the network path returns.
///
/// The guarantees, even if the process is killed at any moment:
///
/// - A request with an `Idempotency-Key`, as methods that are not idempotent get by default, is sent at least once,
///   always with the same key. If the server honors it, it takes effect exactly once.
/// - A request whose method is idempotent is sent at least once.
/// - Any other request is sent at most once. If its effect is unknown, it stays as uncertain until it is retried or
///   dropped.
///
/// | response | result |
/// |---|---|
/// | 2xx, 304 | delivered |
/// | 401 | the credentials are refreshed once; after another 401 the lane waits |
/// | 407, 408, 421, 425, 429, 503, 507, 511; 413 with `Retry-After` | later, no sooner than `Retry-After` |
/// | 409 | with a key: later, with the same one; else dead |
/// | 500, 502, 504, other 5xx | later; uncertain if it must not be sent twice |
/// | 501, 505, other 3xx and 4xx | dead |
///
/// Redirects are followed as the session is configured, but 301 preserves the method and the body, as 307 and 308 do.
/// Success after a redirect that changed the method to GET may be a sign-in page. The request is then dead, or
/// uncertain if it must not be sent twice, unless ``OfflineQueueOptions/acceptsRedirectedResults`` is set.
///
/// An expired request becomes a dead letter. Ages are measured by a clock that is never adjusted; across a boot by the
/// time of day, unless it is before 2020 and so was never set.
///
/// Secret fields are not stored (`Authorization`, `Cookie`, `Proxy-Authorization`,
/// ``OfflineQueueOptions/secretFields``), nor are user names and passwords of URLs. The process that submits a request
/// holds them in memory; ``OfflineCredentials`` add them when a later process sends it. URLs, other fields and bodies
/// are stored as they are, for the owner of the directory alone.
///
/// Only one queue in any process can have the directory open. ``close()`` releases it, and so does the end of the
/// process. Releasing the queue stops it like ``close()``, but without waiting.
public actor OfflineQueue: CustomReflectable {
    /// The wait of a caller for the first attempt of a request.
    typealias Watch = OneShot<Result<OfflineOutcome, any Error>>

    /// A request in this process.
    struct Held {
        var summary: OfflineSummary
        /// The fields that are not stored.
        var secretFields: HTTPFields?
        /// The fields of the host that are not stored.
        var hostFields: HTTPFields?
        /// The credentials of the host, for all attempts in this process.
        var hostAuthentication: AuthenticationSettings?
        /// The user name and password of the URL, for all attempts in this process.
        var urlCredentials: Credentials?
        var firstOptions: RequestOptions?
        /// The wait of a caller for the first attempt.
        var watch: Watch?
        /// Becomes true when the request has left the queue, for callers that drop it.
        var isGone: CurrentValue<Bool>?
        /// The state of the body file when it was last read.
        var stamp: QueuedBodyVerifier.Stamp?
        var attempt: Task<ReplayDecision?, Never>?
        /// The outcome that is to be recorded.
        var settlement: Settlement?
    }

    /// The outcome of a request. It is indirect because a queue with 100,000 requests waits for as many outcomes.
    indirect enum Settlement {
        case delivered(HTTPExchange)
        case dead(OfflineDeadLetter, HTTPExchange?)
        case uncertain(OfflineDeadLetter, ReplayDecision.Uncertainty)
        case expired
        case dropped
        /// Its record was invalid and was moved, or is missing.
        case setAside
    }

    nonisolated let log = ReplayingEventBroadcaster<OfflineEvent>(weightLimit: 16 << 20) { event in
        if case .delivered(_, let answer) = event { answer.body.count } else { 0 }
    }
    nonisolated let runs = RunGroup()
    nonisolated let isClosed = CurrentValue(false)
    nonisolated let isDrained = CurrentValue(true)
    /// Becomes true when response bodies are no longer awaited.
    nonisolated let isStopping = CurrentValue(false)
    /// The session, with errors that are not mapped.
    let session: HTTPSession
    let store: OfflineStore
    let options: OfflineQueueOptions
    let secrets: SecretFields
    let credentials: CredentialRefresher?
    /// The clock of delays and expiry, which continues while the computer is suspended.
    let now: @Sendable () -> MonotonicTime
    let wallTime: @Sendable () -> Int64
    /// The boot that ``now`` counts from.
    let boot: String?
    var machine: ReplayMachine
    var held: [OfflineID: Held] = [:]
    var lastNumber: UInt64
    /// The number of requests that are stored or being submitted, and their bytes.
    var requestCount = 0
    var storedByteCount: UInt64 = 0
    /// Requests whose first attempt a caller awaits, by lane.
    var watched: [String: Set<OfflineID>] = [:]
    var timer: (time: MonotonicTime, task: Task<Void, Never>)?
    /// Follows the network path.
    var follower: Task<Void, Never>?
    var isClosing = false

    /// Opens a directory, creating it if it is missing, and starts to send its requests.
    ///
    /// - Parameters:
    ///   - directory: The directory, accessible only by its owner (0700); ``defaultDirectory`` by default.
    ///   - credentials: Add the parts of requests that are not stored. With `nil`, only those of the session are added.
    ///     The secret fields of a request, and the user of its URL, are then sent only while the process that
    ///     submitted it runs.
    /// - Throws: An ``HTTPError``: `.alreadyInProgress` if another queue has the directory, in this process
    ///   or another one; `.fileFailed` if it belongs to another user, others may write to it, it cannot be used, or it
    ///   has a request that a later version of Martlet stored: without it, the order of its lane is unknown.
    public init(
        session: HTTPSession, directory: any FilePathConvertible = OfflineQueue.defaultDirectory,
        options: OfflineQueueOptions = OfflineQueueOptions(), credentials: OfflineCredentials? = nil
    ) async throws {
        try await self.init(
            session: session, directory: directory.filePath, options: options, credentials: credentials,
            files: LinuxFileSystem())
    }

    /// Opens a directory, like ``init(session:directory:options:credentials:)``.
    /// - Parameter authorize: Adds the parts of a request that are not stored.
    public init(
        session: HTTPSession, directory: any FilePathConvertible = OfflineQueue.defaultDirectory,
        options: OfflineQueueOptions = OfflineQueueOptions(),
        authorize: @escaping @Sendable (HTTPRequest) async throws -> HTTPRequest
    ) async throws {
        try await self.init(
            session: session, directory: directory, options: options,
            credentials: OfflineCredentials(authorize: authorize))
    }

    /// Opens a directory with another file system, or another clock.
    package init(
        session: HTTPSession, directory: FilePath, options: OfflineQueueOptions = OfflineQueueOptions(),
        credentials: OfflineCredentials? = nil, files: any FileSystem,
        now: @escaping @Sendable () -> MonotonicTime = { MonotonicTime.sinceBoot() },
        wallTime: @escaping @Sendable () -> Int64 = { WallTime.now.milliseconds },
        boot: String? = BootDeadline.currentBoot
    ) async throws {
        let (store, contents) = try await OfflineStore.open(directory.string, files: files)
        // The decision depends on the original error, not on its replacement by an error mapper.
        self.session = session.configuration.errors == nil ? session : session.with { $0.errors = nil }
        (self.store, self.options) = (store, options)
        (self.now, self.wallTime, self.boot) = (now, wallTime, boot)
        self.credentials = credentials.map { CredentialRefresher($0) }
        secrets = SecretFields(options.secretFields)
        lastNumber = contents.lastNumber
        machine = ReplayMachine(
            backoff: options.backoff, lanes: options.limits.lanes, sendsRequests: options.sendsRequests)
        await restore(contents)
        session.setCompanion(self)
        if options.sendsRequests, let monitor = options.networkMonitor { follow(monitor) }
    }

    deinit {
        isStopping.finish()
        runs.cancel()
        timer?.task.cancel()
        follower?.cancel()
        for entry in held.values {
            entry.watch?.fulfill(.success(.queued(entry.summary.ticket)))
            entry.isGone?.finish()
        }
        isDrained.finish()
        log.end()
    }

    // MARK: Inspection

    /// All events in order, also of requests of earlier processes, starting with the last 256 past ones, or fewer if
    /// responses among them have more than 16 MiB. Unread events are buffered. The sequence ends with the queue.
    public nonisolated var events: EventSequence<OfflineEvent> { log.subscribe() }

    /// The stored requests in the order of submission. Responses to dead and uncertain ones are read from disk.
    public var entries: [OfflineEntry] {
        get async {
            var entries: [OfflineEntry] = []
            for id in held.keys.sorted() { if let entry = await entry(of: id) { entries.append(entry) } }
            return entries
        }
    }

    /// Returns a stored request; `nil` if it is unknown. The response to a dead or uncertain one is read from disk.
    public func entry(of id: OfflineID) async -> OfflineEntry? {
        guard let summary = held[id]?.summary else { return nil }
        var state = OfflineEntry.State.waiting
        if machine.state(of: id) == .sending { state = .sending }
        if summary.isResting, let stored = try? await store.load(id).stage, stored.isResting { state = stored }
        return OfflineEntry(
            ticket: summary.ticket, state: state, attempts: summary.attempts, submittedAt: summary.submitted,
            expiresAt: shownExpiry(of: summary), bodyByteCount: summary.bodyByteCount,
            secretFields: summary.secretFields)
    }

    /// Returns the time of expiry, by a clock that may have been changed since the submission.
    private func shownExpiry(of summary: OfflineSummary) -> Int64 {
        let wall = wallTime()
        guard !summary.isResting, summary.expires <= wall, let time = machine.expiry(of: summary.ticket.id) else {
            return summary.expires
        }
        let left = Int64(clamping: time.since(now()).attoseconds / 1_000_000_000_000_000)
        return max(summary.expires, wall.clampedSum(left))
    }

    /// The number of requests that wait to be sent, or are being sent.
    public var pendingCount: Int { machine.pendingCount }

    /// The number of dead letters and uncertain requests, including those of earlier processes.
    public var restingCount: Int { held.values.count { $0.summary.isResting } }

    /// Waits until no request waits or is being sent. Dead and uncertain requests do not count.
    /// - Throws: `CancellationError` when the task is cancelled, or the queue is closed before.
    public nonisolated var drained: Void {
        get async throws { guard await isDrained.becomesTrue() else { throw CancellationError() } }
    }

    // MARK: Commands

    /// Sends a dead or uncertain request again, in its old position, or a waiting one immediately. An expired one gets
    /// its full time to live again.
    /// - Throws: An ``HTTPError``: `.invalidRequest` if there is no such request, or it is being sent; `.fileFailed` or
    ///   `.diskFull` if its record cannot be written.
    public func retry(_ id: OfflineID) async throws {
        try checkOpen()
        guard let entry = held[id], machine.state(of: id) == .resting || machine.state(of: id) == .waiting else {
            throw unknown(id)
        }
        let lifetime = entry.summary.lifetime
        if entry.summary.isResting {
            let now = now()
            let hasExpired = machine.expiry(of: id).map { $0 <= now } ?? true
            let renewed = hasExpired ? wallTime() : nil
            let deadline = BootDeadline(now.advanced(by: .milliseconds(lifetime)), boot: boot)
            // Read and changed atomically: another caller may have dropped the request, or retried it so that it is
            // being sent.
            let byteCount = try await store.change(id) { request in
                guard request.stage.isResting else { return false }
                request.stage = .waiting
                if let renewed {
                    (request.renewed, request.expires) = (renewed, renewed.clampedSum(lifetime))
                    request.bootDeadline = deadline
                }
                return true
            }
            recount(id, byteCount)
            guard held[id] != nil, !isClosing else { throw unknown(id) }
            held[id]?.summary.isResting = false
            if let renewed {
                held[id]?.summary.started = renewed
                held[id]?.summary.expires = renewed.clampedSum(lifetime)
            }
        }
        let now = now()
        let expires = now.advanced(by: .milliseconds(lifetime))
        guard let effects = machine.retry(id, expires: expires, now: now) else { throw unknown(id) }
        apply(effects)
    }

    /// Removes a request, and waits until it is gone. One that is being sent is cancelled, and may have taken effect.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` if there is no such request, or its end is being
    ///   recorded; `CancellationError` when the task is cancelled, or the queue is closed first.
    public func drop(_ id: OfflineID) async throws {
        try checkOpen()
        guard let effects = machine.drop(id, now: now()) else { throw unknown(id) }
        let isGone = held[id]?.isGone ?? CurrentValue(false)
        held[id]?.isGone = isGone
        if machine.state(of: id) == .settling {
            switch held[id]?.settlement {
            // The earlier outcome could not be recorded, and is recorded now.
            case .delivered, .expired: break
            default: held[id]?.settlement = .dropped
            }
        }
        apply(effects)
        guard await isGone.becomesTrue() else { throw CancellationError() }
    }

    /// Immediately retries requests that were unreachable, or whose credentials closure threw.
    /// ``OfflineQueueOptions/networkMonitor`` does so when the network path returns.
    public func networkBecameAvailable() {
        apply(machine.wake(waitingFor: [.unreachable, .credentialsFailed], now: now()))
    }

    /// Immediately retries requests that wait for credentials, or whose credentials closure threw.
    public func credentialsChanged() {
        apply(machine.wake(waitingFor: [.unauthorized, .credentialsFailed], now: now()))
    }

    /// Stops sending, and releases the directory. A request that is being sent is cancelled if it may be sent again,
    /// and awaited otherwise. A response whose head has arrived counts; its body is no longer awaited. Returns when no
    /// connection and no file is open. The next queue of the directory sends the remaining requests.
    public func close() async {
        guard !isClosing else {
            await isClosed.becomesTrue()
            return
        }
        isClosing = true
        isStopping.update { true }
        machine.close()
        timer?.task.cancel()
        follower?.cancel()
        for entry in held.values where entry.summary.isRepeatable { entry.attempt?.cancel() }
        await credentials?.cancel()
        await runs.finish()
        for (id, entry) in held {
            resumeAsQueued(id)
            entry.isGone?.finish()
        }
        await store.close(lastNumber: lastNumber)
        isDrained.finish()
        log.end()
        isClosed.update { true }
    }

    /// An empty mirror, so that debuggers and `dump` show no secrets.
    public nonisolated var customMirror: Mirror { Mirror(self, children: [:]) }

    /// The default directory of this program: `NAME/queue`, with the name of the program, in `$XDG_STATE_HOME`, or in
    /// `~/.local/state` if that is not set (XDG Base Directory Specification).
    public static var defaultDirectory: FilePath {
        ProgramDirectory.path("queue", below: "XDG_STATE_HOME", orHome: [".local", "state"])
    }

    func checkOpen() throws(HTTPError) { if isClosing { throw OfflineStore.closed } }

    private func unknown(_ id: OfflineID) -> HTTPError {
        HTTPError(
            .invalidRequest, phase: .preparing,
            message: held[id] == nil ? "the queue has no request \(id)" : "request \(id) is being sent, or has ended")
    }
}

extension HTTPError.Code {
    /// The ``OfflineQueue`` was closed, and stored nothing; another one can be opened with its directory.
    public static let offlineQueueClosed = HTTPError.Code(rawValue: "offlineQueueClosed")
}
