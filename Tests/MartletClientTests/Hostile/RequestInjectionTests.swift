import MartletContent
import MartletURL
import MartletCookies
import MartletCore
import MartletHosts
import MartletTesting
import Testing

/// Requests that would be split or framed in two ways. They are rejected before a byte is written, or corrected.
@Suite("Request injection", .timeLimit(.minutes(20)))
struct RequestInjectionTests {
    /// Sends a request that must be rejected before a connection is opened.
    private func rejected(
        _ code: HTTPError.Code, sourceLocation: SourceLocation = #_sourceLocation,
        _ call: (HTTPSession, String) async throws -> Void
    ) async throws {
        try await TestOrigin.withOrigin(respond: { _ in .text("EVIL") }) { origin in
            let session = HTTPSession(configuration: .patient)
            do {
                try await call(session, origin.base)
                Issue.record("not refused", sourceLocation: sourceLocation)
            } catch let error as HTTPError {
                #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
                #expect(!error.wasSent, sourceLocation: sourceLocation)
                #expect(error.phase == .preparing, sourceLocation: sourceLocation)
            }
            #expect(origin.connectionCount == 0, sourceLocation: sourceLocation)
        }
    }

    /// Returns the bytes of a request as they reach the server.
    private func sent(_ call: (HTTPSession, String) async throws -> Void) async throws -> String {
        let script = ServerScript(.expectRequestHead, .send(HostileScene.good), .awaitClose)
        return try await TestOrigin.withOrigin(scripts: script) { origin in
            do {
                let session = HTTPSession(configuration: .patient)
                try await call(session, origin.base)
                await session.invalidateAndCancel()
            }
            let bytes = try await origin.recorder.waitForTranscript(ofConnection: 1)
            return String(decoding: bytes, as: UTF8.self)
        }
    }

    @Test(
        "Control bytes, backslashes and spaces at the ends of a URL are rejected",
        arguments: [
            "/a\r\nEVIL: 1", "/a\nEVIL", "/a\rEVIL", "/a\0b", "/?q=\r\nEVIL: 1", "/?q=\0", "/a\tb",
            "/a\u{7F}", "/a\u{1B}",
            "/a\\b", "/a ", "/#\r\nEVIL",
        ])
    func urls(_ path: String) async throws {
        try await rejected(.invalidURL) { session, base in _ = try await session.get(base + path) }
    }

    @Test(
        "A name or method with control bytes, spaces or a colon cannot be created",
        arguments: [
            "X\r\nEVIL", "X EVIL", "X\0", "X:", "", "X\u{7F}", "Xä", "X\n",
        ])
    func names(_ name: String) {
        #expect(HTTPField.Name(name) == nil)
        #expect(HTTPRequest.Method(name) == nil)
    }

    @Test("A path that was set with line breaks is sent as one target in one line")
    func paths() async throws {
        let text = try await sent { session, base in
            var request = try HTTPRequest(method: .get, url: base)
            request.path = "/a HTTP/1.1\r\nEVIL: 1\r\n\r\nGET /b"
            _ = try await session.send(request)
        }
        let lines = text.split(separator: "\r\n", omittingEmptySubsequences: false)
        #expect(lines.first?.hasPrefix("GET /a%20HTTP/1.1") == true)
        #expect(lines.first?.hasSuffix(" HTTP/1.1") == true)
        #expect(lines.first?.split(separator: " ").count == 3)
        #expect(!lines.contains { $0.hasPrefix("EVIL") })
    }

    @Test(
        "Line breaks and NULs in a field of an HTTPRequest stay within its line",
        arguments: [
            "a\r\nEVIL: 1", "a\nEVIL: 1", "a\rEVIL: 1", "a\0EVIL: 1", "\r\n\r\nGET /EVIL HTTP/1.1\r\n\r\n",
        ])
    func fieldValues(_ value: String) async throws {
        #expect(!HTTPField.isValidValue(value))
        let text = try await sent { session, base in
            _ = try await session.send(
                HTTPRequest(
                    method: .get, url: base, headers: [.init("X-A") ?? .accept: value, .cookie: value]))
        }
        #expect(!text.contains("\0"))
        #expect(!text.split(separator: "\r\n").contains { $0.hasPrefix("EVIL") || $0.hasPrefix("GET /EVIL") })
        #expect(text.components("\r\n\r\n") == 1)
        #expect(text.components("\r") == text.components("\r\n"))
        #expect(text.components("\n") == text.components("\r\n"))
    }

