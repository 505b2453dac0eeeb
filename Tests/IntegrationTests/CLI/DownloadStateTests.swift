import MartletCredentials
import Foundation
import MartletTesting
import Testing

@Suite("martlet download --state")
struct DownloadStateTests {
    /// An origin, and a working directory.
    private struct Scene {
        let origin: TestOrigin
        let directory: TemporaryDirectory

        /// Runs `martlet download --state queue` in the directory.
        func download(
            _ arguments: [String] = [], while body: (RunningProgram) async throws -> Void = { _ in }
        ) async throws -> Program.Run {
            try await Program.run(
                ["download", "--state", "queue", "--progress", "json", "--segments", "1"] + arguments,
                in: directory,
                while: body)
        }

        /// Runs it from a shell that writes the process identifier to a file, so that a test can send a signal.
        func signaled(
            _ arguments: [String], _ signal: Int32, when text: String
        ) async throws -> Program.Run {
            // A shell makes its background jobs ignore SIGINT.
            let script = "env --default-signal=INT \"$0\" \"$@\" & echo $! >pid; wait $!"
            let words =
                [
                    "-c", script, Program.path, "download", "--state", "queue", "--progress", "json",
                    // Another connection would race for the held bytes.
                    "--segments", "1",
                ]
                + arguments
            return try await Program.run("bash", words, input: [], in: directory) { running in
                try await running.waitForErrors(text)
                let pid = try #require(
                    pid_t(OutputFile.contents(of: directory.appending("pid")).dropLast()))
                #expect(kill(pid, signal) == 0)
            }
        }

        func bytes(_ name: String) -> [UInt8] { OutputFile.bytes(of: directory.appending(name)) }

