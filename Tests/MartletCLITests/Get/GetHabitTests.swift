import MartletContent
import Martlet
import MartletTesting
import Testing

@testable import MartletCLI

@Suite("Outputs, forms and codings of get, as curl has them", .timeLimit(.minutes(10)))
struct GetHabitTests {
    @Test("A file that cannot be written ends its own transfer alone, unless the first failure is to end all")
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

    @Test("With --compressed a coding that cannot be undone is 61, and nothing of it is written")
    func unknownCoding() async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain) { request in
            OriginResponse(
                fields: ["Content-Encoding": "gzip, compress"],
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

    @Test("A netrc that need not be there may be missing also where it is named")
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

    @Test("A part's type is that of the name it is given, else that of its file")
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

    @Test("A proxy is told of the same user agent as the server", arguments: [("me/1", "me/1"), ("", nil)])
    func userAgent(_ given: String, _ told: String?) throws {
        let group = try GetScene.groups(["-A", given, "http://h/"])[0]
        let configuration = try SessionPlan.configuration(for: group, usesTLS: false)
        #expect(configuration.userAgent == told)
    }

    @Test("Why a certificate is refused has OpenSSL's number")
    func verificationCodes() {
        let kinds: [(TLSError.Kind, Int?)] = [
            (.expired, 10), (.notYetValid, 9), (.selfSigned, 18), (.unknownAuthority, 20),
            (.badCertificate(reason: "", code: 24), 24), (.nameMismatch([]), 1), (.protocolVersion, nil),
        ]
        for (kind, code) in kinds { #expect(TLSError(kind).verificationCode == code) }
    }

    @Test("Heads that are shown command no terminal")
    func shownHeads() {
        let head = Array("X-A: \u{9b}31m\u{202e}\ta\\b\u{e4}\r\nSet-Cookie: a=1\r\n".utf8)
        #expect(
            HeadText.shown(head, mark: "<") == "< X-A: \\u{9b}31m\\u{202e}\ta\\b\u{e4}\n< Set-Cookie: ***\n")
    }
}
