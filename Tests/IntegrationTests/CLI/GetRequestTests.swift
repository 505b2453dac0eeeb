import Foundation
import Martlet
import MartletTesting
import Testing

@Suite("Requests from the options of get")
struct GetRequestTests {
    /// A command line, and a check of the request that the origin received.
    struct Case: Sendable, CustomTestStringConvertible {
        var arguments: [String]
        var path = "/echo"
        var input = ""
        var see: @Sendable (EchoReport) -> Bool

        var testDescription: String { arguments.joined(separator: " ") }
    }

    static let cases: [Case] = [
        Case(arguments: []) { $0.method == "GET" && $0.header("accept") == "*/*" && $0.bodyLength == 0 },
        Case(arguments: ["-X", "PATCH"]) { $0.method == "PATCH" },
        Case(arguments: ["-XPURGE"]) { $0.method == "PURGE" },
        Case(arguments: ["-H", "X-One: 1", "-H", "X-Two:2", "-H", "X-One: 3"]) {
            $0.headers.filter { $0[0].hasPrefix("X-") } == [
                ["X-One", "1"], ["X-Two", "2"], ["X-One", "3"],
            ]
        },
        Case(arguments: ["-H", "Accept:"]) { $0.header("accept") == nil },
        Case(arguments: ["-H", "X-Empty;"]) { $0.header("x-empty")?.isEmpty == true },
        Case(arguments: ["-H", "Host: other.test"]) { $0.header("host") == "other.test" },
        Case(arguments: ["-H", "@lines"]) { $0.header("x-file") == "yes" && $0.header("x-more") == "also" },
        Case(arguments: ["-d", "a=1", "--data", "b=2"]) {
            $0.method == "POST" && $0.body == "a=1&b=2"
                && $0.header("content-type") == "application/x-www-form-urlencoded"
        },
        Case(arguments: ["-d", "@text"]) { $0.body == "one two" },
        Case(arguments: ["-d", "@-"], input: "in\nput") { $0.body == "input" },
        Case(arguments: ["--data-raw", "@text"]) { $0.body == "@text" },
        Case(arguments: ["--data-binary", "@text"]) { $0.body == "one \ntwo\n" },
        Case(arguments: ["--data-urlencode", "a=b c&d"]) { $0.body == "a=b+c%26d" },
        Case(arguments: ["--data-urlencode", "=ä", "--data-urlencode", "f@text"]) {
            $0.body == "%C3%A4&f=one+%0Atwo%0A"
        },
        // With both `=` and `@` in the text, the equals sign counts, and no file is read.
        Case(arguments: ["--data-urlencode", "me@text=1"]) { $0.body == "me@text=1" },
        // A combining character after `=` or `:` does not change their meaning.
        Case(arguments: ["--data-urlencode", "a=\u{301}b"]) { $0.body == "a=%CC%81b" },
        Case(arguments: ["-b", "a=\u{200D}b"]) { $0.header("cookie") == "a=\u{200D}b" },
        Case(arguments: ["-H", "X-Mark:\u{301}v"]) { $0.header("x-mark") == "\u{301}v" },
        Case(arguments: ["-F", "a=\u{301}b;type=text/x"]) {
            $0.body?.contains("Content-Type: text/x\r\n\r\n\u{301}b\r\n") == true
        },
        Case(arguments: ["-F", "a=b", "-H", "Content-Type: multipart/related"]) {
            guard let type = $0.header("content-type"), type.hasPrefix("multipart/related; boundary="),
                let mark = type.firstIndex(of: "=")
            else { return false }
            return $0.body?.hasPrefix("--" + type[type.index(after: mark)...] + "\r\n") == true
        },
        Case(arguments: ["--json", "{\"a\":", "--json", "1}"]) {
            $0.method == "POST" && $0.body == "{\"a\":1}" && $0.header("accept") == "application/json"
                && $0.header("content-type") == "application/json"
        },
        Case(arguments: ["-d", "x", "-H", "Content-Type: text/plain"]) {
            $0.header("content-type") == "text/plain"
        },
        Case(arguments: ["-G", "-d", "q=1", "-d", "r=2"]) {
            $0.method == "GET" && $0.target == "/echo?q=1&r=2" && $0.bodyLength == 0
        },
        Case(arguments: ["-G", "-d", "q=1"], path: "/echo?x") { $0.target == "/echo?x&q=1" },
        Case(arguments: ["-T", "text"]) {
            $0.method == "PUT" && $0.body == "one \ntwo\n" && $0.header("content-length") == "9"
                && $0.header("content-type") == nil
        },
        Case(arguments: ["-T", "-"], input: "piped") {
            $0.method == "PUT" && $0.body == "piped" && $0.header("transfer-encoding") == "chunked"
        },
        Case(arguments: ["-T", "text", "-X", "POST"]) { $0.method == "POST" && $0.bodyLength == 9 },
        Case(arguments: ["-T", "text", "-H", "Transfer-Encoding: chunked"]) {
            $0.bodyLength == 9 && $0.header("content-length") == nil
        },
        Case(arguments: ["-A", "tests/1"]) { $0.header("user-agent") == "tests/1" },
        Case(arguments: ["-A", ""]) { $0.header("user-agent") == nil },
        Case(arguments: ["-e", "http://from.test/"]) { $0.header("referer") == "http://from.test/" },
        Case(arguments: ["-r", "5-9"]) { $0.header("range") == "bytes=5-9" },
        Case(arguments: ["-r", "5"]) { $0.header("range") == "bytes=5-" },
        Case(arguments: ["--compressed"]) { $0.header("accept-encoding") == ContentCoding.acceptedNames },
        Case(arguments: ["--http1.0"]) { $0.version == "1.0" },
        Case(arguments: ["-0"]) { $0.version == "1.0" },
        Case(arguments: ["--http1.1"]) { $0.version == "1.1" },
        Case(arguments: ["-H", "Expect: 100-continue", "-d", "x", "--expect100-timeout", "5"]) {
            $0.header("expect") == "100-continue" && $0.body == "x"
        },
        Case(arguments: [
            "-sSf", "-4", "-N", "-q", "--tcp-nodelay", "--no-keepalive", "--keepalive-time", "9",
        ]) {
            $0.method == "GET"
        },
        Case(arguments: ["-K", "config"]) { $0.method == "PUT" && $0.body == "from \"config\"" },
        Case(arguments: ["-K", "-"], input: "request = \"OPTIONS\"\n# no\nheader: \"X-A: b\"\n") {
            $0.method == "OPTIONS" && $0.header("x-a") == "b"
        },
    ]