    @Test(
        "Other control bytes in a field of an HTTPRequest are never sent",
        arguments: [1, 8, 11, 12, 27, 127] as [UInt8])
    func controlBytes(_ byte: UInt8) async throws {
        let value = "a" + String(UnicodeScalar(byte)) + "b"
        try await TestOrigin.withOrigin(respond: { _ in .text("good") }) { origin in
            do {
                _ = try await HTTPSession(configuration: .patient).send(
                    HTTPRequest(
                        method: .get, url: origin.base, headers: [.init("X-A") ?? .accept: value]))
                let fields = try #require(origin.requests.first?.headers)
                #expect(!fields.contains { $0.value.utf8.contains(byte) })
            } catch let error as HTTPError {
                #expect(error.code == .invalidRequest)
                #expect(origin.connectionCount == 0)
            }
        }
    }

    @Test(
        "A content type, user agent or default field with control bytes is rejected",
        arguments: ["a\r\nEVIL: 1", "a\0", "a\nb", "a\u{7F}"])
    func settings(_ value: String) async throws {
        try await rejected(.invalidRequest) { session, base in
            _ = try await session.post(base, body: .text("x", contentType: value))
        }
        try await rejected(.invalidRequest) { session, base in
            _ = try await session.with { $0.userAgent = value }.get(base)
        }
    }

    @Test(
        "An invalid Host is rejected",
        arguments: [
            "a b", "a/b", "a\\b", "a@b", "a?b", "a#b", "a, b", "a\r\nEVIL: 1", "a\tb", "ä",
        ])
    func hosts(_ host: String) async throws {
        try await rejected(host.contains("\r\n") ? .invalidHeader : .invalidRequest) { session, base in
            _ = try await session.get(base, headers: ["Host": host])
        }
    }

    @Test("Two Host fields are rejected")
    func twoHosts() async throws {
        let name = try #require(HTTPField.Name("Host"))
        try await rejected(.invalidRequest) { session, base in
            var headers = HTTPHeaders()
            headers.append(HTTPField(name: name, value: "a.example"))
            headers.append(HTTPField(name: name, value: "b.example"))
            _ = try await session.get(base, headers: headers)
        }
    }

    @Test(
        "A Content-Length that differs from the body's length is rejected",
        arguments: ["4", "6", "+5", "5, 5", "0x5", "", "five", "-1", "99999999999999999999"])
    func contentLength(_ length: String) async throws {
        try await rejected(.invalidRequest) { session, base in
            _ = try await session.post(base, body: .text("hello"), headers: [.contentLength: length])
        }
    }

