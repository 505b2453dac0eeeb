import FoundationEssentials
import MartletTesting
import MartletTransport
import Synchronization
import Testing

@Suite("Routes of HTTPBin")
struct HTTPBinRouteTests {
    private let mock = MockTransport(handler: StandardRoutes().handler)

    @Test(
        "A report has the arguments, fields and body of its request",
        arguments: [
            ("GET /get?a=1&b=2&b=3", "", #""args":{"a":"1","b":["2","3"]}"#),
            ("POST /post", "{\"deep\":[1,true,null]}", #""json":{"deep":[1,true,null]}"#),
            ("PUT /put", "plain", #""data":"plain""#), ("PATCH /patch", "x", #""method":"PATCH""#),
            ("DELETE /delete", "", #""url":"http://t/delete""#),
            ("OPTIONS /anything/below?c", "", #""url":"http://t/anything/below?c""#),
            ("GET /headers", "", #""X-A":"1,2""#), ("GET /user-agent", "", #""user-agent""#),
            ("GET /ip", "", #""origin":"#), ("GET /response-headers?X-B=3", "", #""X-B":"3""#),
            ("GET /cookies", "", #""cookies":{"c":"d"}"#), ("GET /stream/2", "", "{\"id\":0}\n{\"id\":1}\n"),
            ("GET /sse?count=1", "", "id: 0\nevent: ping\ndata: {\"id\":0}\n\n"),
        ])
    func reports(_ line: String, _ body: String, _ expected: String) async throws {
        let client = try await RawClient(mock)
        try await client.send(
            "\(line) HTTP/1.1\r\nHost: t\r\nX-A: 1\r\nx-a: 2\r\nCookie: c=d\r\nUser-Agent: u\r\n"
                + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
        let answer = try await client.response()
        #expect(answer.status == 200)
        #expect(answer.text.contains(expected), "\(answer.text)")
    }

    @Test("A form is reported by its field names")
    func form() async throws {
        let client = try await RawClient(mock)
        try await client.send(
            "POST /post HTTP/1.1\r\nHost: t\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                + "Content-Length: 7\r\n\r\na=1&b=+")
        #expect(try await client.response().text.contains(#""form":{"a":"1","b":" "}"#))
    }

    @Test(
        "Redirects lead to the named targets, and conditions and credentials are checked",
        arguments: [
            ("/relative-redirect/2", "", 302, "Location", "/relative-redirect/1"),
            ("/relative-redirect/1", "", 302, "Location", "/get"),
            ("/absolute-redirect/1", "", 302, "Location", "http://localhost/get"),
            ("/redirect-to?url=%2Fx&status_code=307", "", 307, "Location", "/x"),
            ("/cookies/set?a=b", "", 302, "Set-Cookie", "a=b; Path=/"),
            ("/cookies/set/a/b", "", 302, "Set-Cookie", "a=b; Path=/"),
            ("/cookies/delete?a", "", 302, "Set-Cookie", "a=; Path=/; Max-Age=0"),
            ("/basic-auth/u/p", "", 401, "WWW-Authenticate", "Basic realm=\"Martlet\""),
            ("/basic-auth/u/p", "Authorization: Basic dTpw\r\n", 200, "Content-Type", "application/json"),
            ("/basic-auth/u/q", "Authorization: Basic dTpw\r\n", 401, "Content-Length", "0"),
            ("/hidden-basic-auth/u/p", "", 404, "WWW-Authenticate", nil),
            ("/bearer", "", 401, "WWW-Authenticate", "Bearer"),
            ("/bearer", "Authorization: Bearer x\r\n", 200, "Content-Type", "application/json"),
            ("/etag/a", "", 200, "ETag", "\"a\""),
            ("/etag/a", "If-None-Match: \"b\", W/\"a\"\r\n", 304, "ETag", "\"a\""),
            ("/etag/a", "If-Match: \"b\"\r\n", 412, "ETag", nil),
            ("/cache", "", 200, "ETag", "\"martlet\""),
            ("/cache", "If-Modified-Since: x\r\n", 304, "ETag", "\"martlet\""),
            ("/cache/60", "", 200, "Cache-Control", "public, max-age=60"),
            ("/range/10", "Range: bytes=2-3\r\n", 206, "Content-Range", "bytes 2-3/10"),
            ("/drip?numbytes=3&duration=0.01&code=201", "", 201, "Content-Length", "3"),
        ])
    func fields(
        _ path: String, _ fields: String, _ status: Int, _ name: String, _ value: String?
    ) async throws {
        let answer = try await RawClient(mock).get(path, fields: fields)
        #expect(answer.status == status)
        if path.hasPrefix("/absolute") {
            #expect(answer.field(name)?.hasSuffix("/get") == true)
        } else {
            #expect(answer.field(name) == value)
        }
    }

    @Test(
        "Numbers out of range return 400, and no response waits or grows for them",
        arguments: [
            "/delay/11", "/delay/-1", "/delay/nan", "/delay/1e400", "/redirect/101", "/relative-redirect/0",
            "/absolute-redirect/101", "/stream/101", "/status/99", "/status/1000",
            "/cache/99999999999999999999",
            "/drip?numbytes=10485761", "/drip?delay=11", "/drip?duration=1e99", "/drip?code=100",
            "/sse?count=101", "/sse?delay=11", "/redirect-to", "/redirect-to?url=a%0D%0Ab",
            "/redirect-to?url=/&status_code=200",
        ])
    func limits(_ path: String) async throws {
        #expect(try await RawClient(mock).get(path).status == 400)
    }

    @Test("A client that reconnects receives the events after its last event ID")
    func reconnects() async throws {
        let client = try await RawClient(mock)
        let rest = try await client.get("/sse?count=3&delay=0", fields: "Last-Event-ID: 1\r\n")
        #expect(rest.text == "id: 2\nevent: ping\ndata: {\"id\":2}\n\n")
        for id in ["2", "-9223372036854775808", "9223372036854775807"] {
            let other = try await client.get("/sse?count=3&delay=0", fields: "Last-Event-ID: \(id)\r\n")
            #expect(other.text.isEmpty == !id.hasPrefix("-"))
        }
    }

    @Test("Each request is logged with its status and body byte count, also after a fault")
    func log() async throws {
        let served = Mutex<[ServedRequest]>([])
        var options = OriginOptions.plain
        options.log = { request in served.withLock { $0.append(request) } }
        try await TestOrigin.withOrigin(options, handler: StandardRoutes().handler) { origin in
            let client = try await RawClient(origin)
            #expect(try await client.get("/bytes/20").status == 200)
            #expect(try await client.get("/nowhere").status == 404)
            try await client.send("GET /truncate/5 HTTP/1.1\r\nHost: t\r\n\r\n")
            _ = try await client.receiveAll()
            let other = try await RawClient(origin)
            try await other.send("GET /reset HTTP/1.1\r\nHost: t\r\n\r\n")
            await #expect(throws: TransportError.self) { try await other.receiveAll() }
        }
        let log = served.withLock { $0 }
        #expect(log.map(\.target) == ["/bytes/20", "/nowhere", "/truncate/5", "/reset"])
        #expect(log.map(\.status) == [200, 404, 200, nil])
        #expect(log.map(\.bodyByteCount) == [20, 26, 5, 0])
        #expect(log[0].description.hasPrefix("GET /bytes/20 200 20 bytes "))
    }
}
