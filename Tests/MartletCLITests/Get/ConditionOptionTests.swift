import Foundation
import MartletTesting
import MartletWire
import Testing

@testable import MartletCLI

@Suite("Conditional requests of get", .timeLimit(.minutes(10)))
struct ConditionOptionTests {
    private let old = "Sun, 06 Nov 1994 08:49:37 GMT"

    /// Serves a body that repeats the conditions of the request, with the age and the tag from the query.
    private func withOrigin(_ body: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin(.plain) { request in
            if request.path == "/304" { return OriginResponse(304) }
            let names = ["If-Modified-Since", "If-Unmodified-Since", "Last-Modified", "If-None-Match"]
            let lines = names.flatMap { name in request.headers.values(of: name).map { "\(name): \($0)" } }
            return OriginResponse.text(lines.joined(separator: "\n")).with { response in
                if request.path == "/old" { response.headers.append("Last-Modified", old) }
                if request.path == "/tag" { response.headers.append("ETag", "W/\"a b\" ") }
            }
        } run: { (origin) async throws in
            try await body(origin)
        }
    }

    @Test("-z requests newer content, with - older content, and with = as curl does")
    func fields() async throws {
        let scene = try GetScene()
        try await withOrigin { (origin) async throws in
            for (text, line) in [
                (old, "If-Modified-Since: \(old)"), ("+\(old)", "If-Modified-Since: \(old)"),
                ("-1994-11-06T08:49:37Z", "If-Unmodified-Since: \(old)"),
                ("=\(old)", "Last-Modified: \(old)"),
                ("neither", ""),
            ] {
                let report = try await scene.transfer("-z", text, "-o", scene.file("out"), origin.url("/"))
                #expect(report.status == .success)
                #expect(scene.text("out") == line, "\(text)")
            }
        }
    }

