import FoundationEssentials
import MartletContent
import MartletCore
import MartletTesting
import SystemPackage
import Testing

/// A directory for cassettes that is removed at the end of the test.
final class CassetteScene: Sendable {
    let directory: String
    /// The file of the cassette, in a directory that does not exist yet.
    var file: String { directory + "/fixtures/test.har" }

    init() throws {
        directory = FileManager.default.temporaryDirectory.path + "/martlet-cassette-\(UInt64.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    var exists: Bool { FileManager.default.fileExists(atPath: file) }

    func cassette(_ mode: Cassette.Mode, _ change: (inout CassetteOptions) -> Void = { _ in }) throws -> Cassette {
        var options = CassetteOptions()
        change(&options)
        return try Cassette(file: file, mode: mode, options: options)
    }

    func bytes() throws -> [UInt8] {
        let file = try FileDescriptor.open(FilePath(file), .readOnly)
        return try file.closeAfter {
            var (bytes, buffer) = ([UInt8](), [UInt8](repeating: 0, count: 65536))
            while true {
                let count = try unsafe buffer.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
                if count == 0 { return bytes }
                bytes += buffer[..<count]
            }
        }
    }

    func write(_ text: String) throws {
        try FileManager.default.createDirectory(atPath: directory + "/fixtures", withIntermediateDirectories: true)
        let file = try FileDescriptor.open(
            FilePath(file), .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite)
        try file.closeAfter { _ = try file.writeAll(text.utf8) }
    }

    /// Writes a cassette of GET requests with text responses.
    func write(_ responses: KeyValuePairs<String, String>) throws {
        try write(Self.har(responses.map { Self.entry(url: $0.key, text: $0.value) }))
    }

    static func har(_ entries: [String]) -> String {
        #"{"log":{"version":"1.2","creator":{"name":"t","version":"1"},"entries":["# + entries.joined(separator: ",")
            + "]}}"
    }

    static func entry(
        method: String = "GET", url: String, headers: [(String, String)] = [], body: String? = nil, text: String = ""
    ) -> String {
        let fields = headers.map { ["name": .string($0.0), "value": .string($0.1)] as JSONValue }
        let posted: JSONValue = body.map { ["mimeType": "application/json", "text": .string($0)] } ?? nil
        let value: JSONValue = [
            "request": [
                "method": .string(method), "url": .string(url), "headers": .array(fields), "postData": posted,
            ],
            "response": [
                "status": 200, "statusText": "OK", "headers": [],
                "content": ["size": JSONValue(text.utf8.count), "mimeType": "text/plain", "text": .string(text)],
            ],
        ]
        return value.text()
    }

    /// Runs a closure with a session whose network is a mock, which must receive a number of requests.
    static func withSession(
        _ requestCount: Int, _ respond: @escaping OriginHandler.Respond = { _ in .status(500) },
        _ configure: (inout SessionConfiguration) -> Void = { _ in },
        run body: (HTTPSession) async throws -> Void
    ) async throws {
        try await MockTransport.withMock(respond: respond) { mock in
            var configuration = SessionConfiguration.mock(mock)
            configure(&configuration)
            try await body(HTTPSession(configuration: configuration))
            #expect(mock.requests.count == requestCount)
            if requestCount == 0 { #expect(mock.connectionCount == 0) }
        }
    }
}
