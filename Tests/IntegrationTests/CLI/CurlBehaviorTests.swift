import MartletContent
import Foundation
import MartletTesting
import Synchronization
import Testing

@Suite("Details of curl's behavior")
struct CurlBehaviorTests {
    /// A command line for both; `HOST` is the host of the origin, `BASE` its URL.
    static let lines: [[String]] = [
        ["-T", "file", "BASE"], ["-T", "file", "HOST"], ["-T", "file", "BASE/dir/?x=1"],
        ["-T", "file", "BASE/dir/."], ["-T", "file", "BASE/dir/sub/.."], ["-T", "file", "BASE/dir/#f"],
        ["-T", "a b", "BASE/dir/"], ["-T", "/dev/null", "BASE/x"],
        ["-i", "-I", "-X", "GET", "BASE/"], ["-I", "-X", "POST", "BASE/"],
        ["BASE/?a[]=1"], ["BASE/?a[]=1&b[]=2"], ["BASE/a\\[b\\]"],
        ["HOST/x?u=http://y"], ["HOST/x?u=https://y/z#http://q"], ["HOST/a://b"],
        ["-w", "@format", "BASE/"], ["-H", "@fields", "BASE/"],
        ["--raw", "--compressed", "BASE/"], ["--netrc-file", "netrc", "USER/"],
        ["--netrc-file", "netrc", "BASE/"],
        ["-b", "@cookies", "BASE/"], ["-x", "PROXY/path", "http://a.test/p"],
        ["--retry", "1", "--retry-all-errors", "--retry-delay", "1", "-f", "BASE/once/404"],
        ["-C", "5", "--max-filesize", "3", "BASE/"], ["-C", "5", "BASE/"],
        ["-z", "2030-01-01", "--max-filesize", "3", "BASE/"],
        ["http:"], ["https:"], ["http:#x"], ["https:?q"],
    ]

    private static func handler() -> OriginHandler {
        let seen = Mutex(0)
        return OriginHandler { request in
            if request.path == "/once/404" {
                let count = seen.withLock { count in
                    count += 1
                    return count
                }
                // Each of the two programs sends two requests.
                if !count.isMultiple(of: 2) { return .text("", status: 404) }
            }
            let names = ["Authorization", "Cookie", "Accept-Encoding", "X-A", "X-B"]
            let fields = names.map { "\($0): \(request.headers[$0] ?? "-")" }.joined(separator: "\n")
            return .text(
                "\(request.method) \(request.target) \(request.headers["Content-Length"] ?? "-")\n\(fields)\n")
        }
    }

    private static let echo = OriginHandler { request in
        var bytes: [UInt8] = []
        for try await piece in request.body { bytes += piece }
        return .text(String(decoding: bytes, as: UTF8.self))
    }

