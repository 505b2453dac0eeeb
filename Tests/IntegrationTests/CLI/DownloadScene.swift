import Foundation
import MartletTesting
import Testing

/// A file on an origin, and a folder to download it to.
struct DownloadScene {
    /// The origin.
    let origin: TestOrigin
    /// The folder.
    let directory: TemporaryDirectory

    /// Options by which no machine is too slow: that a test holds bytes back is no failure of the connection.
    static let patience = ["--stall-timeout", "600"]

    /// Runs a test with both. Of `/bytes/N` and `/held/N` the origin gives ranges; of the latter nothing behind the first
    /// half comes before the gate is open, whichever connection asks for it.
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
        let answer = content.response(to: request)
        guard let length = answer.body.length else { return answer }
        var start: UInt64 = 0
        if answer.status == 206, let field = answer.fields["Content-Range"] {
            start = UInt64(field.drop { !$0.isNumber }.prefix { $0.isNumber }) ?? 0
        }
        let middle = min(max(start, count / 2), start + length)
        return answer.with {
            $0.body = .stream(length: length) { [start] writer in
                try await writer.write(TestPattern.bytes(from: start, count: Int(middle - start)))
                guard middle < start + length else { return }
                await gate.pass()
                try await writer.write(TestPattern.bytes(from: middle, count: Int(start + length - middle)))
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

    /// Runs `martlet download` in the folder, and sends SIGINT to it alone when a closure returns.
    func interruptedDownload(
        _ arguments: [String], after body: (RunningProgram) async throws -> Void
    ) async throws -> Program.Run {
        try await Program.run(
            "sh", ["-c", "echo $$ >pid; exec \"$@\"", "sh", Program.path, "download"] + arguments, input: [],
            in: directory
        ) { running in
            try await body(running)
            let text = OutputFile.contents(of: directory.appending("pid"))
            let identifier = try #require(pid_t(text.dropLast()))
            #expect(kill(identifier, SIGINT) == 0)
        }
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
