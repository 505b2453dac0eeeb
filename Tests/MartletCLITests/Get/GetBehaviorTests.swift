import MartletContent
import Martlet
import MartletTesting
import Testing

@testable import MartletCLI

@Suite("Outputs, forms and codings of get, as in curl", .timeLimit(.minutes(10)))
struct GetBehaviorTests {
    @Test("A file that cannot be written fails only its own transfer, unless --fail-early is set")
    func unwritableFile() async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain) {
            .text($0.path)
        } run: { (origin) async throws in
            let words = [
                "-o", scene.file("none/a"), origin.url("/a"), "-o", scene.file("b"), origin.url("/b"),
                "--next", "-s",
                "-D", scene.file("none/heads"), "-o", scene.file("c"), origin.url("/c"), "--next", "-s", "-o",
                scene.file("d"), origin.url("/d"),
            ]
            #expect(try await scene.run(["--fail-early"] + words) == .writeFailed)
            #expect(scene.text("b") == nil && scene.text("d") == nil)
            #expect(try await scene.run(words) == .success)
            #expect(scene.text("b") == "/b" && scene.text("c") == nil && scene.text("d") == "/d")
        }
    }

    @Test("With --compressed an unknown coding exits with 61 and writes nothing")
    func unknownCoding() async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain) { request in
            OriginResponse(
                headers: ["Content-Encoding": "gzip, compress"],
                body: .text(request.path == "/empty" ? "" : "coded"))
        } run: { (origin) async throws in
            #expect(
                try await scene.run("--compressed", "-o", scene.file("a"), origin.url("/")) == .contentCoding)
            #expect(scene.text("a") == nil)
            #expect(
                try await scene.run("--compressed", "-o", scene.file("b"), origin.url("/empty")) == .success)
            #expect(try await scene.run("-o", scene.file("c"), origin.url("/")) == .success)
            #expect(scene.text("c") == "coded")
        }
    }

    @Test("-G sends the bytes of a file, even if they are not UTF-8")
    func queryBytes() async throws {
        let scene = try GetScene()
        try scene.write([0x61, 0x3D, 0xE9, 0xC3, 0xA4], to: "data")
        try await TestOrigin.withOrigin(.plain) {
            .text($0.target)
        } run: { (origin) async throws in
            let words = ["-G", "-d", "@\(scene.file("data"))", "-d", "b=ä", "-o", scene.file("out"), origin.url("/")]
            #expect(try await scene.run(words) == .success)
            #expect(scene.text("out") == "/?a=%E9%C3%A4&b=%C3%A4")
        }
    }

    @Test(
        "An option that an event stream cannot satisfy is rejected by name",
        arguments: [
            ["-i"], ["-I"], ["-D", "f"], ["-OJ"], ["-w", "%{http_code}"], ["-R"], ["-v"], ["--har", "f"],
            ["--timeline"], ["-z", "2030-01-01"], ["--etag-compare", "f"], ["--etag-save", "f"], ["--cache", "f"],
            ["--raw"], ["--fail-with-body"],
        ])
    func eventOptions(_ words: [String]) throws {
        let group = try GetScene.groups(["--sse", "http://127.0.0.1:1/"] + words)[0]
        let error = #expect(throws: UsageError.self) {
            try TransferPlan.plans(for: group, from: 0, caller: CredentialPlan())
        }
        let name = words[0] == "-OJ" ? "-J" : words[0]
        #expect(error?.description == "option --sse: cannot be used with \(name)" && error?.status == .usage)
    }

    @Test("A global option of a later group is rejected with an event stream as well", arguments: ["-v", "--timeline"])
    func laterOption(_ option: String) async throws {
        let url = "http://127.0.0.1:1/"
        #expect(try await GetScene().run("--sse", url, "--next", option, url) == .usage)
    }

    @Test("--retry applies to the status of an event stream")
    func eventRetry() async throws {
        let scene = try GetScene()
        let stream = OriginResponse(
            headers: ["Content-Type": "text/event-stream"], body: .text("retry: 100\n\ndata: a\n\n"))
        let handler = OriginHandler.inTurn([.status(500), .fixed(stream), .status(204)])
        try await TestOrigin.withOrigin(.plain, handler: handler) { (origin) async throws in
            let report = try await scene.transfer(
                "--sse", "--retry", "1", "-o", scene.file("out"), origin.url("/")
            ) { $0.retries.delay = .milliseconds(1) }
            #expect(report.status == .success, "\(report.message)")
            #expect(scene.text("out") == #"{"event":"message","id":"","data":"a"}"# + "\n")
            #expect(origin.requests.count == 3)
        }
    }

    @Test("An optional netrc file may be missing even if it is named")
    func optionalNetrc() async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain) {
            .text($0.path)
        } run: { (origin) async throws in
            let file = ["--netrc-file", scene.file("none"), "-o", scene.file("a"), origin.url("/a")]
            #expect(try await scene.run(["--netrc-optional"] + file) == .success)
            #expect(try await scene.run(["-n"] + file) == .readFailed)
        }
    }

    @Test("The type of a part follows its given file name, else its file")
    func partTypes() async throws {
        let scene = try GetScene()
        try scene.write("text", to: "in.txt")
        try await TestOrigin.withOrigin(.plain) { request in
            .text(try await request.collectText())
        } run: { (origin) async throws in
            for (attributes, type) in [
                (";filename=x", "text/plain"), (";filename=x.html", "text/html"), ("", "text/plain"),
                (";filename=x;type=a/b", "a/b"),
            ] {
                let form = "f=@\(scene.file("in.txt"))\(attributes)"
                #expect(try await scene.run("-F", form, "-o", scene.file("out"), origin.url("/")) == .success)
                #expect(scene.text("out")?.contains("Content-Type: \(type)\r\n") == true, "\(attributes)")
            }
        }
    }

    @Test("A proxy receives the same user agent as the server", arguments: [("me/1", "me/1"), ("", nil)])
    func userAgent(_ given: String, _ told: String?) throws {
        let group = try GetScene.groups(["-A", given, "http://h/"])[0]
        let configuration = try SessionPlan.configuration(for: group, usesTLS: false)
        #expect(configuration.userAgent == told)
    }

    @Test("A rejected certificate is reported with the number of OpenSSL")
    func verificationCodes() {
        let kinds: [(TLSError.Kind, Int?)] = [
            (.expired, 10), (.notYetValid, 9), (.selfSigned, 18), (.unknownAuthority, 20),
            (.badCertificate(reason: "", code: 24), 24), (.nameMismatch([]), 1), (.protocolVersion, nil),
        ]
        for (kind, code) in kinds { #expect(TLSError(kind).verificationCode == code) }
    }

    @Test("Printed heads cannot control the terminal")
    func shownHeads() {
        let head = Array("X-A: \u{9b}31m\u{202e}\ta\\b\u{e4}\r\nSet-Cookie: a=1\r\n".utf8)
        #expect(
            HeadText.shown(head, mark: "<") == "< X-A: \\u{9b}31m\\u{202e}\ta\\b\u{e4}\n< Set-Cookie: ***\n")
    }
}
