import HTTPTypes
import Hummingbird
import Martlet
import MartletTesting
import NIOCore
import Testing

@testable import reverse_proxy

@Suite("The reverse proxy", .timeLimit(.minutes(1)))
struct ReverseProxyTests {
    private let client = HTTPSession()

    @Test("Method, path, query, fields and body reach the server, and its response the client")
    func forwarding() async throws {
        try await withProxy { request in
            let text = try await request.collectText()
            var response = OriginResponse.text("\(request.method) \(request.target) \(text)", status: 201)
            response.headers.append("Set-Cookie", "a=1")
            response.headers.append("Set-Cookie", "b=2")
            return response
        } run: { proxy, origin in
            let exchange = try await client.put(
                "\(proxy)/a%2Fb//c?q=%20x", body: .text("hello", contentType: "text/x-greeting"))
            #expect(exchange.statusCode == 201)
            #expect(exchange.text == "PUT /a%2Fb//c?q=%20x hello")
            #expect(exchange.headers[values: .setCookie] == ["a=1", "b=2"])
            let request = try #require(origin.requests.first)
            #expect(request.headers["Content-Type"] == "text/x-greeting")
            #expect(request.headers["Content-Length"] == "5")
        }
    }

    @Test("Fields of one connection are not forwarded, and the client's address is")
    func fields() async throws {
        try await withProxy { _ in
            OriginResponse(
                headers: ["Connection": "X-Hop", "X-Hop": "1", "Keep-Alive": "timeout=5", "X-End": "2"],
                body: .text("x"))
        } run: { proxy, origin in
            var request = try HTTPRequest(method: .get, url: "\(proxy)/")
            request.headerFields[.connection] = "keep-alive, X-Secret"
            request.headerFields[HTTPField.Name("X-Secret")!] = "1"
            request.headerFields[HTTPField.Name("TE")!] = "trailers"
            request.headerFields[.xForwardedFor] = "192.0.2.1"
            request.headerFields[.userAgent] = "browser"
            let response = try await client.send(request).response
            #expect(response.headerFields["X-Hop"] == nil)
            #expect(response.headerFields["X-End"] == "2")

            let fields = try #require(origin.requests.first).headers
            #expect(fields["X-Secret"] == nil)
            #expect(fields["TE"] == nil)
            #expect(fields.values(of: "X-Forwarded-For") == ["192.0.2.1", "127.0.0.1"])
            #expect(fields["X-Forwarded-Host"].map { proxy == "http://\($0)" } ?? false)
            #expect(fields["X-Forwarded-Proto"] == "http")
            #expect(fields["Via"] == "1.1 reverse-proxy")
            #expect(fields["User-Agent"] == "browser")
            #expect(fields["Host"] == "127.0.0.1:\(origin.port)")
        }
    }

    @Test("A request body is forwarded while it arrives")
    func requestStreaming() async throws {
        let (pieces, continuation) = AsyncStream<[UInt8]>.makeStream()
        continuation.yield(Array("first".utf8))
        try await withProxy { request in
            var text = ""
            for try await chunk in request.body {
                text += String(decoding: chunk, as: UTF8.self)
                // The client sends the rest only at this point.
                if text == "first" {
                    continuation.yield(Array(" second".utf8))
                    continuation.finish()
                }
            }
            return .text(text)
        } run: { proxy, _ in
            let exchange = try await client.post("\(proxy)/", body: .once(pieces))
            #expect(exchange.text == "first second")
        }
    }

    @Test("A response body is forwarded while it arrives")
    func responseStreaming() async throws {
        let (gate, release) = AsyncStream<Void>.makeStream()
        try await withProxy { _ in
            OriginResponse(
                body: .stream { writer in
                    try await writer.write("first")
                    // The client has read the first piece by then.
                    for await _ in gate {}
                    try await writer.write(" second")
                })
        } run: { proxy, _ in
            let text = try await client.stream(HTTPRequest(method: .get, url: "\(proxy)/")) { _, body in
                var text = ""
                for try await chunk in body {
                    text += String(decoding: chunk, as: UTF8.self)
                    release.finish()
                }
                return text
            }
            #expect(text == "first second")
        }
    }

