import Foundation
import HTTPTypes
import MartletTesting
import MartletWire
import Synchronization
import Testing

@testable import MartletCLI

@Suite("Resuming partial files with -C", .timeLimit(.minutes(10)))
struct ResumeOffsetTests {
    private static let whole = "0123456789"

    /// Serves ten bytes, with ranges or as the path says, and echoes request bodies.
    private func withOrigin(_ body: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            let text = ResumeOffsetTests.whole
            switch request.path {
            case "/whole": return .text(text)
            case "/other":
                return OriginResponse(
                    206, headers: ["Content-Range": "bytes 2-9/10"], body: .text("23456789"))
            case "/416":
                return OriginResponse(416, headers: ["Content-Range": "bytes */10"], body: .text("no"))
            case "/416-bare": return OriginResponse(416, body: .text("no"))
            case "/404": return .text("no", status: 404)
            case "/304": return OriginResponse(304)
            default:
                guard let range = request.headers["Range"], range.hasPrefix("bytes="), range.hasSuffix("-"),
                    let first = Int(range.dropFirst(6).dropLast())
                else { return .text(text) }
                return OriginResponse(
                    206, headers: ["Content-Range": "bytes \(first)-9/10"],
                    body: .text(String(text.dropFirst(first))))
            }
        } run: { (origin) async throws in
            try await body(origin)
        }
    }

    /// Runs a command line whose file has five bytes, and returns the content of the file afterwards.
    private func text(_ origin: TestOrigin, _ path: String, _ words: String...) async throws -> String {
        let scene = try GetScene()
        try scene.write("01234", to: "part")
        let status = try await scene.run(words + ["-o", scene.file("part"), origin.url(path)])
        return "\(status.code) \(scene.text("part") ?? "")"
    }

    @Test("- resumes at the size of the file, a number at that offset, and the body is appended")
    func rest() async throws {
        try await withOrigin { (origin) async throws in
            #expect(try await text(origin, "/", "-C", "-") == "0 0123456789")
            #expect(try await text(origin, "/", "-C", "5") == "0 0123456789")
            #expect(try await text(origin, "/", "--continue-at", "3") == "0 012343456789")
            #expect(try await text(origin, "/", "-C", "0") == "0 0123456789")
            #expect(origin.requests.map { $0.headers["Range"] } == ["bytes=5-", "bytes=5-", "bytes=3-", nil])
        }
    }

    @Test("Without a file the transfer starts at the first byte")
    func noFile() async throws {
        let scene = try GetScene()
        try await withOrigin { (origin) async throws in
            #expect(try await scene.run("-C", "-", "-o", scene.file("new"), origin.url("/")) == .success)
            #expect(scene.text("new") == ResumeOffsetTests.whole)
            #expect(origin.requests.last?.headers["Range"] == nil)
        }
    }

    @Test("A complete file stays as it is with success: after a 416, or a 200 of the same length")
    func complete() async throws {
        try await withOrigin { (origin) async throws in
            for path in ["/416", "/whole"] {
                for words in [["-C", "10"], ["-f", "-C", "10"], ["-i", "-C", "10"]] {
                    let scene = try GetScene()
                    try scene.write(ResumeOffsetTests.whole, to: "part")
                    let status = try await scene.run(words + ["-o", scene.file("part"), origin.url(path)])
                    #expect(status == .success, "\(path) \(words)")
                    if words[0] != "-i" { #expect(scene.text("part") == ResumeOffsetTests.whole) }
                }
            }
        }
    }

    @Test("A wrong range exits with 33, or with 22 under -f, and leaves the file as it was")
    func rejected() async throws {
        try await withOrigin { (origin) async throws in
            for path in ["/whole", "/other", "/416", "/416-bare", "/404"] {
                #expect(try await text(origin, path, "-C", "-") == "33 01234", "\(path)")
                #expect(try await text(origin, path, "-i", "-C", "-") == "33 01234", "\(path)")
            }
            #expect(try await text(origin, "/404", "-f", "-C", "-") == "22 01234")
            #expect(try await text(origin, "/404", "--fail-with-body", "-C", "-") == "22 01234")
            #expect(try await text(origin, "/304", "-C", "-") == "0 01234")
            // An explicit range is sent, and does not match the rest of the file.
            #expect(try await text(origin, "/", "-H", "Range: bytes=1-", "-C", "-") == "33 01234")
        }
    }

    @Test("A retry starts at the offset of the first attempt, not at the cut")
    func retry() async throws {
        let scene = try GetScene()
        try scene.write("01234", to: "part")
        let count = Mutex(0)
        try await TestOrigin.withOrigin(.plain) { request in
            let number = count.withLock { count in
                count += 1
                return count
            }
            let fields: OriginFields = ["Content-Range": "bytes 5-9/10"]
            let answer = OriginResponse(206, headers: fields, body: .text("56789"))
            return number > 1
                ? answer : answer.with { $0.fault = OriginFault(.close, afterBodyBytes: 2) }
        } run: { (origin) async throws in
            let status = try await scene.run(
                "--retry", "2", "--retry-delay", "0.01", "--retry-all-errors", "-C", "-", "-o",
                scene.file("part"), origin.url("/"))
            #expect(status == .success)
            #expect(scene.text("part") == ResumeOffsetTests.whole)
            #expect(origin.requests.map { $0.headers["Range"] } == ["bytes=5-", "bytes=5-"])
        }
    }

    @Test("With -T the rest of the file is sent, with - all of it, and Content-Range says which part")
    func upload() async throws {
        let scene = try GetScene()
        try scene.write("01234", to: "file")
        try await TestOrigin.withOrigin(.plain, handler: .mirror) { (origin) async throws in
            for (offset, body, range) in [
                ("2", "234", "bytes 2-4/5"), ("-", "01234", "bytes 0-4/5"), ("0", "01234", nil),
            ] {
                let status = try await scene.run(
                    "-C", offset, "-T", scene.file("file"), "-o", scene.file("out"), origin.url("/f"))
                #expect(status == .success)
                #expect(scene.text("out") == body)
                #expect(origin.requests.last?.headers["Content-Range"] == range)
                #expect(origin.requests.last?.headers["Content-Length"] == "\(body.count)")
                #expect(origin.requests.last?.headers["Range"] == nil)
            }
            for offset in ["5", "99"] {
                let status = try await scene.run("-C", offset, "-T", scene.file("file"), origin.url("/f"))
                #expect(status == .partialBody)
            }
        }
    }

    @Test("A file that cannot be resumed is rejected before the request, and a missing one is created")
    func opening() async throws {
        let scene = try GetScene()
        try await TestOrigin.withOrigin(.plain, handler: .mirror) { (origin) async throws in
            let status = try await scene.run("-C", "5", "-o", scene.file("none/out"), origin.url("/"))
            #expect(status == .writeFailed)
            #expect(origin.requests.isEmpty)
        }
        #expect(
            try await scene.run("-C", "5", "-o", scene.file("new"), "http://127.0.0.1:1/") == .connectFailed)
        #expect(scene.text("new")?.isEmpty == true)
    }

    @Test("A file that is named by the response head cannot contain that head", arguments: ["-i", "-I"])
    func headOfProposedName(_ option: String) async throws {
        let group = try GetScene.groups(["-OJ", option, "http://127.0.0.1:1/f"])[0]
        let caller = try await CredentialPlan.load(group)
        let error = #expect(throws: UsageError.self) {
            try TransferPlan.plans(for: group, from: 0, caller: caller)
        }
        #expect(error?.description.hasPrefix("option -J: ") == true)
    }

    @Test(
        "Options that cannot be resumed are rejected by name",
        arguments: [
            ["-C", "x"], ["-C", "-1"], ["-C", "-O"], ["-C", "5", "-r", "1-2"], ["-C", "5", "-d", "x"],
            ["-C", "5", "-F", "a=b"], ["-C", "-", "-OJ"], ["-C", "5", "-T", "-"], ["-C", "5", "--sse"],
        ])
    func senseless(_ words: [String]) async throws {
        let error = await #expect(throws: UsageError.self) {
            let group = try GetScene.groups(words + ["http://127.0.0.1:1/f"])[0]
            let caller = try await CredentialPlan.load(group)
            _ = try TransferPlan.plans(for: group, from: 0, caller: caller)
        }
        #expect(error?.status == .usage && error?.description.hasPrefix("option -C: ") == true)
    }

    @Test("The status and Content-Range decide about a response")
    func answers() throws {
        func answer(_ status: Int, _ fields: (String, String)...) throws -> ResumeResponse {
            var block = FieldBlock()
            for (name, value) in fields { block.append(name: name, value: value) }
            let head = ResponseHead(version: .http11, status: status, fields: block)
            return ResumeResponse(head, at: 5, .get)
        }
        #expect(try answer(206, ("Content-Range", "bytes 5-9/10")) == .rest)
        #expect(try answer(206, ("Content-Range", "bytes 5-9/*")) == .rest)
        #expect(try answer(206, ("Content-Range", "bytes 6-9/10")).isRejection)
        #expect(try answer(206, ("Content-Type", "multipart/byteranges; boundary=x")).isRejection)
        #expect(try answer(416, ("Content-Range", "bytes */5")) == .complete)
        #expect(try answer(416, ("Content-Range", "bytes */4")).isRejection)
        #expect(try answer(416).isRejection)
        #expect(try answer(200, ("Content-Length", "5")) == .complete)
        #expect(try answer(200, ("Content-Length", "6")).isRejection)
        #expect(try answer(204) == .complete)
        #expect(try answer(302, ("Location", "/")).isRejection)
    }
}
