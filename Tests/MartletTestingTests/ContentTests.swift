import FoundationEssentials
import MartletTesting
import MartletTransport
import Testing

@Suite("Ranges and validators")
struct ContentTests {
    /// A handler for the text 0123456789, last modified at 2001-09-09 01:46:40 UTC.
    private static let handler = OriginHandler.content(
        OriginContent(
            body: .text("0123456789"), contentType: "text/plain", entityTag: "\"v1\"",
            lastModified: Date(timeIntervalSince1970: 1_000_000_000)))
    private static let modified = "Sun, 09 Sep 2001 01:46:40 GMT"

    private func answer(_ fields: String, method: String = "GET") async throws -> RawResponse {
        let mock = MockTransport(handler: ContentTests.handler)
        let client = try await RawClient(mock)
        return try await client.get("/", method: method, fields: fields)
    }

    @Test(
        "A request for one range returns exactly its bytes",
        arguments: [
            ("bytes=0-0", "0", "bytes 0-0/10"), ("bytes=2-4", "234", "bytes 2-4/10"),
            ("bytes=7-", "789", "bytes 7-9/10"), ("bytes=-3", "789", "bytes 7-9/10"),
            ("bytes=5-99", "56789", "bytes 5-9/10"), ("bytes=-99", "0123456789", "bytes 0-9/10"),
        ])
    func answersRange(_ range: String, _ body: String, _ contentRange: String) async throws {
        let answer = try await answer("Range: \(range)\r\n")
        #expect(answer.status == 206)
        #expect(answer.text == body)
        #expect(answer.field("Content-Range") == contentRange)
        #expect(answer.field("ETag") == "\"v1\"")
    }

    @Test(
        "A range after the end is 416 with the length", arguments: ["bytes=10-", "bytes=99-100", "bytes=-0"])
    func refusesRange(_ range: String) async throws {
        let answer = try await answer("Range: \(range)\r\n")
        #expect(answer.status == 416)
        #expect(answer.field("Content-Range") == "bytes */10")
    }

    @Test(
        "Several ranges, other units and malformed ranges return the whole file",
        arguments: ["bytes=0-1,3-4", "lines=0-1", "bytes=4-2", "bytes=", "bytes=a-b", "bytes=+1-2"])
    func ignoresRange(_ range: String) async throws {
        let answer = try await answer("Range: \(range)\r\n")
        #expect(answer.status == 200)
        #expect(answer.text == "0123456789")
    }

    @Test("If-Range with the current version returns the range", arguments: ["\"v1\"", modified])
    func keepsRange(_ validator: String) async throws {
        #expect(try await answer("Range: bytes=0-0\r\nIf-Range: \(validator)\r\n").status == 206)
    }

    @Test(
        "If-Range with another version, a weak tag or another date returns the whole file",
        arguments: ["\"v2\"", "W/\"v1\"", "Sun, 09 Sep 2001 01:46:41 GMT", "yesterday"])
    func dropsRange(_ validator: String) async throws {
        #expect(try await answer("Range: bytes=0-0\r\nIf-Range: \(validator)\r\n").status == 200)
    }

    @Test(
        "A matching If-None-Match returns 304 without a body",
        arguments: ["\"v1\"", "W/\"v1\"", "\"a\", \"v1\"", "*"])
    func notModifiedByTag(_ tags: String) async throws {
        let answer = try await answer("If-None-Match: \(tags)\r\n")
        #expect(answer.status == 304)
        #expect(answer.field("ETag") == "\"v1\"")
        #expect(answer.field("Content-Length") == nil)
    }

    @Test("A malformed entity tag matches nothing", arguments: ["v1", "\"v1", "W/v1", "w/\"v1\""])
    func malformedTags(_ tag: String) async throws {
        #expect(try await answer("If-None-Match: \(tag)\r\n").status == 200)
        #expect(try await answer("If-Match: \(tag)\r\n").status == 412)
        #expect(try await answer("Range: bytes=0-0\r\nIf-Range: \(tag)\r\n").status == 200)
    }

    @Test("If-None-Match takes precedence over If-Modified-Since")
    func tagOutweighsDate() async throws {
        let fields = "If-None-Match: \"v0\"\r\nIf-Modified-Since: \(ContentTests.modified)\r\n"
        #expect(try await answer(fields).status == 200)
    }

    @Test("If-Modified-Since with the date of the last change or later returns 304")
    func notModifiedByDate() async throws {
        #expect(try await answer("If-Modified-Since: \(ContentTests.modified)\r\n").status == 304)
        #expect(try await answer("If-Modified-Since: Mon, 10 Sep 2001 00:00:00 GMT\r\n").status == 304)
        #expect(try await answer("If-Modified-Since: Sun, 09 Sep 2001 01:46:39 GMT\r\n").status == 200)
        #expect(try await answer("If-Modified-Since: garbage\r\n").status == 200)
    }

    @Test("A failed If-Match or If-Unmodified-Since returns 412")
    func preconditionFails() async throws {
        #expect(try await answer("If-Match: \"v2\"\r\n").status == 412)
        #expect(try await answer("If-Match: W/\"v1\"\r\n").status == 412)
        #expect(try await answer("If-Match: \"v1\"\r\n").status == 200)
        #expect(try await answer("If-Unmodified-Since: Sat, 08 Sep 2001 00:00:00 GMT\r\n").status == 412)
    }

    @Test("An asterisk matches content without an entity tag, and a tag does not")
    func asteriskWithoutTag() async throws {
        let mock = MockTransport(handler: .content(OriginContent(body: .text("0123456789"))))
        let client = try await RawClient(mock)
        #expect(try await client.get("/", fields: "If-Match: *\r\n").status == 200)
        #expect(try await client.get("/", fields: "If-Match: \"v1\"\r\n").status == 412)
        #expect(try await client.get("/", fields: "If-None-Match: *\r\n").status == 304)
        #expect(try await client.get("/", fields: "If-None-Match: \"v1\"\r\n").status == 200)
        #expect(try await client.get("/", method: "PUT", fields: "If-None-Match: *\r\n").status == 412)
    }

    @Test("HEAD returns the full length and ignores ranges")
    func answersHead() async throws {
        let answer = try await answer("Range: bytes=0-0\r\n", method: "HEAD")
        #expect(answer.status == 200)
        #expect(answer.field("Content-Length") == "10")
        #expect(answer.field("Accept-Ranges") == "bytes")
    }
}
