import Foundation
import MartletTesting

/// A file on an origin, and a folder to download it to.
struct DownloadScene {
    /// The origin.
    let origin: TestOrigin
    /// The folder.
    let directory: TemporaryDirectory

    /// Runs a test with both. Of `/bytes/N` the origin gives ranges; the bytes of `/held/N` behind the first half come
    /// when the gate is opened.
    static func run(
        gate: Gate = Gate(), _ body: (DownloadScene) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let routes = StandardRoutes().handler
        try await TestOrigin.withOrigin(.plain) { request in
            guard request.path.hasPrefix("/held/"), let count = UInt64(request.path.dropFirst(6)) else {
                return try await routes.respond(to: request)
            }
            return held(request, count, gate)
        } run: { origin in
            // What waits must not keep the origin from stopping.
            defer { gate.open() }
            try await body(DownloadScene(origin: origin, directory: directory))
        }
    }

    private static func held(_ request: OriginRequest, _ count: UInt64, _ gate: Gate) -> OriginResponse {
        let content = OriginContent(body: .pattern(count), entityTag: "\"held-\(count)\"")
        let whole = content.response(to: request)
        // A part that is asked for later comes at once.
        guard request.fields["Range"]?.hasPrefix("bytes=0-") == true, let length = whole.body.length else {
            return whole
        }
        return whole.with {
            $0.body = .stream(length: length) { writer in
                try await writer.write(TestPattern.bytes(from: 0, count: Int(length / 2)))
                await gate.pass()
                try await writer.write(
                    TestPattern.bytes(from: length / 2, count: Int(length - length / 2)))
            }
        }
    }

    /// Runs `martlet download` in the folder.
    func download(
        _ arguments: [String], input: String = "", environment: [String] = [],
        while body: (RunningProgram) async throws -> Void = { _ in }
    ) async throws -> Program.Run {
        try await Program.run(
            ["download"] + arguments, input: Array(input.utf8), in: directory, environment: environment,
            while: body)
    }

    /// The bytes of a file in the folder.
    func bytes(_ name: String) -> [UInt8] { OutputFile.bytes(of: directory.appending(name)) }

    /// The names in the folder.
    var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []).sorted()
    }

    /// The bytes of `/bytes/N` and `/held/N`.
    static func pattern(_ count: Int) -> [UInt8] { TestPattern.bytes(from: 0, count: count) }

    /// The objects of lines of JSON.
    static func objects(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
        }
    }
}
