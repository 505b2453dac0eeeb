import AsyncHTTPClient
import FoundationEssentials
import Measure
import NIOCore
import NIOHTTP1
import _NIOFileSystem
import NIOSSL

/// The contender async-http-client: `SCENARIO URL [NAME=VALUE …]`.
@main
struct AsyncHTTPClientContender: Client {
    static func main() {
        Program.main { arguments in
            let contender = AsyncHTTPClientContender(arguments)
            try await Measurement(arguments, of: contender).run()
            try await contender.client.shutdown()
        }
    }

    /// The error for a status other than 2xx.
    struct UnexpectedStatus: Error { let code: UInt }

    let client: HTTPClient
    let url: String

    init(_ arguments: Arguments) {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit =
            arguments.number("connections", 1)
        if let authority = arguments["authority"] {
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(authority)
            configuration.tlsConfiguration = tls
        }
        client = HTTPClient(configuration: configuration)
        url = arguments.url
    }

    private func execute(_ request: HTTPClientRequest) async throws -> HTTPClientResponse {
        let response = try await client.execute(request, timeout: .seconds(600))
        guard (200...299).contains(response.status.code) else {
            throw UnexpectedStatus(code: response.status.code)
        }
        return response
    }

    func get() async throws -> UInt8? {
        let body = try await execute(HTTPClientRequest(url: url)).body.collect(upTo: 16 << 20)
        return body.readableBytesView.first
    }

    func decode() async throws {
        let body = try await execute(HTTPClientRequest(url: url)).body.collect(upTo: 16 << 20)
        _ = try Article(json: Data(body.readableBytesView))
    }

    func discard() async throws -> Int {
        var count = 0
        for try await piece in try await execute(HTTPClientRequest(url: url)).body {
            count += piece.readableBytes
        }
        return count
    }

    func save(to path: String) async throws {
        let response = try await execute(HTTPClientRequest(url: url))
        try await FileSystem.shared.withFileHandle(
            forWritingAt: FilePath(path), options: .newFile(replaceExisting: true)
        ) { file in
            var offset: Int64 = 0
            for try await piece in response.body {
                offset += try await file.write(contentsOf: piece, toAbsoluteOffset: offset)
            }
        }
    }

    func upload(from path: String) async throws {
        try await FileSystem.shared.withFileHandle(forReadingAt: FilePath(path)) { file in
            let size = try await file.info().size
            var request = HTTPClientRequest(url: url)
            request.method = .PUT
            request.body = .stream(file.readChunks(), length: .known(size))
            _ = try await execute(request)
        }
    }
}
