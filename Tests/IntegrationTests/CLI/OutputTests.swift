import MartletContent
import Foundation
import MartletTesting
import Testing

@Suite("Output of get")
struct OutputTests {
    private func withRoutes(
        _ body: (TestOrigin, TemporaryDirectory) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            try await body(origin, directory)
        }
    }

    private func pattern(_ count: Int) -> [UInt8] { TestPattern.bytes(from: 0, count: count) }

    @Test("Only the body is written to standard output")
    func standardOutput() async throws {
        try await withRoutes { origin, _ in
            let run = try await Program.run("-v", origin.url("/bytes/300000"))
            #expect(run.output == pattern(300_000))
            #expect(run.errors.contains("> GET /bytes/300000 HTTP/1.1\n"))
            #expect(run.errors.contains("< HTTP/1.1 200 OK\n"))
            #expect(run.errors.contains("* Connected to \(origin.address)"))
        }
    }

    @Test("JSON prints retries and failures as separate lines, each with its transfer")
    func json() async throws {
        try await withRoutes { origin, directory in
            let url = origin.url("/status/503")
            let run = try await Program.run(
                ["--progress", "json", "-f", "--retry", "1", "--retry-delay", "0.01", "-o", "file", url],
                in: directory)
            #expect(run.status == 22)
            let events = try DownloadScene.objects(run.errors)
            #expect(events.allSatisfy { $0["name"] as? String == "file" && $0["url"] as? String == url })
            let names = events.compactMap { $0["event"] as? String }.filter { $0 != "progress" }
            #expect(names == ["start", "retrying", "finish"])
            let retrying = try #require(events.first { $0["event"] as? String == "retrying" })
            #expect(retrying["failures"] as? Int == 1 && retrying["message"] as? String != nil)
            #expect(events.last?["exit"] as? Int == 22 && events.last?["message"] as? String != nil)
        }
    }

    @Test("-v prints no credentials")
    func credentials() async throws {
        try await withRoutes { origin, _ in
            let run = try await Program.run(
                "-v", "-H", "Authorization: Bearer s3cret", "-H", "Cookie: id=s3cret", origin.url("/json"))
            #expect(run.errors.contains("> Authorization: ***\n"))
            #expect(!run.errors.contains("s3cret"))
        }
    }

    @Test("-o, one for each URL, and -O write files; --create-dirs and --output-dir set the location")
    func files() async throws {
        try await withRoutes { origin, directory in
            let run = try await Program.run(
                [
                    "-sS", "-o", "a/b/one", "--create-dirs", "-O", origin.url("/bytes/10"),
                    origin.url("/bytes/20"),
                    origin.url("/bytes/30"),
                ], in: directory)
            #expect(run.status == 0, "\(run.errors)")
            #expect(OutputFile.bytes(of: directory.appending("a/b/one")) == pattern(10))
            #expect(OutputFile.bytes(of: directory.appending("20")) == pattern(20))
            #expect(run.output == pattern(30))
            let placed = try await Program.run(
                ["-sS", "--output-dir", "a", "--remote-name-all", origin.url("/bytes/40")], in: directory)
            #expect(placed.status == 0, "\(placed.errors)")
            #expect(OutputFile.bytes(of: directory.appending("a/40")) == pattern(40))
        }
    }

    @Test("An empty body creates an empty file, and a failed connection creates no file")
    func emptyFile() async throws {
        try await withRoutes { origin, directory in
            _ = try await Program.run(["-sS", "-o", "empty", origin.url("/bytes/0")], in: directory)
            #expect(FileManager.default.fileExists(atPath: directory.appending("empty")))
            _ = try await Program.run(["-sS", "-o", "never", "http://127.0.0.1:1/"], in: directory)
            #expect(!FileManager.default.fileExists(atPath: directory.appending("never")))
        }
    }

    @Test("-O never leaves the directory", arguments: ["/bytes/", "/a/..", "/a/."])
    func unsafeName(_ path: String) async throws {
        try await withRoutes { origin, directory in
            let run = try await Program.run(["-sS", "-O", "--path-as-is", origin.url(path)], in: directory)
            #expect(run.status == 23)
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("-i, -I and -D print heads, including interim ones and trailers")
    func heads() async throws {
        try await withRoutes { origin, directory in
            let included = try await Program.run("-sSi", origin.url("/hints"))
            #expect(included.text.hasPrefix("HTTP/1.1 103 Early Hints\r\nLink: "))
            #expect(included.text.contains("\r\n\r\nHTTP/1.1 200 OK\r\n"))
            #expect(included.text.hasSuffix("\r\n\r\nhinted\n"))
            let head = try await Program.run("-sSI", origin.url("/bytes/9"))
            #expect(head.text.contains("Content-Length: 9\r\n"))
            #expect(head.text.hasSuffix("\r\n\r\n"))
            let dumped = try await Program.run(
                ["-sS", "-D", "heads", "-o", "body", origin.url("/chunked/10"), origin.url("/json")],
                in: directory)
            #expect(dumped.status == 0)
            let text = OutputFile.contents(of: directory.appending("heads"))
            #expect(text.components(separatedBy: "HTTP/1.1 200 OK\r\n").count == 3)
            #expect(text.contains("X-Body-Length: 10\r\n"))
            #expect(OutputFile.bytes(of: directory.appending("body")) == pattern(10))
        }
    }

    @Test("-f writes no body for a status of 400 or above; --fail-with-body does")
    func fail() async throws {
        try await withRoutes { origin, _ in
            let without = try await Program.run("-sf", origin.url("/status/404"))
            #expect(without.output.isEmpty)
            let with = try await Program.run("-s", "--fail-with-body", origin.url("/status/404"))
            #expect(with.text == "404 Not Found\n")
        }
    }

    @Test("--compressed decodes gzip and deflate", arguments: ["/gzip", "/deflate"])
    func compressed(_ path: String) async throws {
        try await withRoutes { origin, _ in
            #expect(
                try await Program.run("-sS", "--compressed", origin.url(path)).text.hasPrefix("This text"))
            let own = try await Program.run(
                "-sS", "--compressed", "-H", "Accept-Encoding: gzip, deflate", origin.url(path))
            #expect(own.text.hasPrefix("This text"))
            let coded = try await Program.run("-sS", origin.url(path))
            #expect(!coded.text.hasPrefix("This text"))
        }
    }

    @Test("--raw leaves the chunks in the body")
    func raw() async throws {
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n"
        try await TestOrigin.withOrigin(.plain, scripts: .keepAlive(answer)) { origin in
            let run = try await Program.run("-sS", "-m", "300", "--raw", origin.url("/"))
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.text == "5\r\nhello\r\n0\r\nX: y\r\n\r\n")
        }
    }

    @Test("The received part of a truncated body is kept, in a file and on standard output")
    func partial() async throws {
        try await withRoutes { origin, directory in
            let run = try await Program.run(
                ["-sS", "-o", "part", origin.url("/truncate/70000")], in: directory)
            #expect(run.status == 18)
            #expect(OutputFile.bytes(of: directory.appending("part")) == pattern(70_000))
            let shown = try await Program.run("-sS", origin.url("/truncate/70000"))
            #expect(shown.status == 18)
            #expect(shown.output == pattern(70_000))
        }
    }

    @Test("The program ends silently if its reader closes the pipe")
    func closedPipe() async throws {
        try await withRoutes { origin, directory in
            let script = "\"$1\" -sS \"$2\" 2>err | head -c 5 >out; echo ${PIPESTATUS[0]} >status"
            let run = try await Program.run(
                "bash", ["-c", script, "bash", Program.path, origin.url("/bytes/100000000")], input: [],
                in: directory)
            #expect(run.status == 0)
            #expect(OutputFile.bytes(of: directory.appending("out")) == pattern(5))
            #expect(OutputFile.contents(of: directory.appending("err")).isEmpty)
            #expect(OutputFile.contents(of: directory.appending("status")) == "23\n")
        }
    }

    @Test(
        "A gibibyte passes through in less than 64 MB of memory",
        .enabled(if: !MartletProgram.isSanitized, "a sanitizer's own memory would be measured"))
    func memory() async throws {
        try await withRoutes { origin, directory in
            // The shell's `wait` reports the kernel's count of the program's peak memory.
            let script = "exec python3 -c \"$0\" \"$@\""
            let python = """
                import resource, subprocess, sys
                code = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
                print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
                """
            let run = try await Program.run(
                "sh", ["-c", script, python, Program.path, "-sS", origin.url("/bytes/\(1 << 30)")], input: [],
                in: directory)
            let numbers = run.text.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }
            try #require(numbers.count == 2, "\(run.text) \(run.errors)")
            #expect(numbers[0] == 0)
            #expect(numbers[1] < 64 * 1024, "in KiB")
        }
    }
}
