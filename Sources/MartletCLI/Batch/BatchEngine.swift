import FoundationEssentials
import Martlet

/// Reads requests from standard input, runs a limited number concurrently, and writes replies as they come.
struct BatchEngine: Sendable {
    /// The maximum length of a line: 256 MiB.
    private static let lineLimit = 256 << 20

    /// The maximum number of concurrent requests.
    let parallel: Int
    /// The timeout of opening a connection.
    let connectTimeout: Duration
    /// The cache of all sessions, from the first request to the last; `nil` for none.
    let cache: ResponseCache?

    /// Runs until the input ends and the last reply is written.
    func run() async -> ExitStatus {
        await KeyLogPlan.warn()
        var session = BatchSession(parallel: parallel, cache: cache)
        let status = await withTaskGroup(of: ExitStatus.self) { group in
            var reader = LineReader(limit: BatchEngine.lineLimit)
            var running = 0
            var status = ExitStatus.success
            while status == .success {
                let line: LineReader.Line?
                do { line = try await reader.next() } catch {
                    await Console.report("could not read standard input: \(error)")
                    status = .readFailed
                    break
                }
                guard let line else { break }
                if running >= parallel, let ended = await group.next() {
                    running -= 1
                    if ended != .success { status = ended }
                }
                let work = begin(line, &session)
                running += 1
                group.addTask {
                    do throws(ExitStatus) { try await Console.print(await work()) } catch { return error }
                    return .success
                }
            }
            // Without a reader, the remaining requests are of no use.
            if status != .success { group.cancelAll() }
            for await ended in group where status == .success { status = ended }
            return status
        }
        if let cache { await CachePlan.end(status == .success ? session.base : nil, cache) }
        return status
    }

    /// Reads a line and decides on which session its work is done; the work gives the reply.
    private func begin(
        _ line: LineReader.Line, _ session: inout BatchSession
    ) -> @Sendable () async -> String {
        guard case .bytes(let bytes) = line else {
            let fault = BatchError(.tooLarge, "the line is longer than \(BatchEngine.lineLimit) bytes")
            return { BatchReply.line(.null, fault) }
        }
        let (sequence, result) = BatchRequest.read(bytes)
        let request: BatchRequest
        do { request = try result.get() } catch { return { BatchReply.line(sequence, error) } }
        if request.startsClean || request.operation == .reset {
            session = BatchSession(parallel: parallel, cache: cache)
        }
        switch request.operation {
        case .reset: return { BatchReply.line(sequence) }
        case .stats:
            let base = session.base
            return { [cache] in
                let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
                let counts = BatchReply.counts(base.poolStatus, cache?.statistics, descriptors: descriptors)
                return BatchReply.line(sequence, counts)
            }
        case .fetch:
            let view = session.view(for: request)
            let connectTimeout = connectTimeout
            return { await BatchEngine.fetch(request, on: view, connectTimeout) }
        }
    }

    private static func fetch(
        _ request: BatchRequest, on session: HTTPSession, _ connectTimeout: Duration
    ) async -> String {
        do {
            let url = try HTTPURL(request.url, pathAsIs: request.keepsPath)
            guard let method = HTTPRequest.Method(request.method) else {
                throw BatchError(.other, "“\(request.method)” is not a method; nothing was sent")
            }
            var fields = request.fields
            var options = request.policies(&fields)
            options.timeouts.connect = connectTimeout
            if !request.proxy.isEmpty { options.proxy = try ProxyPlan.settings(request.proxy) }
            let body = request.body.map { HTTPBody.bytes($0, contentType: nil) } ?? .none
            let exchange = try await session.send(
                method, url, headers: HTTPHeaders(fields), body: body, options: options)
            return BatchReply.line(request.sequence, exchange)
        } catch { return BatchReply.line(request.sequence, BatchError(error)) }
    }
}

/// A session with its views, one for each way to open connections, which requests for the same way share.
struct BatchSession: Sendable {
    /// The maximum number of views; beyond it, all are made again.
    private static let viewLimit = 64
    let base: HTTPSession
    private var views: [BatchConnection: HTTPSession] = [:]
    private let jar = CookieJar(trustsLoopback: true)
    private let hasCache: Bool

    /// Responds to requests for the cache only, if there is none, with 504.
    private static let emptyCache: ResponseCache = {
        var options = ResponseCache.Options()
        options.memoryPressure = nil
        return .memoryOnly(0, options: options)
    }()

    /// A clean session for so many concurrent requests.
    /// - Parameter cache: A cache that outlives the session.
    init(parallel: Int, cache: ResponseCache?) {
        hasCache = cache != nil
        var configuration = SessionConfiguration.default
        configuration.pool.connectionsPerHost = max(configuration.pool.connectionsPerHost, parallel)
        configuration.pool.idleConnectionsPerHost = configuration.pool.connectionsPerHost
        configuration.pool.totalConnections = max(configuration.pool.totalConnections, parallel)
        configuration.tls.keyLogFile = KeyLogPlan.file
        configuration.redirects = .doNotFollow
        configuration.cache = cache
        base = ProgramSessions.shared.make(configuration)
    }

    mutating func view(for request: BatchRequest) -> HTTPSession {
        let view = view(for: request.connection)
        guard request.cacheMode == .onlyIfCached, !hasCache else { return view }
        return view.with { $0.cache = BatchSession.emptyCache }
    }

    private mutating func view(for connection: BatchConnection) -> HTTPSession {
        if connection == BatchConnection() { return base }
        if let view = views[connection] { return view }
        if views.count >= BatchSession.viewLimit { views = [:] }
        let view = base.with { [jar] configuration in
            configuration.connectOverrides = connection.redirections
            if let file = connection.authorityFile { configuration.tls.trust = .only(.file(file)) }
            if connection.usesCookies { configuration.cookies = jar }
        }
        views[connection] = view
        return view
    }
}

/// The way connections are opened for a request of a batch, and whether there are cookies.
struct BatchConnection: Hashable, Sendable {
    /// Replacements for the host and port to connect to.
    var redirections: [ConnectOverride] = []
    /// A file of the only trusted authorities.
    var authorityFile: String?
    /// Whether the session's cookies are sent, and received ones stored; without them, requests take a shorter way.
    var usesCookies = false
}
