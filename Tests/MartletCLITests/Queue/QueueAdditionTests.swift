import HTTPTypes
import Martlet
import MartletCore
import Testing

@testable import MartletCLI

@Suite("Requests made by queue add")
struct QueueAdditionTests {
    private func addition(_ words: String...) throws(UsageError) -> QueueAddition {
        var reader = CommandLineParser(QueueAddCommand.options)
        try reader.read(words)
        return try QueueAddition(reader.groups[0])
    }

    @Test("A request is made as get makes it: method, fields and body")
    func request() throws {
        let made = try addition("-d", "a=1", "-d", "b=2", "-H", "X-One: 1", "-A", "me", "h/p?q")
        #expect(made.request.method == .post && made.request.scheme == "http" && made.request.path == "/p?q")
        #expect(made.request.headerFields[.userAgent] == "me")
        #expect(made.body.contentType == "application/x-www-form-urlencoded")
        #expect(try made.body.bytesInMemory?.get() == Array("a=1&b=2".utf8))
        #expect(try addition("-T", "file", "h/").request.method == .put)
        #expect(try addition("-I", "h/").request.method == .head)
        #expect(try addition("-G", "-d", "a=1", "h/p").request.path == "/p?a=1")
    }

    @Test("The request stores no credentials, only that they are needed")
    func callers() throws {
        for words in [
            ["-u", "me:hunter2", "h/"], ["--oauth2-bearer", "hunter2", "h/"], ["http://me:hunter2@h/"],
        ] {
            var reader = CommandLineParser(QueueAddCommand.options)
            try reader.read(words)
            let request = try QueueAddition(reader.groups[0]).request
            #expect(request.headerFields[.authorization] == "-", "\(words)")
            #expect(!"\(request)".contains("hunter2"))
        }
        #expect(try addition("h/").request.headerFields[.authorization] == nil)
        #expect(
            try addition("-u", "a:b", "-H", "Authorization: X y", "h/").request.headerFields[.authorization]
                == "X y")
    }

    @Test("No URL, two URLs, and two bodies are errors")
    func counts() {
        #expect(throws: UsageError.self) { try addition() }
        #expect(throws: UsageError.self) { try addition("http://a/", "http://b/") }
        #expect(throws: UsageError.self) { try addition("-d", "x", "-T", "f", "http://a/") }
    }

    @Test("A header that removes a default field cannot be stored and is rejected")
    func omitted() {
        for words in [["-H", "Accept:"], ["-A", ""]] {
            do throws(UsageError) {
                _ = try addition(words[0], words[1], "h/")
                Issue.record("\(words) was taken")
            } catch {
                #expect(error.description.contains("queue run") && error.status == .usage, "\(error)")
            }
        }
    }

    @Test("A key in -H excludes --key and --no-key")
    func keys() throws {
        #expect(throws: UsageError.self) { try addition("--key", "a", "-H", "Idempotency-Key: b", "h/") }
        #expect(throws: UsageError.self) { try addition("--no-key", "-H", "Idempotency-Key: b", "h/") }
        #expect(try addition("-H", "Idempotency-Key: b", "h/").submission.key == .automatic)
    }
}
