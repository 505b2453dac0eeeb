import MartletContent
import MartletTesting
import Testing

@Suite("Exit codes of get")
struct ExitCodeTests {
    @Test(
        "Each server error has the exit code of curl",
        arguments: [
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort", 18),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", 18),
            ("", 52),
            ("SSH-2.0-OpenSSH\r\n", 8),
            ("HTTP/1.1 2000 OK\r\n\r\n", 8),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 8),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 0),
        ])
    func server(_ answer: String, _ status: Int32) async throws {
        try await TestOrigin.withOrigin(.plain, scripts: .respond(answer)) { origin in
            let run = try await Program.run("-sS", origin.url("/"))
            #expect(run.status == status, "\(run.errors)")
            #expect(status == 0 ? run.errors.isEmpty : run.errors.hasPrefix("martlet: (\(status)) "))
        }
    }

    @Test(
        "Each connection error has its exit code",
        arguments: [
            (["-m", "0.3"], "/stall", 28), (["-m", "0.3"], "/stall/100", 28), ([], "/reset", 56),
            ([], "/truncate/100", 18), ([], "/truncate/100?chunked", 18), (["-f"], "/status/404", 22),
            (["-f"], "/status/400", 22), (["-f"], "/status/399", 0),
            (["--fail-with-body"], "/status/500", 22),
            ([], "/status/500", 0), (["--max-filesize", "99"], "/bytes/100", 63),
            (["--max-filesize", "99"], "/chunked/100", 63), (["--max-filesize", "100"], "/bytes/100", 0),
            (["-T", "/no/such/file"], "/upload", 26), (["-d", "@/no/such/file"], "/upload", 26),
            (["-o", "/no/such/directory/file"], "/json", 23), (["-O"], "/", 23),
        ])
    func route(_ arguments: [String], _ path: String, _ status: Int32) async throws {
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let run = try await Program.run(["-sS"] + arguments + [origin.url(path)])
            #expect(run.status == status, "\(run.errors)")
        }
    }

    @Test(
        "Each invalid URL has its exit code",
        arguments: [
            ("ftp://host/", 1), ("file:///etc/passwd", 1), ("http://", 3), ("http://ho st/", 3),
            ("http://host:99999/", 3), ("http://[::1/", 3), ("http://host/{a,b}", 3),
            // These have a scheme, and no host of the same name.
            ("https://\u{301}a.test/x", 3), ("http://\u{200D}a.test/x", 3), ("http:/x", 3),
            ("http://no-such-host.invalid/", 6), ("http://127.0.0.1:1/", 7),
        ])
    func url(_ url: String, _ status: Int32) async throws {
        let run = try await Program.run("-sS", url)
        #expect(run.status == status, "\(run.errors)")
    }

    @Test(
        "A line break in a field value is rejected, and nothing is sent",
        arguments: ["-A", "-e", "-b", "-r", "-H"])
    func lineBreak(_ option: String) async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let run = try await Program.run("-sS", option, "a: b=c\r\nX: y", origin.url("/"))
            #expect(run.status == 2, "\(run.errors)")
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("A content coding that cannot be decoded exits with 61")
    func coding() async throws {
        let answer = "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnone"
        try await TestOrigin.withOrigin(.plain, scripts: .respond(answer)) { origin in
            #expect(try await Program.run("-sS", "--compressed", origin.url("/")).status == 61)
            let left = try await Program.run("-sS", origin.url("/"))
            #expect(left.text == "none", "without --compressed nothing is undone")
        }
    }

    @Test("-s silences errors, and -S prints them again")
    func silence() async throws {
        #expect(try await Program.run("-s", "http://127.0.0.1:1/").errors.isEmpty)
        #expect(
            try await Program.run("-s", "-S", "http://127.0.0.1:1/").errors.hasPrefix(
                "martlet: (7) GET http://127.0.0.1:1/: "))
    }

    @Test("The last transfer sets the exit code, and --fail-early stops at the first failure")
    func several() async throws {
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { origin in
            let (bad, good) = (origin.url("/status/404"), origin.url("/json"))
            #expect(try await Program.run("-sf", bad, good).status == 0)
            #expect(try await Program.run("-sf", good, bad).status == 22)
            let early = try await Program.run("-sf", "--fail-early", bad, good)
            #expect(early.status == 22)
            #expect(early.output.isEmpty)
        }
    }
}
