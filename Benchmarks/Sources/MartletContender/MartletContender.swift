import FoundationEssentials
import Martlet
import Measure

/// Martlet as a contender: `SCENARIO URL [NAME=VALUE …]`.
///
/// `executor=loop` runs the tasks on the event loop's thread. `cache=memory` and `cache=DIRECTORY` cache responses, the
/// latter only on disk. `mode=reload` stores each response again. `line=N` limits the received body bytes per second.
/// `segments=N` downloads files in segments over at most N connections.
@main
struct MartletContender: Client {
    static func main() {
        Program.main { arguments in
            let contender = try MartletContender(arguments, url: try HTTPURL(arguments.url))
            let executor = arguments["executor"] == "loop" ? HTTPSession.loopExecutor : nil
            try await Measurement(arguments, of: contender, on: executor).run()
        }
    }

    let session: HTTPSession
    let url: HTTPURL
    /// The maximum number of connections for a file; 0 for a plain request.
    private let segments: Int

    init(_ arguments: Arguments, url: HTTPURL) throws {
        let connections = arguments.number("connections", 1)
        var configuration = SessionConfiguration.default
        configuration.pool.connectionsPerHost = connections
        configuration.pool.totalConnections = connections
        configuration.pool.idleConnectionsPerHost = connections
        configuration.pool.idleConnections = connections
        if let authority = arguments["authority"] {
            configuration.tls.trust = .only(.file(authority))
        }
        switch arguments["cache"] {
        case "memory": configuration.cache = .memoryOnly(.mebibytes(64))
        case let directory?: configuration.cache = try .at(FilePath(directory), memory: 0, disk: .gibibytes(2))
        case nil: break
        }
        if let mode = arguments["mode"] {
            guard mode == "reload" else { throw Arguments.Mistake(text: "mode=\(mode) is not known") }
            configuration.cacheMode = .reload
        }
        let line = arguments.number("line", 0)
        if line > 0 { configuration.bandwidth.total.download = .bytesPerSecond(line) }
        session = HTTPSession(configuration: configuration)
        segments = arguments.number("segments", 0)
        self.url = url
    }

    func get() async throws -> UInt8? {
        try await session.send(.get, url).validated().body.first
    }

    func decode() async throws {
        _ = try Article(json: Data(try await session.send(.get, url).validated().body))
    }

    func discard() async throws -> Int {
        try await session.stream(HTTPRequest(method: .get, url: url)) { response, body in
            guard response.status == .ok else { throw UnsupportedScenario() }
            var count = 0
            for try await piece in body { count += piece.count }
            return count
        }
    }

    func save(to path: String) async throws {
        guard segments == 0 else {
            let options = DownloadOptions(segments: segments, collision: .overwrite)
            try await session.download(url.absoluteForm, to: FilePath(path), options: options)
            return
        }
        try await session.save(HTTPRequest(method: .get, url: url), to: FilePath(path), overwrites: true)
    }

    func upload(from path: String) async throws {
        let request = HTTPRequest(method: .put, url: url)
        _ = try await session.upload(.file(FilePath(path)), to: request).validated()
    }
}
