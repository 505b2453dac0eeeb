import Foundation
import Martlet
import MartletTesting
import Testing

/// The requests of Martlet and curl with the same options, as bytes on the wire.
///
/// Two fields differ by design and are left out: `User-Agent`, which names the client, and `Accept-Encoding`, which
/// Martlet sends by default and curl on demand. `Expect` differs, too: curl adds it to file uploads by default, Martlet
/// on demand, so curl's is disabled. The order of fields has no meaning across names (RFC 9110 §5.3), and each client
/// has its own order.
@Suite("Requests of Martlet and of curl")
struct RequestComparisonTests {
    private struct Sent: Equatable {
        var method: String
        var target: String
        var version: String
        /// The field lines with lower-case names, sorted.
        var fields: [String]
        var body: String
    }

    /// Sends the same request by both clients to an origin that records heads and echoes bodies.
    private func expectSame(
        _ options: [String], path: String = "/",
        _ ask: @Sendable (HTTPSession, String) async throws -> HTTPExchange
    ) async throws {
        try await TestOrigin.withOrigin { request in
            .bytes(try await request.collectBody())
        } run: { origin in
            let curl = try await Curl.run(options + [origin.url(path)])
            let martlet = try await ask(HTTPSession.plain(), origin.url(path))
            let requests = origin.requests
            try #require(requests.count == 2)
            // HEAD has no body, and curl writes the head in its place.
            let isHead = requests[0].method == .head
            let theirs = sent(requests[0], isHead ? "" : curl.text)
            let ours = sent(requests[1], martlet.text)
            #expect(ours == theirs)
        }
    }

    private func sent(_ request: RecordedRequest, _ body: String) -> Sent {
        let fields = request.headers.map { "\($0.name.lowercased()): \($0.value)" }
        let compared = fields.filter { !$0.hasPrefix("user-agent:") && !$0.hasPrefix("accept-encoding:") }
        return Sent(
            method: request.method.rawValue, target: request.target, version: request.version,
            fields: compared.sorted(), body: body)
    }

    @Test("A plain GET is the same")
    func get() async throws {
        try await expectSame([]) { session, url in try await session.get(url) }
    }

    @Test("A target with a query, a fragment and escapes is the same")
    func target() async throws {
        try await expectSame([], path: "/a%20b/c;d=1?e=f%26g&h=i%C3%A9#fragment") { session, url in
            try await session.get(url)
        }
    }

    @Test("Dot segments are treated the same")
    func dotSegments() async throws {
        try await expectSame([], path: "/a/./b/../c?d=../e") { session, url in try await session.get(url) }
    }

    @Test("HEAD is the same")
    func head() async throws {
        try await expectSame(["--head"]) { session, url in try await session.head(url) }
    }

    @Test("DELETE without a body is the same")
    func delete() async throws {
        try await expectSame(["-X", "DELETE"]) { session, url in try await session.delete(url) }
    }

    @Test("Custom fields are the same")
    func fields() async throws {
        try await expectSame(["-H", "X-Nest: high, low", "-H", "Accept: text/html", "-H", "X-Empty;"]) {
            session, url in
            let nest = try #require(HTTPField.Name("X-Nest"))
            let empty = try #require(HTTPField.Name("X-Empty"))
            return try await session.get(
                url, headers: [.init(nest): "high, low", .accept: "text/html", .init(empty): ""])
        }
    }

    @Test("Cookies are one line")
    func cookies() async throws {
        try await expectSame(["-H", "Cookie: a=1; b=2"]) { session, url in
            try await session.get(url, headers: [.cookie: "a=1; b=2"])
        }
    }

    @Test("A posted form is the same")
    func form() async throws {
        try await expectSame(["-d", "name=martlet&legs=0"]) { session, url in
            try await session.post(
                url,
                body: .form([
                    QueryItem(name: "name", value: "martlet"), QueryItem(name: "legs", value: "0"),
                ]))
        }
    }

    @Test("Posted bytes with a type are the same")
    func post() async throws {
        let options = ["-H", "Content-Type: text/csv", "--data-binary", "a,b\n1,2\n"]
        try await expectSame(options) { session, url in
            try await session.post(url, body: .text("a,b\n1,2\n", contentType: "text/csv"))
        }
    }

    @Test("An empty POST has Content-Length: 0")
    func emptyPost() async throws {
        try await expectSame(["-X", "POST", "-H", "Content-Type: text/plain", "-d", ""]) { session, url in
            try await session.post(url, body: .text("", contentType: "text/plain"))
        }
    }

    @Test("An uploaded file is the same")
    func upload() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let file = try directory.write("from a file", to: "file.txt")
        try await expectSame(["-H", "Expect:", "-T", file], path: "/file.txt") { session, url in
            try await session.put(url, body: .file(FilePath(file), contentType: nil))
        }
    }

    @Test("A body without a length is sent in chunks")
    func chunked() async throws {
        let directory = try TemporaryDirectory()
        defer { directory.remove() }
        let file = try directory.write("from a stream", to: "file.txt")
        let options = ["-H", "Expect:", "-H", "Transfer-Encoding: chunked", "-T", file]
        try await expectSame(options, path: "/file.txt") { session, url in
            let pieces = [Array("from ".utf8), Array("a stream".utf8)]
            let stream = AsyncStream { continuation in
                pieces.forEach { continuation.yield($0) }
                continuation.finish()
            }
            return try await session.put(url, body: .once(stream, contentType: nil))
        }
    }

    @Test("A range is the same")
    func range() async throws {
        try await expectSame(["-r", "5-8"]) { session, url in
            try await session.get(url, headers: [.range: "bytes=5-8"])
        }
    }

    @Test("Under HTTP/1.0 Martlet adds Connection: close, and all else is the same")
    func http10() async throws {
        // curl leaves the end of the connection implicit.
        try await expectSame(["--http1.0", "-H", "Connection: close"]) { session, url in
            var options = RequestOptions()
            options.version = .http10
            return try await session.get(url, headers: [.connection: "close"], options: options)
        }
    }
}
