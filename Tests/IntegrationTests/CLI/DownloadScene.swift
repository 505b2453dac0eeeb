import Foundation
import MartletTesting
import Testing

/// A file on an origin, and a directory to download it to.
struct DownloadScene {
    /// The origin of the files.
    let origin: TestOrigin
    /// The working directory of the program.
    let directory: TemporaryDirectory

    /// Options with timeouts that no machine exceeds: bytes that a test holds back are not a connection failure.
    static let patience = ["--stall-timeout", "600"]

    /// Runs a test with both. The origin serves `/bytes/N` and `/held/N` in ranges. The second half of the latter is
    /// sent when the gate is open, over any connection.
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
            // A waiting handler must not keep the origin from stopping.
            defer { gate.open() }
            try await body(DownloadScene(origin: origin, directory: directory))
        }
    }

    private static func held(_ request: OriginRequest, _ count: UInt64, _ gate: Gate) -> OriginResponse {
        let content = OriginContent(body: .pattern(count), entityTag: "\"held-\(count)\"")
        let answer = content.response(to: request)
        guard let length = answer.body.length else { return answer }
        var start: UInt64 = 0
        if answer.status == 206, let field = answer.headers["Content-Range"] {
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

    /// Runs `martlet download` in the directory.
    func download(
        _ arguments: [String], input: String = "", environment: [String] = [],
        while body: (RunningProgram) async throws -> Void = { _ in }
    ) async throws -> Program.Run {
        try await Program.run(
            ["download"] + arguments, input: Array(input.utf8), in: directory, environment: environment,
            while: body)
    }

    /// Runs `martlet download` in the directory, and sends SIGINT only to it when a closure returns.
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

    /// The bytes of a file in the directory.
    func bytes(_ name: String) -> [UInt8] { OutputFile.bytes(of: directory.appending(name)) }

    /// The names in the directory.
    var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: directory.path)) ?? []).sorted()
    }

    /// The bytes of `/bytes/N` and `/held/N`.
    static func pattern(_ count: Int) -> [UInt8] { TestPattern.bytes(from: 0, count: count) }

    /// The objects of JSON lines.
    static func objects(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
        }
    }
}
