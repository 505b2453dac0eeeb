import Martlet
import Testing

@Suite("Apache")
struct ApacheTests {
    @Test("A file arrives complete, with its validators, and HEAD has the same fields without a body")
    func wholeFile() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.plain()
            let url = server.url(server.plainPort, "/bytes.bin")
            let whole = try await session.get(url)
            #expect(whole.response.status == .ok)
            #expect(whole.body == Site.bytes)
            let head = try await session.head(url)
            #expect(head.body.isEmpty)
            #expect(head.response.headerFields[.contentLength] == "1048576")
            #expect(head.response.headerFields[.eTag] == whole.response.headerFields[.eTag])
            let again = try await session.get(url)
            #expect(again.body == Site.bytes)
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test("Ranges get 206 and exactly those bytes; one past the end gets 416")
    func ranges() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.plain()
            let url = server.url(server.plainPort, "/bytes.bin")
            for (field, range) in [("bytes=0-3", 0..<4), ("bytes=-5", 1_048_571..<1_048_576)] {
                let part = try await session.get(url, headers: [.range: field])
                #expect(part.response.status == .partialContent)
                #expect(part.body == Array(Site.bytes[range]))
                #expect(
                    part.response.headerFields[.contentRange]
                        == "bytes \(range.lowerBound)-\(range.upperBound - 1)/1048576")
            }
            let outside = try await session.get(url, headers: [.range: "bytes=2000000-"])
            #expect(outside.response.status == .rangeNotSatisfiable)
        }
    }

    @Test("If-Range gets the part of an unchanged file, and the whole of a changed one")
    func ifRange() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.plain()
            let url = server.url(server.plainPort, "/hello.txt")
            let tag = try #require(try await session.head(url).response.headerFields[.eTag])
            let part = try await session.get(url, headers: [.range: "bytes=0-4", .ifRange: tag])
            #expect(part.response.status == .partialContent)
            #expect(part.text == "Hello")
            let whole = try await session.get(url, headers: [.range: "bytes=0-4", .ifRange: "\"other\""])
            #expect(whole.response.status == .ok)
            #expect(whole.text == Site.hello)
        }
    }

    @Test("Conditions get 304 or 412, and the connection is reused")
    func conditions() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.plain()
            let url = server.url(server.plainPort, "/hello.txt")
            let first = try await session.get(url)
            let tag = try #require(first.response.headerFields[.eTag])
            let date = try #require(first.response.headerFields[.lastModified])
            let same = try await session.get(url, headers: [.ifNoneMatch: tag])
            #expect(same.response.status == .notModified)
            #expect(same.body.isEmpty)
            let unchanged = try await session.get(url, headers: [.ifModifiedSince: date])
            #expect(unchanged.response.status == .notModified)
            let other = try await session.get(url, headers: [.ifMatch: "\"other\""])
            #expect(other.response.status == .preconditionFailed)
            let again = try await session.get(url)
            #expect(again.text == Site.hello)
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test("A body that is compressed and chunked is joined and decoded")
    func chunkedGzip() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.plain()
            let answer = try await session.get(server.url(server.plainPort, "/deflate/bytes.bin"))
            #expect(answer.response.headerFields[.transferEncoding] == "chunked")
            #expect(answer.body == Site.bytes)
            let lines = try await session.get(server.url(server.plainPort, "/deflate/lines.txt"))
            #expect(lines.text == Site.lines)
            #expect(lines.metrics.receivedBodyByteCount < 60_000)
            let head = try await session.head(server.url(server.plainPort, "/deflate/lines.txt"))
            #expect(head.body.isEmpty)
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test("Without Accept-Encoding the same file arrives uncompressed")
    func identity() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.plain { $0.decompressesResponses = false }
            let answer = try await session.get(server.url(server.plainPort, "/deflate/lines.txt"))
            #expect(answer.response.headerFields[.contentEncoding] == nil)
            #expect(answer.text == Site.lines)
        }
    }

    @Test("404 and 302 are responses with their pages")
    func errorPages() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.plain { $0.redirects = .doNotFollow }
            let missing = try await session.get(server.url(server.plainPort, "/nothing"))
            #expect(missing.response.status == .notFound)
            #expect(missing.text.contains("The requested URL was not found on this server."))
            let error = #expect(throws: HTTPError.self) { try missing.validated() }
            #expect(error?.exchange?.text == missing.text)
            let moved = try await session.get(server.url(server.plainPort, "/moved"))
            #expect(moved.response.status == .found)
            #expect(moved.response.headerFields[.location]?.hasSuffix("/hello.txt") == true)
            #expect(session.poolStatus.opened == 1)
        }
    }

    @Test("A connection that the server closes after a few requests is replaced without an error")
    func limitedKeepAlive() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.plain()
            let url = server.url(server.limitedPort, "/hello.txt")
            var openings: [Bool] = []
            for _ in 1...12 {
                let answer = try await session.get(url)
                #expect(answer.text == Site.hello)
                #expect(answer.metrics.attempts == 1)
                openings.append(!answer.metrics.isConnectionReused)
            }
            // Apache counts the requests after the first one.
            let announced = try await session.get(url, headers: [.connection: "keep-alive"])
            #expect(announced.rawHead.fields.firstValue(of: "Keep-Alive") != nil)
            #expect(openings.first == true)
            #expect((3...4).contains(openings.count { $0 }))
        }
    }

    @Test("A body that a method does not accept is rejected with a response, not with a broken connection")
    func rejectedUpload() async throws {
        try await ApacheServer.withServer { server in
            let pieces = LargeFile.Pieces(byteCount: 50_000_000)
            let rejected = try await HTTPSession.plain().put(
                server.url(server.plainPort, "/hello.txt"), body: .stream(length: 50_000_000) { pieces })
            #expect(rejected.response.status == .methodNotAllowed)
        }
    }

    @Test("TLS 1.3 with a private authority serves the same files")
    func tls() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.trusting(server.certificates)
            let answer = try await session.get(server.url(server.tlsPort, "/bytes.bin", scheme: "https"))
            #expect(answer.body == Site.bytes)
            #expect(answer.metrics.connection?.tls?.version == "TLSv1.3")
            let compressed = try await session.get(
                server.url(server.tlsPort, "/deflate/lines.txt", scheme: "https"))
            #expect(compressed.text == Site.lines)
            #expect(compressed.metrics.isConnectionReused)
            let stranger = await #expect(throws: HTTPError.self) {
                try await HTTPSession.plain().get(server.url(server.tlsPort, "/", scheme: "https"))
            }
            #expect(stranger?.tlsKind == .unknownAuthority)
        }
    }

    @Test("Sixty concurrent requests all get the right response")
    func manyAtOnce() async throws {
        try await ApacheServer.withServer { server in
            let session = HTTPSession.plain()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<60 {
                    group.addTask {
                        let start = number * 1_000
                        let part = try await session.get(
                            server.url(server.plainPort, "/bytes.bin"),
                            headers: [.range: "bytes=\(start)-\(start + 999)"])
                        #expect(part.body == Array(Site.bytes[start..<start + 1_000]))
                    }
                }
                try await group.waitForAll()
            }
            #expect(session.poolStatus.opened <= 16)
            #expect(session.poolStatus.leased == 0)
        }
    }
}
