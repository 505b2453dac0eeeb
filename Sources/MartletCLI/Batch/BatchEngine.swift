import ArgumentParser
import FoundationEssentials
import Martlet

/// Reads requests from standard input, runs a limited number concurrently, and writes replies in the order of
/// completion.
struct BatchEngine: Sendable {
    /// The maximum length of a line: 256 MiB.
    private static let lineLimit = 256 << 20

    let parallel: Int
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
            // After a failure of the input or the output, the remaining requests are cancelled.
            if status != .success { group.cancelAll() }
            for await ended in group where status == .success { status = ended }
            return status
        }
        if let cache { await CachePlan.end(status == .success ? session.base : nil, cache) }
        return status
    }

    /// Parses a line and chooses the session for it. Returns a function that handles the request and makes the reply.
    private func begin(_ line: LineReader.Line, _ session: inout BatchSession) -> @Sendable () async -> String {
        guard case .bytes(let bytes) = line else {
            let error = BatchError(.tooLarge, "the line is longer than \(BatchEngine.lineLimit) bytes")
            return { BatchReply.line(.null, error) }
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
            return { await fetch(request, on: view) }
        }
    }

    private func fetch(_ request: BatchRequest, on session: HTTPSession) async -> String {
        do {
            let url = try HTTPURL(request.url, pathAsIs: request.keepsPath)
            guard let method = HTTPRequest.Method(request.method) else {
                throw BatchError(.other, "“\(request.method)” is not a method; nothing was sent")
            }
            var fields = request.fields
            var options = request.policies(&fields.fields)
            options.timeouts.connect = connectTimeout
            if !request.proxy.isEmpty { options.proxy = try ProxyPlan.settings(request.proxy) }
            let body = request.body.map { HTTPBody.bytes($0, contentType: nil) } ?? .none
            let exchange = try await session.send(method, url, body: body, headers: fields, options: options)
            return BatchReply.line(request.sequence, exchange)
        } catch { return BatchReply.line(request.sequence, BatchError(error)) }
    }
}

/// A session with its views. All requests with the same connection settings share a view.
struct BatchSession: Sendable {
    /// The maximum number of views. When it is reached, all are discarded.
    private static let viewLimit = 64
    let base: HTTPSession
    private var views: [BatchConnection: HTTPSession] = [:]
    private let jar = CookieJar(trustsLoopback: true)
    private let hasCache: Bool

    /// An empty cache for sessions without a cache: with it, `only-if-cached` gives the status 504.
    private static let emptyCache: ResponseCache = {
        var options = ResponseCache.Options()
        options.memoryPressure = nil
        return .memoryOnly(0, options: options)
    }()

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

/// The connection settings of a request of a batch, and whether it uses cookies.
struct BatchConnection: Hashable, Sendable {
    var redirections: [ConnectOverride] = []
    /// A file with the trusted authorities; `nil` for those of the system.
    var authorityFile: String?
    /// Whether the session's cookies are sent, and received ones stored; without cookies, requests need fewer steps.
    var usesCookies = false
}

struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch", abstract: "Read a JSON request per line, and write a JSON reply per line",
        discussion: """
            A request, with the defaults of optional keys or their types:

            {"seq":7, "op":"fetch", "url":"http://…", "method":"GET", "headers":[["Name","value"],["Accept",null]],
            "body":null|"bytes", "decompress":true, "http_version":"1.1", "max_body":n, "timeout_ms":n, "first":false,
            "connect_to":["host:port:address:port"], "ca_file":"path", "path_as_is":false, "redirect":"follow|manual",
            "max_redirects":20, "keep_method":[301,302,303], "trusted_redirect":false, "proto_redir":"=https",
            "retry":0, "cookie_jar":false, "proxy":null|"http://host:port", "proxy_user":"user:password",
            "proxy_auth":"basic|digest|any", "proxytunnel":false,
            "auth":null|{"type":"basic|digest|any","user":"…","password":"…"},
            "cache":"none|default|no-cache|force-cache|only-if-cached|no-store|reload"}

            Byte strings are Latin-1: one character U+0000–U+00FF is one byte. Unknown keys are rejected in the reply.

            "op" can also be "reset" or "stats". Redirects are not followed by default. "first" discards connections, \
            cookies and credentials; the cache lives as long as the process. The values of "cache" are those of fetch(); \
            "none" is "no-store". With --cache, the request directives they imply are also sent to other caches. "source" \
            of a reply is "network", "cache", "validated" or "stale". "only-if-cached" never uses the network: without a \
            usable response, or without --cache, the reply has the status 504 and the source "cache".
            """)

    @Option(help: "Limit the concurrent requests") var parallel = 32

    @Option(help: "Limit the seconds to open a connection") var connectTimeout = 10.0

    @Option(
        help: ArgumentHelp(
            "Store responses in a directory, or in “memory”; nowhere by default", valueName: "dir|memory")) var cache:
        String?

    mutating func validate() throws {
        guard (1...10_000).contains(parallel) else {
            throw ValidationError("option --parallel: needs a number from 1 to 10000")
        }
        guard connectTimeout > 0, connectTimeout < 1e9 else {
            throw ValidationError("option --connect-timeout: needs a number of seconds above 0")
        }
        guard cache != "" else { throw ValidationError("option --cache: needs a directory, or “memory”") }
    }

    mutating func run() async throws {
        let engine = BatchEngine(
            parallel: parallel, connectTimeout: .seconds(connectTimeout), cache: try await opened())
        let status = await engine.run()
        if status != .success { throw status }
    }

    /// The cache, opened before the first line is read.
    private func opened() async throws(ExitStatus) -> ResponseCache? {
        guard let cache else { return nil }
        if cache == "memory" { return .memoryOnly() }
        do throws(UsageError) {
            let (opened, exists) = try await CachePlan.open(FilePath(cache))
            if !exists { await Console.report("option --cache: “\(cache)” cannot be created; nothing is stored") }
            return opened
        } catch { throw await error.printMessage() }
    }
}

/// Reads the lines of standard input, each up to a maximum length.
struct LineReader {
    enum Line: Sendable {
        case bytes([UInt8])
        case tooLong
    }

    private let limit: Int
    private var input = FileInput(nil).makeAsyncIterator()
    /// The bytes that were read and are not yet split into lines.
    private var piece: ArraySlice<UInt8> = []
    private var line: [UInt8] = []
    private var isTooLong = false
    private var isEnded = false

    init(limit: Int) { self.limit = limit }

    /// The next line without its end; `nil` after the last. Empty lines are skipped.
    mutating func next() async throws -> Line? {
        while true {
            let end = piece.firstIndex(of: 10)
            append(piece[..<(end ?? piece.endIndex)])
            if let end {
                piece = piece[(end + 1)...]
                if let line = take(isComplete: true) { return line }
            } else if !isEnded, let next = try await input.next() {
                piece = next[...]
            } else {
                (isEnded, piece) = (true, [])
                return take(isComplete: false)
            }
        }
    }

    private mutating func append(_ bytes: ArraySlice<UInt8>) {
        isTooLong = isTooLong || line.count + bytes.count > limit
        if isTooLong { line = [] } else { line += bytes }
    }

    /// The line that was read; `nil` if it is empty.
    private mutating func take(isComplete: Bool) -> Line? {
        defer { (line, isTooLong) = ([], false) }
        if isTooLong { return .tooLong }
        if isComplete, line.last == 13 { line.removeLast() }
        return line.isEmpty ? nil : .bytes(line)
    }
}
