import Martlet
import Testing

@Suite("Responses of nginx")
struct NginxResponseTests {
    @Test("A file arrives complete, with its length and its validators")
    func wholeFile() async throws {
        try await NginxServer.withServer { server in
            let answer = try await HTTPSession.plain().get(server.url(server.plainPort, "/bytes.bin"))
            #expect(answer.response.status == .ok)
            #expect(answer.response.headerFields[.contentLength] == "1048576")
            #expect(answer.response.headerFields[.eTag]?.hasPrefix("\"") == true)
            #expect(answer.response.headerFields[.lastModified] == "Tue, 14 Nov 2023 22:13:20 GMT")
            #expect(answer.body == Site.bytes)
            #expect(answer.metrics.receivedBodyByteCount == 1_048_576)
        }
    }

    @Test("An empty file is a response with an empty body")
    func emptyFile() async throws {
        try await NginxServer.withServer { server in
            let answer = try await HTTPSession.plain().get(server.url(server.plainPort, "/empty.txt"))
            #expect(answer.response.status == .ok)
            #expect(answer.response.headerFields[.contentLength] == "0")
            #expect(answer.body.isEmpty)
        }
    }

    @Test("HEAD returns the length without a body, and the connection is reused")
    func head() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let head = try await session.head(server.url(server.plainPort, "/bytes.bin"))
            #expect(head.response.status == .ok)
            #expect(head.response.headerFields[.contentLength] == "1048576")
            #expect(head.body.isEmpty)
            let next = try await session.get(server.url(server.plainPort, "/connection"))
            #expect(next.text == "2")
            #expect(next.metrics.isConnectionReused)
        }
    }

    @Test(
        "A range gets 206 and exactly those bytes",
        arguments: [
            ("bytes=5-8", 5..<9), ("bytes=0-0", 0..<1), ("bytes=1048570-", 1_048_570..<1_048_576),
            ("bytes=-3", 1_048_573..<1_048_576), ("bytes=100-1000000", 100..<1_000_001),
        ])
    func range(_ field: String, _ range: Range<Int>) async throws {
        try await NginxServer.withServer { server in
            let answer = try await HTTPSession.plain().get(
                server.url(server.plainPort, "/bytes.bin"), headers: [.range: field])
            #expect(answer.response.status == .partialContent)
            #expect(
                answer.response.headerFields[.contentRange]
                    == "bytes \(range.lowerBound)-\(range.upperBound - 1)/1048576")
            #expect(answer.body == Array(Site.bytes[range]))
        }
    }

    @Test("Several ranges are one multipart body, delivered as received")
    func severalRanges() async throws {
        try await NginxServer.withServer { server in
            let answer = try await HTTPSession.plain().get(
                server.url(server.plainPort, "/hello.txt"), headers: [.range: "bytes=0-4,15-18"])
            #expect(answer.response.status == .partialContent)
            let type = answer.response.headerFields[.contentType] ?? ""
            #expect(type.hasPrefix("multipart/byteranges; boundary="))
            #expect(answer.text.contains("\r\n\r\nHello\r\n"))
            #expect(answer.text.contains("Content-Range: bytes 15-18/20\r\n\r\nwire\r\n"))
        }
    }

    @Test("A range past the end gets 416 and the actual length")
    func unsatisfiableRange() async throws {
        try await NginxServer.withServer { server in
            let answer = try await HTTPSession.plain().get(
                server.url(server.plainPort, "/bytes.bin"), headers: [.range: "bytes=2000000-"])
            #expect(answer.response.status == .rangeNotSatisfiable)
            #expect(answer.response.headerFields[.contentRange] == "bytes */1048576")
        }
    }

    @Test("A matching condition gets 304 without a body, and the connection is reused")
    func notModified() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let url = server.url(server.plainPort, "/hello.txt")
            let tag = try #require(try await session.get(url).response.headerFields[.eTag])
            let same = try await session.get(url, headers: [.ifNoneMatch: tag])
            #expect(same.response.status == .notModified)
            #expect(same.body.isEmpty)
            #expect(same.response.headerFields[.eTag] == tag)
            #expect(try await session.get(server.url(server.plainPort, "/connection")).text == "3")
        }
    }

    @Test("gzip is requested and decoded")
    func gzip() async throws {
        try await NginxServer.withServer { server in
            let answer = try await HTTPSession.plain().get(server.url(server.plainPort, "/gzip/lines.txt"))
            #expect(answer.text == Site.lines)
            #expect(answer.metrics.receivedBodyByteCount < 60_000)
        }
    }

    @Test("A coding that the caller requested stays encoded")
    func gzipByHand() async throws {
        try await NginxServer.withServer { server in
            let answer = try await HTTPSession.plain().get(
                server.url(server.plainPort, "/gzip/lines.txt"), headers: [.acceptEncoding: "gzip"])
            #expect(answer.response.headerFields[.contentEncoding] == "gzip")
            #expect(Array(answer.body.prefix(3)) == [0x1f, 0x8b, 0x08])
            #expect(answer.body.count < 60_000)
        }
    }

    @Test("A body that arrives in chunks through a proxy is joined")
    func chunked() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let answer = try await session.get(server.url(server.plainPort, "/chunked/lines.txt"))
            #expect(answer.response.headerFields[.transferEncoding] == "chunked")
            #expect(answer.response.headerFields[.contentLength] == nil)
            #expect(answer.text == Site.lines)
            #expect(try await session.get(server.url(server.plainPort, "/connection")).text == "2")
        }
    }

    @Test("Trailers come after the body and are not part of the head")
    func trailers() async throws {
        try await NginxServer.withServer { server in
            let answer = try await HTTPSession.plain().get(
                server.url(server.plainPort, "/trailers/hello.txt"))
            #expect(answer.text == Site.hello)
            let name = try #require(HTTPField.Name("X-Checksum"))
            #expect(answer.trailers?[name] == "abc123")
            #expect(answer.response.headerFields[name] == nil)
        }
    }

    @Test("204, 302, 404, 410 and 503 are returned as responses")
    func otherStatuses() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain { $0.redirects = .doNotFollow }
            func get(_ path: String) async throws -> HTTPExchange {
                try await session.get(server.url(server.plainPort, path))
            }
            let none = try await get("/none")
            #expect(none.response.status == .noContent)
            #expect(none.body.isEmpty)
            let moved = try await get("/moved")
            #expect(moved.response.status == .found)
            #expect(moved.response.headerFields[.location]?.hasSuffix("/hello.txt") == true)
            #expect(moved.text.contains("302 Found"))
            let missing = try await get("/nothing/here")
            #expect(missing.response.status == .notFound)
            #expect(missing.text.contains("404 Not Found"))
            #expect(try await get("/gone").response.status == .gone)
            let busy = try await get("/busy")
            #expect(busy.response.status == .serviceUnavailable)
            #expect(busy.response.headerFields[.retryAfter] == "1")
            #expect(try await get("/connection").text == "6")
        }
    }

    @Test("401 without credentials is a response; with them the file arrives")
    func password() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            let url = server.url(server.plainPort, "/private/hello.txt")
            let locked = try await session.get(url)
            #expect(locked.response.status == .unauthorized)
            #expect(locked.response.headerFields[.wwwAuthenticate] == "Basic realm=\"nest\"")
            let open = try await session.get(url, headers: [.authorization: "Basic dXNlcjpzZWNyZXQ="])
            #expect(open.text == Site.hello)
        }
    }

    @Test("Target, host and fields arrive unchanged")
    func echo() async throws {
        try await NginxServer.withServer { server in
            let name = try #require(HTTPField.Name("X-Echo"))
            let session = HTTPSession.plain { $0.userAgent = "Nest/1" }
            let answer = try await session.get(
                server.url(server.plainPort, "/echo?a=b%20c&d=%C3%A9"), headers: [.init(name): "hi"])
            #expect(
                answer.text == "GET\n/echo?a=b%20c&d=%C3%A9\n127.0.0.1:\(server.plainPort)\nhi\nNest/1\n")
        }
    }

    @Test("An HTTP/1.0 response arrives, and the connection is closed")
    func http10() async throws {
        try await NginxServer.withServer { server in
            let session = HTTPSession.plain()
            var options = RequestOptions()
            options.version = .http10
            for _ in 1...2 {
                let answer = try await session.get(
                    server.url(server.plainPort, "/connection"), options: options)
                #expect(answer.text == "1")
                #expect(answer.response.headerFields[.connection] == "close")
            }
            let chunkless = try await session.get(
                server.url(server.plainPort, "/chunked/lines.txt"), options: options)
            #expect(chunkless.response.headerFields[.transferEncoding] == nil)
            #expect(chunkless.text == Site.lines)
        }
    }
}