        func names(_ subdirectory: String = "") -> [String] {
            let path = subdirectory.isEmpty ? directory.path : directory.appending(subdirectory)
            return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
        }
    }

    /// The origin serves `/held/N` in ranges. It sends the second half when the gate is open, to requests from the
    /// first byte.
    private func withScene(_ gate: Gate, _ body: (Scene) async throws -> Void) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let routes = StandardRoutes().handler
        try await TestOrigin.withOrigin(.plain) { request in
            if request.path == "/secret", request.headers["Authorization"] != "Bearer t0ken" {
                return OriginResponse.text("who?\n", status: 401)
            }
            if request.path == "/secret" { return OriginResponse.text("told\n") }
            guard request.path.hasPrefix("/held/"), let count = UInt64(request.path.dropFirst(6)) else {
                return try await routes.respond(to: request)
            }
            let content = OriginContent(body: .pattern(count), entityTag: "\"held-\(count)\"")
            let whole = content.response(to: request)
            guard request.headers["Range"].map({ $0.hasPrefix("bytes=0-") }) ?? true,
                let length = whole.body.length
            else { return whole }
            return whole.with {
                $0.body = .stream(length: length) { writer in
                    try await writer.write(TestPattern.bytes(from: 0, count: Int(length / 2)))
                    await gate.pass()
                    try await writer.write(
                        TestPattern.bytes(from: length / 2, count: Int(length - length / 2)))
                }
            }
        } run: { origin in
            // A waiting handler must not keep the origin from stopping.
            defer { gate.open() }
            try await body(Scene(origin: origin, directory: directory))
        }
    }

    private func objects(_ run: Program.Run) throws -> [[String: Any]] {
        try run.errors.split(separator: "\n").map {
            try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any] ?? [:]
        }
    }

    private func events(_ run: Program.Run) throws -> [String] {
        try objects(run).compactMap { $0["event"] as? String }.filter { $0 != "progress" }
    }

    @Test("Downloads are added to the directory, finished, and removed from it")
    func done() async throws {
        try await withScene(Gate()) { scene in
            let urls = [scene.origin.url("/bytes/70000"), scene.origin.url("/bytes/9")]
            let run = try await scene.download(["--max-files", "1"] + urls)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.output.isEmpty)
            #expect(scene.bytes("70000") == TestPattern.bytes(from: 0, count: 70_000))
            #expect(scene.bytes("9") == TestPattern.bytes(from: 0, count: 9))
            #expect(scene.names("queue") == ["lock"])
            let events = try events(run)
            #expect(events.last == "ended", "\(run.errors)")
            #expect(events.sorted() == ["ended", "finished", "finished", "started", "started"])
            let requestCount = scene.origin.requests.count
            let again = try await scene.download()
            #expect(again.status == 0 && scene.origin.requests.count == requestCount)
            #expect(try self.events(again) == ["ended"])
        }
    }

    @Test(
        "The next program resumes a stopped or killed one, without a URL",
        arguments: [
            SIGINT, SIGTERM, SIGKILL,
        ])
    func stopped(_ signal: Int32) async throws {
        let gate = Gate()
        try await withScene(gate) { scene in
            let (held, small) = (scene.origin.url("/held/400000"), scene.origin.url("/bytes/11"))
            let first = try await scene.signaled(
                ["--max-files", "1", "--dir", "files", "--create-dirs", held, small], signal,
                when: "\"bytes\":200000")
            #expect(first.status == 128 + signal, "\(first.errors)")
            #expect(scene.names("files").contains { $0.hasPrefix("400000.martlet-") })
            if signal != SIGKILL {
                let objects = try objects(first)
                let paused = objects.filter { $0["event"] as? String == "paused" }
                #expect(paused.contains { $0["kept"] as? Int == 200_000 }, "\(first.errors)")
                #expect(objects.last?["exit"] as? Int == Int(128 + signal))
            }
            gate.open()
            let second = try await scene.download()
            #expect(second.status == 0, "\(second.errors)")
            #expect(scene.names("files") == ["11", "400000"])
            #expect(scene.bytes("files/400000") == TestPattern.bytes(from: 0, count: 400_000))
            #expect(scene.bytes("files/11") == TestPattern.bytes(from: 0, count: 11))
            #expect(scene.names("queue") == ["lock"])
            if signal != SIGKILL {
                // Only the missing bytes were sent.
                let ranges = scene.origin.requests.filter { $0.target == "/held/400000" }.compactMap {
                    $0.headers["Range"]
                }
                #expect(ranges.count == 1 && ranges.last?.hasPrefix("bytes=200000-") == true, "\(ranges)")
            }
        }
    }

    @Test("The text output says how to resume")
    func words() async throws {
        try await withScene(Gate()) { scene in
            let run = try await scene.signaled(
                ["--progress", "plain", "-v", scene.origin.url("/held/4000")], SIGINT, when: "* ")
            #expect(run.status == 130, "\(run.errors)")
            #expect(run.errors.contains("martlet: stopped."))
            #expect(run.errors.hasSuffix("To resume: martlet download --state queue\n"), "\(run.errors)")
        }
    }

    @Test("A second program with the directory exits with 106 and says so; the first one continues")
    func twoPrograms() async throws {
        let gate = Gate()
        try await withScene(gate) { scene in
            let first = try await scene.download([scene.origin.url("/held/1000")]) { running in
                try await running.waitForErrors("\"bytes\":500")
                let second = try await scene.download([scene.origin.url("/bytes/5")])
                #expect(second.status == 106)
                #expect(second.errors.hasPrefix("martlet: (106) option --state: "), "\(second.errors)")
                #expect(second.errors.contains("another download manager uses this directory"))
                gate.open()
            }
            #expect(first.status == 0, "\(first.errors)")
            #expect(scene.names() == ["1000", "queue"])
        }
    }

    @Test("Credentials are not stored, and given again without a URL they apply to the stored downloads")
    func credentials() async throws {
        try await withScene(Gate()) { scene in
            let rejected = try await scene.download([
                "--oauth2-bearer", "wr0ng", scene.origin.url("/secret"),
            ])
            #expect(rejected.status == 22, "\(rejected.errors)")
            #expect(scene.names("queue") == ["1.item", "lock"])
            for name in scene.names("queue") {
                let text = String(decoding: scene.bytes("queue/\(name)"), as: UTF8.self)
                #expect(!text.contains("wr0ng"))
            }
            let other = try await scene.download([
                "--oauth2-bearer", "t0ken", scene.origin.url("/bytes/5"),
            ])
            #expect(other.status == 22, "the other one was not meant: \(other.errors)")
            #expect(scene.names() == ["5", "queue"])
            let run = try await scene.download(["--oauth2-bearer", "t0ken"])
            #expect(run.status == 0, "\(run.errors)")
            #expect(scene.bytes("secret") == Array("told\n".utf8))
        }
    }

    @Test("A damaged file of the directory is reported, and the other downloads finish")
    func damaged() async throws {
        try await withScene(Gate()) { scene in
            let failed = try await scene.download([scene.origin.url("/status/404")])
            #expect(failed.status == 22)
            let path = scene.directory.appending("queue/1.item")
            var bytes = OutputFile.bytes(of: path)
            bytes[bytes.count / 2] ^= 0x55
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            let run = try await scene.download([scene.origin.url("/bytes/5")])
            #expect(run.status == 0, "\(run.errors)")
            let warning = try #require(try objects(run).first { $0["event"] as? String == "warning" })
            #expect((warning["message"] as? String)?.contains("corrupt/1.item") == true)
            #expect(scene.names() == ["5", "queue"])
        }
    }
}