    @Test("-z reads the time of a file, and reports a value that is neither a date nor a file")
    func file() throws {
        let scene = try GetScene()
        try scene.write("x", to: "file")
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 784_111_777)], ofItemAtPath: scene.file("file"))
        let group = try GetScene.groups(["-z", "-" + scene.file("file")])[0]
        #expect(group.timeCondition?.date.text == old)
        #expect(group.timeCondition?.field == .ifUnmodifiedSince)
        #expect(group.global.warnings.isEmpty)
        let other = try GetScene.groups(["-z", old, "-z", scene.file("none")])[0]
        #expect(other.timeCondition == nil)
        #expect(other.global.warnings.count == 1)
    }

    @Test("A field of -H overrides -z")
    func header() async throws {
        let scene = try GetScene()
        try await withOrigin { (origin) async throws in
            let status = try await scene.run(
                "-H", "If-Modified-Since: mine", "-z", old, "-o", scene.file("out"), origin.url("/"))
            #expect(status == .success)
            #expect(scene.text("out") == "If-Modified-Since: mine")
        }
    }

    @Test("A response that does not meet the condition of -z is treated as a 304: no body, file unchanged")
    func simulated() async throws {
        let scene = try GetScene()
        try scene.write("before", to: "out")
        try await withOrigin { (origin) async throws in
            for (condition, status) in [
                ("1994-11-06T08:49:37Z", 304), ("1994-11-06T08:49:38Z", 304), ("-1994-11-06T08:49:37Z", 304),
            ] {
                let report = try await scene.transfer(
                    "-z", condition, "-o", scene.file("out"), origin.url("/old"))
                #expect(report.status == .success && report.effectiveStatus == status)
                #expect(scene.text("out") == "before")
                #expect(WriteOut(report).text("%{http_code}").pieces.first?.text == "304")
            }
            let newer = try await scene.transfer(
                "-z", "1994-11-06T08:49:36Z", "-o", scene.file("out"), origin.url("/old"))
            #expect(newer.effectiveStatus == 200)
            #expect(scene.text("out")?.hasPrefix("If-Modified-Since") == true)
        }
    }

    @Test("A 304 neither changes nor creates a file")
    func notModified() async throws {
        let scene = try GetScene()
        try scene.write("before", to: "out")
        try await withOrigin { (origin) async throws in
            for name in ["out", "never"] {
                #expect(try await scene.run("-o", scene.file(name), origin.url("/304")) == .success)
            }
        }
        #expect(scene.text("out") == "before")
        #expect(scene.text("never") == nil)
    }

    @Test("--etag-save writes the tag and a line break, --etag-compare sends it")
    func tags() async throws {
        let scene = try GetScene()
        let (tag, out) = (scene.file("a/b/tag"), scene.file("out"))
        try await withOrigin { (origin) async throws in
            let first = try await scene.run(
                "--etag-save", tag, "--etag-compare", tag, "--create-dirs", "-o", out, origin.url("/tag"))
            #expect(first == .success)
            #expect(scene.text("out") == "If-None-Match: \"\"")
            #expect(scene.text("a/b/tag") == "W/\"a b\"\n")
            #expect(try await scene.run("--etag-compare", tag, "-o", out, origin.url("/")) == .success)
            #expect(scene.text("out") == "If-None-Match: W/\"a b\"")
            // A 304 without a tag keeps the tag that it was compared with.
            _ = try await scene.run("--etag-compare", tag, "--etag-save", tag, "-o", out, origin.url("/304"))
            #expect(scene.text("a/b/tag") == "W/\"a b\"\n")
            // A response without a tag cannot be compared.
            _ = try await scene.run("--etag-save", tag, "-o", out, origin.url("/"))
            #expect(scene.text("a/b/tag")?.isEmpty == true)
            #expect(try await scene.run("--etag-compare", tag, "-o", out, origin.url("/")) == .success)
            #expect(scene.text("out") == "If-None-Match: \"\"")
        }
    }

    @Test("--etag-compare sends a tag that is not UTF-8 unchanged")
    func rawTag() async throws {
        let scene = try GetScene()
        let tag: [UInt8] = [0x22, 0xE9, 0x22]
        try scene.write(tag + [10], to: "tag")
        let script = ServerScript.respond("HTTP/1.1 304 Not Modified\r\n\r\n")
        try await TestOrigin.withOrigin(.plain, scripts: script) { (origin) async throws in
            let status = try await scene.run(
                "--etag-compare", scene.file("tag"), "-o", scene.file("out"), origin.url("/"))
            #expect(status == .success)
            let line = Array("If-None-Match: ".utf8) + tag + [13, 10]
            let sent = origin.recorder.transcript(ofConnection: 1)
            #expect(sent.indices.contains { sent[$0...].starts(with: line) })
        }
    }

    @Test("An incomplete body leaves the saved tag as it was")
    func truncated() async throws {
        let scene = try GetScene()
        try scene.write("\"old\"\n", to: "tag")
        try await TestOrigin.withOrigin(.plain, handler: StandardRoutes().handler) { (origin) async throws in
            let status = try await scene.run(
                "--etag-save", scene.file("tag"), "-o", scene.file("out"), origin.url("/truncate/10"))
            #expect(status == .partialBody)
            #expect(scene.text("tag") == "\"old\"\n")
        }
    }

    @Test("An unusable tag file ends the transfer before the request, and several URLs are rejected")
    func unusable() async throws {
        let scene = try GetScene()
        let url = "http://127.0.0.1:1/"
        #expect(try await scene.run("--etag-compare", scene.file("none"), url) == .readFailed)
        #expect(try await scene.run("--etag-save", scene.file("no/tag"), url) == .readFailed)
        #expect(try await scene.run("--etag-save", scene.file("tag"), url, url) == .usage)
        try scene.write("a\u{1}b", to: "bad")
        #expect(try await scene.run("--etag-compare", scene.file("bad"), url) == .usage)
    }
}