    @Test("The same command line sends the same requests and prints the same output", arguments: lines)
    func same(_ line: [String]) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try directory.write("text", to: "file")
        try directory.write("text", to: "a b")
        try directory.write("code: %{http_code}\\n\nsize: %{size_download}\\n\r\n", to: "format")
        try directory.write("# a remark\nX-A: 1\n\nX-B: 2\n", to: "fields")
        let cookie = "127.0.0.1\tFALSE\t/\tFALSE\t0\tsid\t1\n"
        try directory.write(cookie, to: "cookies")
        try directory.write(
            "machine 127.0.0.1 login first password p1\nmachine 127.0.0.1 login second password p2\n",
            to: "netrc")
        try await TestOrigin.withOrigin(.plain, handler: CurlBehaviorTests.handler()) { origin in
            let host = "127.0.0.1:\(origin.port)"
            let arguments =
                ["-q", "-sS"]
                + line.map { word in
                    word.replacing("BASE", with: "http://\(host)").replacing("HOST", with: host)
                        .replacing("USER", with: "http://second@\(host)")
                        .replacing("PROXY", with: "http://\(host)")
                }
            let ours = try await Program.run(arguments, in: directory)
            let theirs = try await Program.run("curl", arguments, input: [], in: directory)
            let date = /Date: [^\r]*\r\n/
            // The supported codings differ between the two programs.
            let codings = /Accept-Encoding: [^\n]*[a-z][^\n]*\n/
            func shown(_ text: String) -> String {
                text.replacing(date, with: "").replacing(codings, with: "Accept-Encoding: some\n")
            }
            #expect(shown(ours.text) == shown(theirs.text), "\(line): \(ours.errors)")
            #expect(ours.status == theirs.status, "\(line): \(ours.errors)")
        }
    }

    @Test("A user without a netrc entry does not get another user's password, unlike in curl 7.88")
    func stranger() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try directory.write("machine 127.0.0.1 login first password p1\n", to: "netrc")
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { origin in
            let url = "http://third@127.0.0.1:\(origin.port)/"
            let run = try await Program.run(["-sS", "--netrc-file", "netrc", url], in: directory)
            #expect(run.status == 0)
            // This encodes “third:”.
            #expect(origin.requests.map { $0.headers["Authorization"] } == ["Basic dGhpcmQ6"])
        }
    }

    @Test("A body ends with its connection if its length is to be ignored")
    func ignoredLength() async throws {
        for length in ["100", "3, 4", "x"] {
            let script = ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\nhello"), .close
            )
            try await TestOrigin.withOrigin(scripts: script, script) { origin in
                let run = try await Program.run("-sS", "--ignore-content-length", origin.url())
                #expect(run.status == 0 && run.text == "hello", "\(run.errors)")
                let without = try await Program.run("-sS", origin.url())
                #expect(without.status != 0)
            }
        }
    }

    @Test("Any failure of a handshake is a TLS failure: exit code 35, as in curl", arguments: [false, true])
    func handshake(_ isReset: Bool) async throws {
        // The server reads one byte of the ClientHello.
        let script = ServerScript(.expect([22]), isReset ? .reset : .close)
        try await TestOrigin.withOrigin(scripts: script, script) { origin in
            let arguments = ["-q", "-sSk", "https://127.0.0.1:\(origin.port)/"]
            let ours = try await Program.run(arguments)
            let theirs = try await Program.run("curl", arguments, input: [], in: nil)
            #expect(ours.status == 35 && theirs.status == 35, "\(ours.errors) \(theirs.errors)")
        }
    }

    @Test("An address that this machine does not have exits with 45, as in curl")
    func foreignAddress() async throws {
        try await TestOrigin.withOrigin(.plain, handler: .fixed(.text("x"))) { origin in
            let arguments = ["-q", "-sS", "--interface", "203.0.113.77", origin.url()]
            let ours = try await Program.run(arguments)
            let theirs = try await Program.run("curl", arguments, input: [], in: nil)
            #expect(ours.status == 45 && theirs.status == 45, "\(ours.errors)")
        }
    }

    @Test("Several different Location fields are an invalid reply")
    func differingLocations() async throws {
        let script = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 302 x\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let run = try await Program.run("-sSL", origin.url())
            #expect(run.status == 8, "\(run.errors)")
        }
    }

    @Test("The boundary in the caller's Content-Type is used")
    func ownBoundary() async throws {
        try await TestOrigin.withOrigin(.plain, handler: CurlBehaviorTests.echo) { origin in
            let run = try await Program.run(
                "-sS", "-F", "a=b", "-H", "Content-Type: multipart/form-data; boundary=own", origin.url())
            #expect(
                run.text == "--own\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--own--\r\n",
                "\(run.errors)")
        }
    }

    @Test("A pipe is sent in chunks, and as a part of a form")
    func pipes() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        try await TestOrigin.withOrigin(.plain, handler: CurlBehaviorTests.echo) { origin in
            let program = Program.path
            for (words, expected) in [("-T <(printf hello)", "hello"), ("-F 'f=@<(printf hello)'", nil)] {
                let command = "'\(program)' -sS \(words) '\(origin.url("/x"))'"
                    .replacing("'f=@<(printf hello)'", with: "f=@<(printf hello)")
                let run = try await Program.run("bash", ["-c", command], input: [], in: directory)
                #expect(run.status == 0, "\(run.errors)")
                if let expected {
                    #expect(run.text == expected)
                } else {
                    #expect(run.text.contains("\r\n\r\nhello\r\n"))
                }
            }
        }
    }

    @Test(
        "-OJ accepts malformed Content-Disposition fields",
        arguments: [
            "filename=\"t.txt\"", "attachment; filename=two words.txt",
            "attachment; filename=a.martlet-record",
        ])
    func looseNames(_ disposition: String) async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let answer = OriginResponse.text("x").with { $0.headers.append("Content-Disposition", disposition) }
        try await TestOrigin.withOrigin(.plain, handler: .fixed(answer)) { origin in
            let run = try await Program.run(["-sSOJ", origin.url("/url")], in: directory)
            #expect(run.status == 0, "\(run.errors)")
            let expected = ["t.txt", "two words.txt", "a_martlet-record"].first { name in
                disposition.replacing(".martlet-", with: "_martlet-").contains(name)
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == [expected])
        }
    }

    @Test("A raw body includes its trailers, which are not printed again")
    func rawTrailers() async throws {
        let body = "4\r\nabcd\r\n0\r\nX-T: 1\r\n\r\n"
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(body)"),
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let run = try await Program.run("-sSi", "--raw", origin.url())
            #expect(run.text.hasSuffix("\r\n\r\n\(body)"), "\(run.text)")
        }
    }
}