    @Test("An option of get changes the request as in curl", arguments: cases)
    func option(_ scene: Case) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try directory.write("one \ntwo\n", to: "text")
        try directory.write("X-File: yes\r\nX-More: also\n", to: "lines")
        try directory.write("-X PUT\n--data-raw \"from \\\"config\\\"\"\n", to: "config")
        try await TestOrigin.withOrigin(.plain, handler: .echo) { origin in
            let run = try await Program.run(
                scene.arguments + [origin.url(scene.path)], input: Array(scene.input.utf8), in: directory)
            #expect(run.status == 0, "\(run.errors)")
            let report = try JSONDecoder().decode(EchoReport.self, from: Data(run.output))
            #expect(scene.see(report), "\(run.text)")
        }
    }

    @Test("--path-as-is keeps dot segments in the path; without it they are removed")
    func pathAsIs() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .echo) { origin in
            let kept = try await Program.run("--path-as-is", origin.url("/a/../b/./c"))
            #expect(kept.text.contains("\"target\":\"/a/../b/./c\""))
            let removed = try await Program.run(origin.url("/a/../b/./c"))
            #expect(removed.text.contains("\"target\":\"/b/c\""))
        }
    }

    @Test("--resolve, --connect-to and --interface set the addresses and keep the names")
    func addresses() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .headers) { origin in
            let port = origin.port
            let resolved = try await Program.run(
                "--resolve", "name.test:\(port):127.0.0.1", "http://name.test:\(port)/")
            #expect(resolved.text.contains("Host: name.test:\(port)\n"), "\(resolved.errors)")
            let elsewhere = try await Program.run(
                "--connect-to", "name.test:80:127.0.0.1:\(port)", "http://name.test/")
            #expect(elsewhere.text.contains("Host: name.test\n"), "\(elsewhere.errors)")
            let local = try await Program.run(
                "--interface", "127.0.0.9", "-o", "/dev/null", "-w", "%{local_ip}", origin.url("/"))
            #expect(local.text == "127.0.0.9", "\(local.errors)")
        }
    }

    @Test("--unix-socket and --abstract-unix-socket connect to a unix domain socket")
    func unixSockets() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let path = directory.appending("socket")
        try await TestOrigin.withOrigin(.unix(path: path), handler: .fixed(.text("by path"))) { _ in
            let run = try await Program.run("--unix-socket", path, "http://localhost/")
            #expect(run.text == "by path", "\(run.errors)")
        }
        let name = "martlet-\(UUID().uuidString)"
        try await TestOrigin.withOrigin(.unix(path: "@\(name)"), handler: .fixed(.text("by name"))) { _ in
            let run = try await Program.run("--abstract-unix-socket", name, "http://localhost/")
            #expect(run.text == "by name", "\(run.errors)")
        }
    }

    @Test("Several URLs share a connection, and --next gives a URL separate options")
    func severalURLs() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .echo) { origin in
            let url = origin.url("/echo")
            let run = try await Program.run(
                "-w", "\\n", "-d", "x", url, url, "--next", "-w", "\\n", "-X", "DELETE", url)
            let reports = try run.text.split(separator: "\n").map {
                try JSONDecoder().decode(EchoReport.self, from: Data($0.utf8))
            }
            #expect(reports.map(\.method) == ["POST", "POST", "DELETE"])
            #expect(reports.map(\.body) == ["x", "x", ""])
            #expect(reports.map(\.connection) == [1, 1, 1])
        }
    }
}