    @Test("A client that stops reading pauses the server, and one that disconnects closes the server connection")
    func backPressure() async throws {
        try await withProxy(handler: .bytes(1 << 30)) { proxy, origin async throws in
            try await client.stream(HTTPRequest(method: .get, url: "\(proxy)/")) { _, body in
                for try await _ in body { break }
                // Other requests succeed at the same time.
                for _ in 0..<20 { _ = try await client.head("\(proxy)/") }
            }
            try await origin.recorder.waitForOpenConnections(atMost: 1)
            #expect(origin.recorder.counts.bytesSent < 64 << 20)
        }
    }

    @Test("A truncated response is an error and not a shorter response", arguments: [false, true])
    func cutBodies(isChunked: Bool) async throws {
        try await withProxy { _ in
            var response = OriginResponse.pattern(100_000)
            if isChunked { response.framing = .chunked() }
            response.fault = OriginFault(.close, afterBodyBytes: 50_000)
            return response
        } run: { proxy, _ in
            await #expect(throws: Martlet.HTTPError.self) { try await client.get("\(proxy)/") }
        }
    }

    @Test("Responses to HEAD and statuses without a body leave the connection reusable", arguments: [200, 204, 304])
    func emptyResponses(status: Int) async throws {
        try await withProxy { _ in
            .text("body", status: status)
        } run: { proxy, _ in
            for _ in 0..<2 {
                let exchange = try await client.head("\(proxy)/")
                #expect(exchange.statusCode == status)
                if status == 200 { #expect(exchange.headers[.contentLength] == "4") }
            }
            #expect(try await client.get("\(proxy)/").statusCode == status)
        }
    }

    @Test("Redirects and content codings are forwarded unchanged")
    func passingThrough() async throws {
        try await withProxy(handler: .redirect(to: "/elsewhere")) { proxy, origin async throws in
            let options = RequestOptions(redirects: .doNotFollow)
            #expect(try await client.get("\(proxy)/", options: options).statusCode == 302)
            #expect(origin.requests.count == 1)
        }
        try await withProxy { request in
            var response = OriginResponse.bytes([1, 2, 3])
            response.headers.append("Content-Encoding", "x-unknown")
            response.headers.append("X-Accepted", request.headers["Accept-Encoding"] ?? "none")
            return response
        } run: { proxy, _ in
            let options = RequestOptions(decompresses: false)
            let exchange = try await client.get("\(proxy)/", options: options)
            #expect(exchange.body == [1, 2, 3])
            #expect(exchange.headers["X-Accepted"] == "none")
        }
    }

    @Test("A server that cannot be reached results in a 502, and one that does not respond in a 504")
    func failures() async throws {
        let origin = try await TestOrigin.start(handler: .fixed(.text("x")))
        let url = origin.url("/")
        await origin.stop()
        try await withProxy(to: url) { proxy async throws in
            #expect(try await client.get("\(proxy)/").statusCode == 502)
        }
        try await withProxy(handler: .fault(OriginFault(.reset))) { proxy, _ async throws in
            #expect(try await client.post("\(proxy)/", body: .text("x")).statusCode == 502)
        }
        try await withProxy(handler: .fault(OriginFault(.stall))) { proxy, _ async throws in
            #expect(try await client.get("\(proxy)/").statusCode == 504)
        }
    }
}

/// Runs a proxy in front of a test origin.
private func withProxy(
    handler: OriginHandler, run body: @Sendable (_ proxy: String, TestOrigin) async throws -> Void
) async throws {
    try await TestOrigin.withOrigin(handler: handler) { origin in
        try await withProxy(to: origin.url("/")) { proxy in try await body(proxy, origin) }
    }
}

private func withProxy(
    _ respond: @escaping OriginHandler.Respond,
    run body: @Sendable (_ proxy: String, TestOrigin) async throws -> Void
) async throws { try await withProxy(handler: OriginHandler(respond), run: body) }

/// Runs a proxy on a free port.
private func withProxy(to upstream: String, _ body: @Sendable (_ proxy: String) async throws -> Void)
    async throws
{
    let (ports, continuation) = AsyncStream<Int>.makeStream()
    var timeouts = Timeouts()
    timeouts.head = .milliseconds(500)
    let application = Application(
        responder: ReverseProxy(to: try HTTPURL(upstream), timeouts: timeouts),
        configuration: ApplicationConfiguration(address: .hostname("127.0.0.1", port: 0)),
        onServerRunning: { channel in continuation.yield(channel.localAddress?.port ?? 0) })
    let server = Task { try await application.run() }
    defer { server.cancel() }
    let port = try #require(await ports.first { _ in true })
    try await body("http://127.0.0.1:\(port)")
}
