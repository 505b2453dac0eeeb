import Foundation
import MartletTesting
import Testing

@Suite("Options of get that are not supported")
struct RejectedOptionTests {
    static let later = [
        "--ntlm", "--negotiate", "--aws-sigv4", "--preproxy", "--socks4", "--proxy-header",
        "--proxy-negotiate", "--proxy-ntlm", "--rate", "--xattr",
        "--libcurl", "--http2", "--http3", "--http0.9", "--tlsv1.0", "--sslv3", "-2", "-M",
        "--request-target", "--url-query", "--trace", "--proto", "-t", "-Q", "-a", "-l",
    ]

    @Test(
        "An unsupported option of curl is rejected by name, and nothing is sent", arguments: later)
    func rejected(_ option: String) async throws {
        try await TestOrigin.withOrigin(.plain, handler: .echo) { origin in
            let run = try await Program.run(option, origin.url("/"))
            #expect(run.status == 2)
            #expect(run.errors.hasPrefix("martlet: (2) option \(option): "), "\(run.errors)")
            #expect(!run.errors.contains("unknown"))
            #expect(run.output.isEmpty)
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("A rejected letter is found within a cluster")
    func cluster() async throws {
        let run = try await Program.run("-sSM", "http://127.0.0.1/")
        #expect(run.status == 2)
        #expect(run.errors == "martlet: (2) option -M: this is not supported\n")
    }

    @Test(
        "An argument that is not UTF-8 is rejected with its position, and nothing is sent or written",
        arguments: ["-d $'\\xe9'", "-o $'\\xe9'", "-H $'X-A: \\xe9'"])
    func notUTF8(_ option: String) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: .echo) { origin in
            let script = "exec \"$1\" \(option) \"$2\""
            let run = try await Program.run(
                "bash", ["-c", script, "bash", Program.path, origin.url("/")], input: [], in: directory)
            #expect(run.status == 2 && run.output.isEmpty)
            #expect(run.errors.hasPrefix("martlet: (2) argument 2 is not UTF-8; "), "\(run.errors)")
            #expect(origin.connectionCount == 0)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
        }
    }

    @Test(
        "An invalid command line exits with 2",
        arguments: [
            ["--no-such-option", "http://h/"], ["-?", "http://h/"], [], ["-o"], ["http://h/", "-X"],
            ["-H", "no colon", "http://h/"], ["-H", "a b: c", "http://h/"],
            ["-H", "A: b\r\nC: d", "http://h/"],
            ["-X", "TWO WORDS", "http://h/"], ["-I", "-d", "x", "http://h/"],
            ["-T", "f", "-d", "x", "http://h/"],
            ["-m", "soon", "http://h/"], ["--resolve", "h:80", "http://h/"],
            ["--connect-to", "h", "http://h/"],
            ["--tls-max", "1.1", "http://h/"], ["--cert-type", "ENG", "http://h/"],
            ["--key-type", "P12", "http://h/"],
            ["--no-tcp-nodelay", "http://h/"], ["--no-proxy-basic", "http://h/"], ["--no-no-buffer", "http://h/"],
            ["--progress", "no", "http://h/"], ["--proto-redir", "=htps", "http://h/"],
            ["--max-filesize", "-1", "http://h/"], ["--next", "http://h/"],
            ["-o", "a", "-o", "b", "http://h/"],
            ["batch", "--no-such-option"], ["batch", "--parallel", "0"], ["batch", "--cache", ""],
            ["--offline", "http://h/"], ["--stale-if-error", "60", "http://h/"],
            ["--cache", "", "http://h/"],
            ["--cache", "c", "--stale-if-error", "soon", "http://h/"],
            ["--cache", "c", "--offline", "--raw", "http://h/"], ["--cache", "/dev/null", "http://h/"],
            [
                "--cache", "c", "--stale-if-error", "1", "http://h/", "--next", "--cache", "./c",
                "--stale-if-error", "2", "http://h/",
            ],
            ["serve", "/no/such/folder"], ["downlaod"], ["help", "serv"], ["queue", "lst"],
            ["serve", "--ca-out", "f"], ["demo", "--no-such-option"],
        ])
    func usage(_ arguments: [String]) async throws {
        let run = try await Program.run(arguments)
        #expect(run.status == 2, "\(run.errors)")
        #expect(!run.errors.isEmpty)
        #expect(run.output.isEmpty)
    }

    @Test(
        "A failure names the exit code, the request, the reason and a remedy",
        arguments: [
            (
                ["--create-dirs", "-o", "/proc/nope/x"],
                "(23) GET URL: could not write to /proc/nope/x: No such file or directory"
            ),
            (["-o", "/proc/nope"], "(23) GET URL: could not write to /proc/nope: No such file or directory"),
            (["-f", "-X", "OPTIONS"], "(22) OPTIONS URL: the status is 418"),
            (["-T", "/no/such/file"], "(26) PUT URL: /no/such/file: "),
            (["--offline", "--cache", "c"], "(104) GET URL: the response is not in the cache"),
            (["--max-filesize", "1"], "(63) GET URL: the body has "),
            (["-C", "1", "-o", "f"], "(33) GET URL: the response to the range request has status 418"),
        ])
    func failures(_ options: [String], _ message: String) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("a teapot", status: 418))) { origin in
            let url = origin.url("/pot")
            let run = try await Program.run(options + ["--no-progress-meter", url], in: directory)
            #expect(run.errors.hasPrefix("martlet: " + message.replacing("URL", with: url)), "\(run.errors)")
        }
    }

    @Test(
        "A mistake in the options of a command without curl's options names the command to try",
        arguments: [
            (["serve", "--port", "abc"], "The value 'abc' is invalid for '--port <port>'; try martlet serve --help"),
            (["cache", "stats"], "Missing expected argument '--cache <dir>'; try martlet cache stats --help"),
            (["cache", "bogus"], "Unexpected argument 'bogus'; try martlet cache --help"),
            (["demo", "extra"], "Unexpected argument 'extra'; try martlet demo --help"),
            (["serve", "/no/such/folder"], "“/no/such/folder” is not a directory; try martlet serve --help"),
        ])
    func remedies(_ words: [String], _ message: String) async throws {
        let run = try await Program.run(words)
        #expect(run.errors == "martlet: (2) \(message)\n" && run.status == 2, "\(run.errors)")
    }

    @Test("Help and version are printed, and the exit code is 0")
    func help() async throws {
        let version = try await Program.run("-V")
        #expect(version.status == 0)
        #expect(version.text.hasPrefix("martlet "))
        for arguments in [
            ["--help"], ["get", "--help"], ["batch", "--help"], ["help", "serve"], ["demo", "-h"], ["help"],
            ["help", "all"],
        ] {
            let run = try await Program.run(arguments)
            #expect(run.status == 0, "\(arguments)")
            #expect(run.text.contains("USAGE"), "\(arguments)")
        }
        let listed = try await Program.run("-h")
        #expect(listed.status == 0)
    }
}
