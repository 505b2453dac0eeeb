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
            let exchange = try await session.send(
                method, url, headers: fields, body: body, options: options)
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
