import FoundationEssentials
import MartletCache
import MartletCaching
public import MartletCore
import MartletDiagnostics
import MartletHosts
import MartletNetwork
import MartletStreams
package import MartletStorage
import MartletTransport
public import SystemPackage

/// Requests that are kept until a server has taken them, over failures of the network and ends of the process.
///
/// Each is written to a directory before it is first sent, and removed when its final answer is there. The requests of a lane
/// are sent one after the other, in the order in which they were submitted; lanes do not wait for each other. A lane whose
/// first request fails waits (``OfflineBackoff``), and goes on at once when the network's path comes back.
///
/// What is guaranteed, whatever is killed when:
///
/// - A request with an `Idempotency-Key`, as methods that are not idempotent get by default, is sent at least once, always
///   with the same key. Where the server honours it, it takes effect exactly once.
/// - A request whose method is idempotent is sent at least once.
/// - Any other is sent at most once: where it is not known whether it took effect, it is reported as uncertain, and stays
///   until somebody decides.
///
/// | answer | what follows |
/// |---|---|
/// | 2xx, 304 | delivered |
/// | 401 | the credentials are asked once; still 401: the lane waits |
/// | 407, 408, 421, 425, 429, 503, 507, 511; 413 with `Retry-After` | later, no sooner than `Retry-After` says |
/// | 409 | with a key: later, with the same one; else dead |
/// | 500, 502, 504, other 5xx | later; uncertain where it must not be sent twice |
/// | 501, 505, other 3xx and 4xx | dead |
///
/// Redirects are followed as the session has it, but for 301: the method stays, and the body goes on, as with 307 and 308.
/// Success after a redirect that made a GET of the request is no delivery, since the page may be one to sign in: the request is
/// dead, or uncertain where it must not be sent twice. ``OfflineQueueOptions/acceptsRedirectedResults`` accepts the result to
/// which a 303, or a 302 within the origin, leads.
///
/// A request that expires becomes a dead letter. Ages are measured by a clock that clock steps do not move, as long as the
/// computer runs; over a restart they follow the time of day, unless that was evidently never set (before 2020).
///
/// Secret fields are not written down (`Authorization`, `Cookie`, `Proxy-Authorization`,
/// ``OfflineQueueOptions/secretFields``), nor are user names and passwords of URLs: ``OfflineCredentials`` add them when a
/// request is sent. URLs, other fields and bodies are written as they are, for the owner of the directory alone.
///
/// One queue at a time has a directory, in one process; ``close()`` lets others have it, and so does the end of the process,
/// however it comes. Letting go of the queue stops it, as ``close()`` does, without waiting.
public actor OfflineQueue {
    /// Who waits for the first try of a request.
    typealias Watch = OneShot<Result<OfflineOutcome, any Error>>

    /// What is known of a request in this process.
    struct Held {
        var summary: OfflineSummary
        /// The fields that are not stored.
        var secretFields: HTTPFields?
        /// How the first try is made.
        var firstOptions: RequestOptions?
        /// Who waits for the first try.
        var watch: Watch?
        /// Becomes true when it is out of the queue, for those who drop it.
        var isGone: NewestValue<Bool>?
        /// What its body looked like when it was read last.
        var stamp: FrozenBodyReader.Stamp?
        /// The try that is under way.
        var attempt: Task<ReplayVerdict?, Never>?
        /// What is to be written down, where that failed.
        var settlement: Settlement?
    }

    /// How a request ends.
    enum Settlement {
        case delivered(HTTPExchange)
        case dead(OfflineDeadLetter, HTTPExchange?)
        case uncertain(OfflineDeadLetter, ReplayVerdict.Uncertainty)
        case expired
        case dropped
        /// Its record makes no sense any more, and is out of the way.
        case setAside
    }

    nonisolated let log = EventLog<OfflineEvent>(weightLimit: 16 << 20) { event in
        if case .delivered(_, let answer) = event { answer.body.count } else { 0 }
    }
    nonisolated let runs = RunGroup()
    nonisolated let isClosed = NewestValue(false)
    nonisolated let isDrained = NewestValue(true)
    /// Becomes true when bodies of responses are no longer waited for.
    nonisolated let isStopping = NewestValue(false)
    /// What sends: the session that was given, with errors that are not mapped.
    let session: HTTPSession
    let store: OfflineStore
    let options: OfflineQueueOptions
    let secrets: SecretFields
    let credentials: CredentialKeeper?
    /// The clock of waits and expiry, which goes on while the computer is suspended.
    let now: @Sendable () -> MonotonicTime
    let wallTime: @Sendable () -> Int64
    /// The start of the computer that ``now`` counts from.
    let boot: String?
    var machine: ReplayMachine
    var held: [OfflineID: Held] = [:]
    var lastNumber: UInt64
    /// How many requests are held or being submitted, and their bytes.
    var requestCount = 0
    var storedByteCount: UInt64 = 0
    /// Requests for whose first try somebody waits, by lane.
    var watched: [String: Set<OfflineID>] = [:]
    var alarm: (time: MonotonicTime, task: Task<Void, Never>)?
    /// Follows the network's path.
    var follower: Task<Void, Never>?
    var isClosing = false

    /// Opens a directory, which is made where it is missing, and begins to send what is in it.
    ///
    /// - Parameters:
    ///   - session: What sends.
    ///   - directory: Where requests are kept: its owner's alone (0700); ``defaultDirectory`` by default.
    ///   - options: How it works.
    ///   - credentials: What adds to requests what is not stored with them; `nil` for nothing but what the session adds. Where
    ///     it is `nil`, the secret fields of a request are sent with it as long as the process lasts that submitted it.
    /// - Throws: An ``MartletCore/HTTPError``: `.alreadyInProgress` where another queue has the directory, in this process or
    ///   another one; `.fileFailed` where it belongs to another user or others may write to it, or it cannot be used.
    public init(
        session: HTTPSession, directory: FilePath = OfflineQueue.defaultDirectory,
        options: OfflineQueueOptions = OfflineQueueOptions(), credentials: OfflineCredentials? = nil
    ) async throws {
        try await self.init(
            session: session, directory: directory, options: options, credentials: credentials,
            files: LinuxFileSystem())
    }

    /// Opens a directory; as ``init(session:directory:options:credentials:)``.
    /// - Parameter authorize: Adds to a request what is not stored with it.
    public init(
        session: HTTPSession, directory: FilePath = OfflineQueue.defaultDirectory,
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
        // What follows is decided by what went wrong, and not by what a service calls it.
        self.session =
            session.configuration.errorMapper == nil ? session : session.with { $0.errorMapper = nil }
        self.store = store
        self.options = options
        self.now = now
        self.wallTime = wallTime
        self.boot = boot
        self.credentials = credentials.map { CredentialKeeper($0) }
        secrets = SecretFields(options.secretFields)
        lastNumber = contents.lastNumber
        machine = ReplayMachine(
            backoff: options.backoff, lanes: options.limits.lanes, isSending: options.isSending)
        await restore(contents)
        session.setCompanion(self)
        if options.isSending, let monitor = options.networkMonitor { follow(monitor) }
    }

    deinit {
        isStopping.finish()
        runs.cancel()
        alarm?.task.cancel()
        follower?.cancel()
        for entry in held.values {
            entry.watch?.fulfil(.success(.frozen(entry.summary.ticket)))
            entry.isGone?.finish()
        }
        isDrained.finish()
        log.end()
    }

    // MARK: Looking

    /// What happens, in order, beginning with the last 256 events that have happened, or fewer where answers among them have
    /// more than 16 MiB: also to requests that an earlier process submitted. The stream leaves nothing out and holds what is
    /// not taken from it. It ends with the queue.
    public nonisolated var events: EventSequence<OfflineEvent> { log.subscribe() }

    /// The requests it holds, those first that were submitted first. Answers to dead and uncertain ones are read from the
    /// directory.
    public var entries: [OfflineEntry] {
        get async {
            var entries: [OfflineEntry] = []
            for id in held.keys.sorted() {
                if let entry = await entry(of: id) { entries.append(entry) }
            }
            return entries
        }
    }

    /// One of the requests it holds; `nil` where it holds none of that number. The answer to a dead or uncertain one is read
    /// from the directory.
    public func entry(of id: OfflineID) async -> OfflineEntry? {
        guard let summary = held[id]?.summary else { return nil }
        var state = OfflineEntry.State.waiting
        if machine.place(of: id) == .sending { state = .sending }
        if summary.stage != .waiting, let stage = try? await store.load(id).stage {
            switch stage {
            case .dead(let letter): state = .dead(letter)
            case .uncertain(let letter): state = .uncertain(letter)
            case .waiting, .sending: break
            }
        }
        return OfflineEntry(
            ticket: summary.ticket, state: state, attempts: summary.attempts, submitted: summary.submitted,
            expires: shownExpiry(of: summary), bodyByteCount: summary.bodyByteCount,
            secretFields: summary.secretFields)
    }

    /// When a request expires, on a clock that may have been set since it was submitted.
    private func shownExpiry(of summary: OfflineSummary) -> Int64 {
        let wall = wallTime()
        guard summary.stage == .waiting, summary.expires <= wall,
            let time = machine.expiry(of: summary.ticket.id)
        else { return summary.expires }
        let left = Int64(clamping: time.since(now()).attoseconds / 1_000_000_000_000_000)
        return max(summary.expires, wall.advanced(byMilliseconds: left))
    }

    /// The number of requests that wait to be sent, or are being sent.
    public var pendingCount: Int { machine.pendingCount }

    /// The number of dead letters and uncertain requests, those of earlier processes included.
    public var restingCount: Int { held.values.count { $0.summary.stage != .waiting } }

    /// Waits until nothing waits to be sent and nothing is being sent; at once where that is so. Dead and uncertain requests
    /// are not waited for.
    /// - Throws: `CancellationError` when the task is cancelled, or the queue is closed before.
    public nonisolated var drained: Void {
        get async throws { guard await isDrained.becomesTrue() else { throw CancellationError() } }
    }

    // MARK: Deciding

    /// Lets a dead or uncertain request be sent again, in its old place; one that waits, at once. One whose time was up has as
    /// long again.
    /// - Throws: An ``MartletCore/HTTPError`` with the code `.invalidRequest` where there is no such request, or it is being
    ///   sent; `.fileFailed` or `.diskFull` where that cannot be written down.
    public func retry(_ id: OfflineID) async throws {
        try checkOpen()
        guard let entry = held[id], machine.place(of: id) == .resting || machine.place(of: id) == .waiting
        else { throw unknown(id) }
        if entry.summary.stage != .waiting {
            let now = now()
            var expires: Int64?
            var deadline: BootDeadline?
            if machine.expiry(of: id) ?? now <= now {
                let lifetime = entry.summary.lifetime
                expires = wallTime().advanced(byMilliseconds: lifetime)
                deadline = BootDeadline(now.advanced(by: .milliseconds(lifetime)), boot: boot)
            }
            try await revive(id, expires: expires, deadline)
            guard held[id] != nil, !isClosing else { throw unknown(id) }
            held[id]?.summary.stage = .waiting
            if let expires { held[id]?.summary.expires = expires }
        }
        let now = now()
        let expires = now.advanced(by: .milliseconds(entry.summary.lifetime))
        guard let effects = machine.retry(id, expires: expires, now: now) else { throw unknown(id) }
        apply(effects)
    }

    private func revive(_ id: OfflineID, expires: Int64?, _ deadline: BootDeadline?) async throws {
        // At one go, so that it is the state it finds that is changed: it may have been dropped since, or retried by somebody
        // else, and be on its way.
        let byteCount = try await store.change(id) { request in
            switch request.stage {
            case .dead, .uncertain: break
            case .waiting, .sending: return false
            }
            request.stage = .waiting
            if let expires {
                request.expires = expires
                request.bootDeadline = deadline
            }
            return true
        }
        recount(id, byteCount)
    }

    /// Takes a request out of the queue, whatever becomes of it; one that is being sent is cancelled, and may have taken
    /// effect. Returns when it is out.
    /// - Throws: An ``MartletCore/HTTPError`` with the code `.invalidRequest` where there is no such request, or its end is
    ///   just being written down; `CancellationError` when the task is cancelled, or the queue is closed before it is out.
    public func drop(_ id: OfflineID) async throws {
        try checkOpen()
        guard let effects = machine.drop(id, now: now()) else { throw unknown(id) }
        let isGone = held[id]?.isGone ?? NewestValue(false)
        held[id]?.isGone = isGone
        if machine.place(of: id) == .settling {
            switch held[id]?.settlement {
            // That could not be written down, and is out now.
            case .delivered, .expired: break
            default: held[id]?.settlement = .dropped
            }
        }
        apply(effects)
        guard await isGone.becomesTrue() else { throw CancellationError() }
    }

    /// Tries again at once what waits since it could not be reached: the network's path has come back, as far as the caller
    /// knows. ``OfflineQueueOptions/networkMonitor`` does so by itself.
    public func pathReturned() {
        apply(machine.wake(waitingFor: [.unreachable, .credentialsFailed], now: now()))
    }

    /// Tries again at once what waits for credentials.
    public func credentialsChanged() {
        apply(machine.wake(waitingFor: [.unauthorized, .credentialsFailed], now: now()))
    }

    // MARK: The end

    /// Stops sending, and lets others have the directory. What is being sent is cancelled where it may be sent again, and
    /// waited for where it may not. A response whose head has arrived counts; its body is no longer waited for. Returns when no connection and no file is open any more. What is left goes on with the
    /// next queue of the directory.
    public func close() async {
        guard !isClosing else {
            await isClosed.becomesTrue()
            return
        }
        isClosing = true
        isStopping.update { true }
        machine.close()
        alarm?.task.cancel()
        follower?.cancel()
        for entry in held.values where entry.summary.isRepeatable { entry.attempt?.cancel() }
        await credentials?.cancel()
        await runs.finish()
        for (id, entry) in held {
            freeze(id)
            entry.isGone?.finish()
        }
        await store.close(lastNumber: lastNumber)
        isDrained.finish()
        log.end()
        isClosed.update { true }
    }

    func checkOpen() throws(HTTPError) {
        guard isClosing else { return }
        throw HTTPError(.sessionInvalidated, phase: .preparing, message: "the offline queue was closed")
    }

    private func unknown(_ id: OfflineID) -> HTTPError {
        HTTPError(
            .invalidRequest, phase: .preparing,
            message: held[id] == nil
                ? "the queue has no request \(id)" : "request \(id) is being sent, or about to go")
    }
}

extension OfflineQueue: CustomReflectable {
    /// What debuggers and `dump` show: nothing of what it holds, which may be secret.
    public nonisolated var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension OfflineQueue {
    /// Where the requests of this program are kept unless it is said otherwise: in the folder `NAME/queue`, by the name of the
    /// program, below `$XDG_STATE_HOME`, or below `~/.local/state` where that is not set (XDG Base Directory Specification).
    public static var defaultDirectory: FilePath {
        let environment = ProcessInfo.processInfo.environment
        let name = FilePath(CommandLine.arguments.first ?? "").lastComponent?.string ?? "program"
        return defaultDirectory(of: name) { environment[$0] }
    }

    /// The directory of a program under an environment.
    static func defaultDirectory(of name: String, variable: (String) -> String?) -> FilePath {
        // One that is not absolute is to be taken for none.
        if let folder = variable("XDG_STATE_HOME"), folder.hasPrefix("/") {
            return FilePath(folder).appending(name).appending("queue")
        }
        var path = FilePath(variable("HOME").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "/")
        for part in [".local", "state", name, "queue"] { path.append(part) }
        return path
    }
}