    @Test("A Content-Length that matches the body is sent once")
    func contentLengthOnce() async throws {
        try await TestOrigin.withOrigin(respond: { .bytes(try await $0.collectBody()) }) { origin in
            let exchange = try await HTTPSession(configuration: .patient).post(
                origin.base, body: .text("hello"), headers: [.contentLength: "5"])
            #expect(exchange.text == "hello")
            #expect(
                origin.requests.first?.headers.filter { $0.name.lowercased() == "content-length" }.count == 1)
        }
    }

    @Test("A Content-Length without a body is rejected unless it is 0")
    func contentLengthWithoutBody() async throws {
        try await rejected(.invalidRequest) { session, base in
            _ = try await session.get(base, headers: [.contentLength: "5"])
        }
        let text = try await sent { session, base in
            _ = try await session.post(base, body: .none, headers: [.contentLength: "0"])
        }
        #expect(text.components("Content-Length: 0\r\n") == 1)
    }

    @Test(
        "A Transfer-Encoding other than chunked is rejected",
        arguments: [
            "gzip, chunked", "chunked, chunked", "identity", "xchunked", "", "gzip",
        ])
    func transferEncoding(_ coding: String) async throws {
        try await rejected(.invalidRequest) { session, base in
            _ = try await session.post(base, body: .text("hello"), headers: [.transferEncoding: coding])
        }
    }

    @Test("A Transfer-Encoding together with a Content-Length is rejected")
    func bothFramings() async throws {
        try await rejected(.invalidRequest) { session, base in
            _ = try await session.post(
                base, body: .text("hello"), headers: [.transferEncoding: "chunked", .contentLength: "5"])
        }
    }

    @Test("A body with Transfer-Encoding: chunked is sent in chunks without a Content-Length")
    func chunkedByRequest() async throws {
        let script = ServerScript(
            .expectRequestHead, .expect("5\r\nhello\r\n0\r\n\r\n"), .send(HostileScene.good), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            do {
                let session = HTTPSession(configuration: .patient)
                let exchange = try await session.post(
                    origin.base, body: .text("hello"), headers: [.transferEncoding: "chunked"])
                #expect(exchange.text == "good")
                await session.invalidateAndCancel()
            }
            let text = String(
                decoding: try await origin.recorder.waitForTranscript(ofConnection: 1), as: UTF8.self)
            #expect(text.components("Transfer-Encoding: chunked\r\n") == 1)
            #expect(!text.contains("Content-Length"))
        }
    }

    @Test(
        "A trailer that frames, routes or authenticates is rejected before the body is sent",
        arguments: [
            "Content-Length", "Transfer-Encoding", "Host", "Authorization", "Set-Cookie", "Content-Encoding",
            "Trailer",
        ])
    func trailers(_ name: String) async throws {
        try await rejected(.invalidRequest) { session, base in
            var options = RequestOptions()
            options.trailers = [.init(name): "5"]
            let body = HTTPBody.stream {
                AsyncStream<[UInt8]> {
                    $0.yield(Array("hello".utf8)); $0.finish()
                }
            }
            _ = try await session.post(base, body: body, options: options)
        }
    }

    @Test("A session's default field cannot frame a request, and a default Cookie is sent")
    func defaultFields() async throws {
        let text = try await sent { session, base in
            let view = session.with {
                $0.headers = [.contentLength: "99", .transferEncoding: "gzip", .cookie: "a=b"]
            }
            _ = try await view.get(base)
        }
        #expect(!text.contains("Content-Length"))
        #expect(!text.contains("Transfer-Encoding"))
        #expect(text.components("Cookie: a=b\r\n") == 1)
    }

    @Test("A value that is not UTF-8 is sent byte by byte")
    func rawValues() async throws {
        let values: [[UInt8]] = [
            [0x61, 0xE4, 0x62], [0xFF], [0xEF, 0xBF, 0xBD], [0xC3, 0xA4], [0x61, 0xC3],
        ]
        for bytes in values {
            let script = ServerScript(.expectRequestHead, .send(HostileScene.good), .awaitClose)
            try await HostileScene.with(.memory, script) { scene in
                var headers = HTTPHeaders()
                headers.append(HTTPField(name: try #require(HTTPField.Name("X-A")), value: bytes))
                #expect(await scene.request(headers: headers).text == "good")
                let sent = scene.recorder.transcript(ofConnection: 1)
                let line = Array("X-A: ".utf8) + bytes + Array("\r\n".utf8)
                #expect(sent.indices.contains { sent[$0...].starts(with: line) }, "\(bytes)")
            }
        }
    }

    @Test("OPTIONS for the whole server has no path, and no other method can omit it")
    func serverOptions() async throws {
        let text = try await sent { session, base in
            var request = try HTTPRequest(method: .options, url: base)
            request.path = "*"
            let exchange = try await session.send(request)
            #expect(exchange.text == "good")
        }
        #expect(text.hasPrefix("OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:"))
        for method in [HTTPRequest.Method.get, .head, .delete] {
            try await rejected(.invalidURL) { session, base in
                var request = try HTTPRequest(method: method, url: base)
                request.path = "*"
                _ = try await session.send(request)
            }
        }
    }

    @Test("A URL created with its path as is keeps the path in every kind of call")
    func pathAsIs() async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(respond: { _ in .text("good") }) { origin in
            let url = try HTTPURL(origin.url("/a/../b/./c"), pathAsIs: true)
            let request = HTTPRequest(method: .get, url: url)
            let session = HTTPSession(configuration: .patient)
            _ = try await session.send(.get, url)
            _ = try await session.send(request)
            _ = try await session.stream(request) { _, body in try await body.collect() }
            _ = try await session.upload(.text("x"), to: HTTPRequest(method: .put, url: url))
            _ = try await session.download(request, to: FilePath(directory.path + "/file"))
            _ = try await session.task(for: request).value
            #expect(origin.requests.map(\.target) == Array(repeating: "/a/../b/./c", count: 6))
            _ = try await session.get(origin.url("/a/../b/./c"))
            #expect(origin.requests.last?.target == "/b/c")
        }
    }

    @Test("CONNECT is rejected as a request")
    func connect() async throws {
        try await rejected(.invalidRequest) { session, base in
            _ = try await session.send(try HTTPRequest(method: .connect, url: base))
        }
    }
}

extension String {
    /// Returns the number of occurrences by UTF-8 bytes, because `\r\n` is one character in Swift.
    fileprivate func components(_ text: String) -> Int {
        let (bytes, sought) = (Array(utf8), Array(text.utf8))
        return bytes.indices.count { bytes[$0...].starts(with: sought) }
    }
}
