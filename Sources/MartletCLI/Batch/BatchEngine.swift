import FoundationEssentials
import HTTPTypes
import Martlet

/// Reads requests from standard input, runs so many at a time, and writes replies as they come.
struct BatchEngine: Sendable {
    /// The longest line that is read: 256 MiB.
    private static let lineLimit = 256 << 20

    /// How many requests run at a time.
    let parallel: Int
    /// How long opening a connection may take.
    let connectTimeout: Duration
    /// What responses are kept in, from the first request to the last, whatever sessions come and go; `nil` for nothing.
    let cache: ResponseCache?

    /// Runs until the input ends and the last reply is written.
    func run() async -> ExitStatus {
        await KeyLogPlan.warn()
        let reader = LineReader(limit: BatchEngine.lineLimit)
        var session = BatchSession(parallel: parallel, cache: cache)
        let status = await withTaskGroup(of: ExitStatus.self) { group in
            var running = 0
            var status = ExitStatus.success
            while status == .success {
                let line: LineReader.Line?
                do {
                    line = try await reader.next()
                } catch {
                    await Console.complain("martlet: could not read standard input: \(error)\n")
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
                group.addTask { await BatchEngine.write(await work()) }
            }
            // Nobody reads any more: what still runs is of no use.
            if status != .success { group.cancelAll() }
            for await ended in group where status == .success { status = ended }
            return status
        }
        if let cache { await CachePlan.end(status == .success ? session.base : nil, cache) }
        return status
    }

    private static func write(_ line: [UInt8]) async -> ExitStatus {
        do throws(OutputError) {
            try await Console.write(line)
            return .success
        } catch {
            if !error.isClosedPipe { await Console.complain("martlet: \(error)\n") }
            return .writeFailed
        }
    }

    /// Reads a line and decides on which session its work is done; the work gives the reply.
    private func begin(
        _ line: LineReader.Line, _ session: inout BatchSession
    ) -> @Sendable () async -> [UInt8] {
        guard case .bytes(let bytes) = line else {
            let fault = BatchFault(.tooLarge, "the line is longer than \(BatchEngine.lineLimit) bytes")
            return { BatchReply.line(.null, fault) }
        }
        let (sequence, result) = BatchRequest.read(bytes)
        let request: BatchRequest
        switch result {
        case .failure(let fault): return { BatchReply.line(sequence, fault) }
        case .success(let read): request = read
        }
        if request.startsClean || request.operation == .reset {
            session = BatchSession(parallel: parallel, cache: cache)
        }
        switch request.operation {
        case .reset: return { BatchReply.line(sequence) }
        case .stats:
            let base = session.base
            return { [cache] in BatchReply.line(sequence, BatchEngine.counts(base, cache)) }
        case .fetch:
            let view = session.view(for: request)
            let connectTimeout = connectTimeout
            return { await BatchEngine.fetch(request, on: view, connectTimeout) }
        }
    }

    private static func counts(_ session: HTTPSession, _ cache: ResponseCache?) -> [(String, JSONValue)] {
        let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        return BatchReply.counts(session.poolStatus, cache?.statistics, descriptors: descriptors)
    }

    private static func fetch(
        _ request: BatchRequest, on session: HTTPSession, _ connectTimeout: Duration
    ) async -> [UInt8] {
        do {
            let url = try address(request)
            guard let method = HTTPRequest.Method(request.method) else {
                throw BatchFault(.other, "“\(request.method)” is not a method; nothing was sent")
            }
            var fields = request.headers.fields
            var options = request.policies(&fields)
            options.timeouts?.connect = connectTimeout
            if !request.proxy.isEmpty { options.proxy = try proxy(request) }
            let body = request.body.map { HTTPBody.bytes($0, contentType: nil) } ?? .none
            let exchange = try await session.send(method, url, headers: fields, body: body, options: options)
            return BatchReply.line(request.sequence, exchange)
        } catch {
            return BatchReply.line(request.sequence, BatchFault(error))
        }
    }

    private static func proxy(_ request: BatchRequest) throws(BatchFault) -> ProxySettings {
        do throws(UsageError) {
            return try ProxyPlan.settings(request.proxy)
        } catch {
            throw BatchFault(.unsupported, error.description)
        }
    }

    private static func address(_ request: BatchRequest) throws(BatchFault) -> HTTPURL {
        do throws(HTTPURL.ParseError) {
            return try HTTPURL(request.url, pathAsIs: request.keepsPath)
        } catch {
            throw BatchFault(.badURL, error.description)
        }
    }
}

/// A session with its views, one for each way to open connections, so that requests that ask for the same
/// share them.
struct BatchSession: Sendable {
    /// More views than these, and all begin anew.
    private static let viewLimit = 64
    /// The session.
    let base: HTTPSession
    private var views: [BatchConnection: HTTPSession] = [:]
    private let jar = CookieJar(trustsLoopback: true)
    private let hasCache: Bool

