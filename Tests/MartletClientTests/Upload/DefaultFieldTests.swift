@testable import MartletContent
@testable import MartletURL
import Martlet
import MartletTesting
import Testing

@testable import MartletCore

@Suite("Default fields of requests")
struct DefaultFieldTests {
    private static let url = "http://a.example/p?q=1"

    private func head(
        of method: HTTPRequest.Method = .get, _ fields: HTTPFields = HTTPFields(), body: HTTPBody = .none,
        options: RequestOptions = RequestOptions(), _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) async throws -> String {
        var configuration = SessionConfiguration.ephemeral
        configuration.userAgent = "test/1"
        change(&configuration)
        let session = HTTPSession(configuration: configuration)
        let url = try HTTPURL(DefaultFieldTests.url)
        let request = HTTPRequest(method: method, url: url, headers: fields)
        let call = try Call(
            request: request, url: url, body: body, options: options, settings: session.settings)
        let composer = RequestComposer(call: call)
        let sent = try composer.compose(try await composer.prepareBody())
        return String(decoding: sent.head, as: UTF8.self)
    }

    @Test("A request without fields has Host, User-Agent, Accept and Accept-Encoding")
    func plain() async throws {
        #expect(
            try await head()
                == "GET /p?q=1 HTTP/1.1\r\nHost: a.example\r\nUser-Agent: test/1\r\nAccept: */*\r\n"
                + "Accept-Encoding: \(ContentCoding.acceptedNames)\r\n\r\n")
    }

    @Test("A field of the request replaces the session's field and Martlet's default")
    func overriding() async throws {
        let text = try await head([.accept: "text/plain", .userAgent: "mine"]) { $0.headers[.accept] = "a/b" }
        #expect(
            text == "GET /p?q=1 HTTP/1.1\r\nHost: a.example\r\nAccept: text/plain\r\nUser-Agent: mine\r\n"
                + "Accept-Encoding: \(ContentCoding.acceptedNames)\r\n\r\n")
    }

    @Test("The session's fields follow the request's, and a range request sends no Accept-Encoding")
    func sessionFields() async throws {
        let text = try await head([.range: "bytes=0-1"]) { $0.headers[.acceptLanguage] = "de" }
        #expect(
            text == "GET /p?q=1 HTTP/1.1\r\nHost: a.example\r\nRange: bytes=0-1\r\nAccept-Language: de\r\n"
                + "User-Agent: test/1\r\nAccept: */*\r\n\r\n")
    }

    @Test("Omitting a field removes this field only")
    func omission() async throws {
        var options = RequestOptions()
        options.omittedFields = [.userAgent]
        #expect(
            try await head(options: options)
                == "GET /p?q=1 HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\n"
                + "Accept-Encoding: \(ContentCoding.acceptedNames)\r\n\r\n")
    }

    @Test("A body's content type replaces the session's and is sent once")
    func bodyType() async throws {
        let text = try await head(of: .post, body: .form([QueryItem(name: "a", value: "b")])) {
            $0.headers[.contentType] = "application/json"
        }
        #expect(text.contains("\r\nContent-Type: application/x-www-form-urlencoded"))
        #expect(!text.contains("application/json"))
    }

    @Test("The session's Expect field is sent only with a body, and the response to it is awaited")
    func expectation() async throws {
        let expectation = "\r\nExpect: 100-continue\r\n"
        let plain = try await head { $0.headers[.expect] = "100-continue" }
        #expect(!plain.contains(expectation))
        let full = try await head(of: .post, body: .text("a")) { $0.headers[.expect] = "100-continue" }
        #expect(full.contains(expectation))
        let rejection = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"
        let first = ServerScript(.expectRequestHead, .send(rejection), .readAll)
        let second = ServerScript(.expectRequestHead, .expect("a"), .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: first, second) { origin in
            let session = HTTPSession.own {
                $0.headers[.expect] = "100-continue"
                $0.continueTimeout = TestTimeouts.long
            }
            let exchange = try await session.send(HTTPRequest(.post, origin), body: .text("a"))
            #expect(exchange.text == "ok")
        }
    }

    @Test("A session with Connection: close sends one request per connection")
    func closing() async throws {
        let script = ServerScript(.expectRequestHead, .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script, script) { origin in
            let session = HTTPSession.own { $0.headers[.connection] = "close" }
            for _ in 0..<2 {
                let exchange = try await session.get(origin.url())
                #expect(exchange.text == "ok")
            }
            #expect(origin.recorder.counts.connections == 2)
        }
    }

    @Test("A session field that cannot be sent fails each request")
    func badAgent() async throws {
        await #expect(throws: HTTPError.self) { try await head { $0.userAgent = "a\nb" } }
    }
}
