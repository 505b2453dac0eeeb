import MartletConditions
import MartletContent
import Foundation
import MartletTesting
import Testing

@Suite("serve, demo, and the progress of downloads")
struct ServeTests {
    @Test("serve serves a directory over TLS, writes its authority's certificate, and ends on SIGTERM")
    func serve() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let site = try directory.makeDirectory("site")
        try directory.write("served\n", to: "site/page.txt")
        let child = try await ChildProcess.start(
            Program.path, ["serve", site, "--tls", "--ca-out", "ca.pem"], in: directory.path,
            outputPath: directory.appending("log"))
        try await child.waitForOutput("/\n")
        let base = child.output.trimmingCharacters(in: .newlines)
        #expect(base.hasPrefix("https://127.0.0.1:"))
        let run = try await Program.run(
            ["-sS", "--cacert", "ca.pem", "\(base)files/page.txt"], in: directory)
        #expect(run.text == "served\n", "\(run.errors)")
        let curl = try await Curl.run("--cacert", directory.appending("ca.pem"), "\(base)files/page.txt")
        #expect(curl.text == "served\n", "\(curl.message)")
        await child.stop()
        #expect(await child.waitForExit() == 0)
    }

    @Test("serve logs each request to standard error, and nothing with --quiet", arguments: [false, true])
    func log(isQuiet: Bool) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let script = "exec \"$@\" 2>errors"
        let child = try await ChildProcess.start(
            "sh", ["-c", script, "sh", Program.path, "serve"] + (isQuiet ? ["--quiet"] : []),
            in: directory.path, outputPath: directory.appending("log"))
        try await child.waitForOutput("/\n")
        let base = child.output.trimmingCharacters(in: .newlines)
        let run = try await Program.run("-sS", "\(base)status/204", "\(base)bytes/7?x")
        #expect(run.status == 0, "\(run.errors)")
        await child.stop()
        #expect(await child.waitForExit() == 0)
        let lines = OutputFile.contents(of: directory.appending("errors")).split(separator: "\n")
        #expect(lines.count == (isQuiet ? 0 : 2))
        if !isQuiet {
            #expect(lines.first?.hasPrefix("GET /status/204 204 0 bytes ") == true)
            #expect(lines.last?.hasPrefix("GET /bytes/7?x 200 7 bytes ") == true)
        }
    }

    @Test(
        "demo does everything it announces, without a proxy of the environment, and exits with 0",
        .enabled(if: !MartletProgram.isSanitized, "a sanitizer's own memory would be measured"))
    func demo() async throws {
        let proxy = "http://127.0.0.1:1"
        let run = try await Program.run(["demo"], environment: ["http_proxy=\(proxy)", "https_proxy=\(proxy)"])
        #expect(run.status == 0, "\(run.text)")
        #expect(!run.text.contains("FAILED"))
        #expect(run.text.contains("All 17 steps succeeded"))
        #expect(run.errors.isEmpty)
    }

    @Test("SIGINT ends a transfer with 130, and the received bytes are in the file")
    func interrupt() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let script =
                "env --default-signal=INT \"$1\" -s -o part \"$2\" & p=$!; "
                + "while [ ! -s part ]; do sleep 0.01; done; kill -INT $p; wait $p"
            let run = try await Program.run(
                "bash", ["-mc", script, "bash", Program.path, origin.url("/stall/5000")], input: [],
                in: directory)
            #expect(run.status == 130, "\(run.errors)")
            #expect(!OutputFile.bytes(of: directory.appending("part")).isEmpty)
        }
    }

    @Test("Progress as JSON has a start and a finish, with all bytes")
    func progressJSON() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        // The rest is sent once progress was shown, however late that is.
        let rest = Gate()
        try await TestOrigin.withOrigin(.plain) { _ in
            OriginResponse(
                body: .stream(length: 9000) { writer in
                    try await writer.write([UInt8](repeating: 1, count: 3000))
                    await rest.pass()
                    try await writer.write([UInt8](repeating: 2, count: 6000))
                })
        } run: { origin in
            defer { rest.open() }
            let run = try await Program.run(
                ["--progress", "json", "-o", "file", origin.url("/")], in: directory
            ) { running in
                try await running.waitForErrors("\"progress\"")
                rest.open()
            }
            let events = try run.errors.split(separator: "\n").map {
                try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
            }
            #expect(events.first?["event"] as? String == "start")
            #expect(events.dropFirst().dropLast().contains { $0["event"] as? String == "progress" })
            #expect(events.last?["event"] as? String == "finish")
            #expect(events.last?["bytes"] as? Int == 9000)
            #expect(events.last?["ok"] as? Bool == true)
        }
    }

    @Test(
        "Without a terminal progress is a plain line; -s, standard output and --no-progress-meter disable it"
    )
    func progressPlain() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let url = origin.url("/bytes/2048")
            let plain = try await Program.run(["-o", "file", url], in: directory)
            #expect(plain.errors.hasPrefix("file: 2.0 KiB in "))
            #expect(!plain.errors.contains("\r") && !plain.errors.contains("\u{1B}"))
            for silent in [
                ["-s", "-o", "file"], [], ["--no-progress-meter", "-o", "file"],
                ["--progress", "none", "-o", "file"],
            ] {
                #expect(try await Program.run(silent + [url], in: directory).errors.isEmpty, "\(silent)")
            }
            let bar = try await Program.run(["-#", "-o", "file", url], in: directory)
            #expect(bar.errors.hasPrefix("file: 2.0 KiB in ") && bar.errors.hasSuffix("\n"))
            #expect(!bar.errors.contains("\r") && !bar.errors.contains("\u{1B}"))
        }
    }
}