    /// What answers those who want an answer of the cache alone, where there is none: 504.
    private static let emptyCache: ResponseCache = {
        var options = ResponseCache.Options()
        options.memoryPressure = nil
        return .memoryOnly(0, options: options)
    }()

    /// A clean session for so many requests at a time.
    /// - Parameter cache: What outlives it.
    init(parallel: Int, cache: ResponseCache?) {
        hasCache = cache != nil
        var configuration = SessionConfiguration.default
        configuration.pool.connectionsPerHost = max(configuration.pool.connectionsPerHost, parallel)
        configuration.pool.idleConnectionsPerHost = configuration.pool.connectionsPerHost
        configuration.pool.totalConnections = max(configuration.pool.totalConnections, parallel)
        configuration.tls.keyLogFile = KeyLogPlan.file
        configuration.redirects = .refuse
        configuration.cache = cache
        base = ProgramSessions.shared.make(configuration)
    }

    /// The session that a request is made on.
    mutating func view(for request: BatchRequest) -> HTTPSession {
        let view = view(for: request.connection)
        guard request.cacheMode == .onlyIfCached, !hasCache else { return view }
        return view.with { $0.cache = BatchSession.emptyCache }
    }

    /// The view for a way to open connections.
    private mutating func view(for connection: BatchConnection) -> HTTPSession {
        if connection == BatchConnection() { return base }
        if let view = views[connection] { return view }
        if views.count >= BatchSession.viewLimit { views = [:] }
        let jar = jar
        let view = base.with { configuration in
            configuration.connectRedirections = connection.redirections
            if let file = connection.authorityFile { configuration.tls.trust = .only(.file(file)) }
            if connection.usesCookies { configuration.cookies = jar }
        }
        views[connection] = view
        return view
    }
}

/// A member of a request: its name, and readers that name it when its type is wrong.
struct BatchMember: Sendable {
    /// Its name.
    let name: String
    /// Its value.
    let value: JSONValue

    private func wrong(_ type: String) -> BatchFault { BatchFault(.other, "“\(name)” must be \(type)") }

    /// Whether it is null.
    var isNull: Bool { if case .null = value { true } else { false } }

    /// A string.
    func string() throws(BatchFault) -> String {
        guard case .string(let text) = value else { throw wrong("a string") }
        return text
    }

    /// A string of characters up to U+00FF, each of which is a byte.
    func bytes() throws(BatchFault) -> [UInt8] {
        let text = try string()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else {
                throw wrong("a string of characters up to U+00FF, each of which is a byte")
            }
            bytes.append(byte)
        }
        return bytes
    }

    /// true or false.
    func bool() throws(BatchFault) -> Bool {
        guard case .bool(let value) = value else { throw wrong("true or false") }
        return value
    }

    /// A whole number, not negative.
    func count() throws(BatchFault) -> Int {
        guard let number = value.intValue, number >= 0 else {
            throw wrong("a whole number that is not negative")
        }
        return number
    }

    /// An array.
    func array() throws(BatchFault) -> [BatchMember] {
        guard case .array(let values) = value else { throw wrong("an array") }
        return values.map { BatchMember(name: name, value: $0) }
    }

    /// The members of an object, each with this member's name and a dot before its own.
    func object() throws(BatchFault) -> [BatchMember] {
        guard case .object(let members) = value else { throw wrong("an object") }
        return members.map { BatchMember(name: "\(name).\($0.name)", value: $0.value) }
    }
}
