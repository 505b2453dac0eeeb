import FoundationEssentials
import Martlet
import MartletTesting
import MartletTransport
import Testing

@Suite("HAR logs", .timeLimit(.minutes(20)))
struct HARLogTests {
    /// Returns the schema-checked log entry of a call to a scripted origin.
    private func entry(
        _ response: String, _ request: (TestOrigin) throws -> HTTPRequest = { try HTTPRequest(.get, $0) },
        body: HTTPBody = .none, options: HAROptions = HAROptions(),
        _ location: SourceLocation = #_sourceLocation
    ) async throws -> HARDocument.Entry {
        let script = ServerScript(.expectRequestHead, .send(response), .close)
        return try await TestOrigin.withOrigin(scripts: script) { origin in
            let exchange = try await HTTPSession.own { $0.redirects = .doNotFollow }.send(
                request(origin), body: body)
            let document = try HARDocument.read(
                HARLog.bytes([HAREntry(exchange, requestBody: body, options: options)]))
            #expect(document.violations == [], sourceLocation: location)
            return try #require(document.log.entries.first)
        }
    }

    @Test("The entry of an exchange matches the schema")
    func exchange() async throws {
        let before = Date()
        let entry = try await entry(
            "HTTP/1.1 201 Made\r\nContent-Type: text/plain\r\nContent-Length: 5\r\nX-A: 1\r\nx-a: 2\r\n\r\nhello",
            { try HTTPRequest(.get, $0, "/p?a=1&b&c=%C3%A4+x", [.accept: "text/plain"]) })
        #expect(entry.request.method == "GET")
        #expect(entry.request.url.hasSuffix("/p?a=1&b&c=%C3%A4+x"))
        #expect(
            entry.request.queryString == [
                HARDocument.Pair(name: "a", value: "1"), HARDocument.Pair(name: "b", value: ""),
                HARDocument.Pair(name: "c", value: "ä x"),
            ])
        #expect(entry.request.headers.contains { $0.name == "Host" && $0.value.hasPrefix("127.0.0.1:") })
        #expect(entry.request.bodySize == 0)
        #expect(entry.request.postData == nil)
        #expect(entry.response.status == 201)
        #expect(entry.response.statusText == "Made")
        #expect(entry.response.httpVersion == "HTTP/1.1")
        #expect(entry.response.headers.map(\.name) == ["Content-Type", "Content-Length", "X-A", "x-a"])
        #expect(entry.response.content.text == "hello")
        #expect(entry.response.content.mimeType == "text/plain")
        #expect(entry.response.bodySize == 5)
        #expect(entry.serverIPAddress == "127.0.0.1")
        #expect(entry.timings.ssl == -1)
        #expect(entry.timings.connect >= 0)
        let started = try Date(
            entry.startedDateTime, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        // The start time has a resolution of one millisecond.
        #expect(started.timeIntervalSince(before) > -1)
        #expect(started.timeIntervalSinceNow < 1)
    }

    @Test("Time before a redirect is not part of the wait time but is part of the total time")
    func redirected() async throws {
        let delay = Duration.milliseconds(100)
        try await TestOrigin.withOrigin { request in
            guard request.path == "/slow" else { return .text("done") }
            return .redirect(to: "/done").with { $0.delay = delay }
        } run: { origin in
            let exchange = try await HTTPSession.own().get(origin.url("/slow"))
            let timings = HARTimings(exchange.metrics)
            #expect(timings.blocked + max(timings.dns, 0) + max(timings.connect, 0) >= 100)
            #expect(abs(timings.total - exchange.metrics.total / .milliseconds(1)) < 0.001)
        }
    }

    @Test("A binary body is written in Base64, and a truncated one is marked")
    func bodies() async throws {
        let binary = try await entry("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\u{0}abc")
        #expect(binary.response.content.encoding == "base64")
        #expect(binary.response.content.text == "AGFiYw==")
        #expect(binary.response.content.mimeType == "x-unknown")
        var options = HAROptions()
        options.bodyLimit = 4
        let long = try await entry("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabcäe", options: options)
        #expect(long.response.content.text == "abc")
        #expect(long.response.content.comment == "the first 4 of 6 bytes")
        #expect(long.response.content.size == 6)
        let large = try await entry(
            "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\na\u{0}cdef", options: options)
        #expect(large.response.content.text == nil)
        #expect(large.response.content.comment == "6 bytes, above the limit for shown bodies")
    }

    @Test("Text in another charset is written as text")
    func charset() throws {
        let bytes: [UInt8] = [0x63, 0x61, 0x66, 0xE9]
        let text = HARTextReading.text(bytes, "text/plain; charset=iso-8859-1")
        #expect(text == "café")
        #expect(HARTextReading.text(bytes, "text/plain") == nil)
    }

    @Test("Secrets are masked in every part of an entry")
    func secrets() async throws {
        let entry = try await entry(
            "HTTP/1.1 302 Found\r\nSet-Cookie: sid=hunter2; Path=/; HttpOnly; Secure; "
                + "Expires=Sun, 06 Nov 1994 08:49:37 GMT\r\nLocation: https://u:hunter2@h.example/\r\n"
                + "Content-Length: 0\r\n\r\n",
            {
                try HTTPRequest(
                    .get, $0, "/", [.authorization: "Basic hunter2", .cookie: "a=hunter2;b=hunter2"])
            })
        #expect(!"\(entry)".contains("hunter2"))
        #expect(entry.request.cookies.map(\.name) == ["a", "b"])
        #expect(entry.request.headers.contains { $0.value == "Basic ***" })
        let cookie = try #require(entry.response.cookies.first)
        #expect(cookie.name == "sid")
        #expect(cookie.path == "/")
        #expect(cookie.httpOnly == true)
        #expect(cookie.secure == true)
        #expect(cookie.expires == "1994-11-06T08:49:37Z")
        #expect(entry.response.redirectURL == "https://***:***@h.example/")
        #expect(entry.response.headers.contains { $0.value.hasPrefix("sid=***; Path=/") })
    }

    @Test(
        "User info and tokens in a reference are masked",
        arguments: [
            ("//u:hunter2@h.example/", "//***@h.example/"), ("ftp://u:hunter2@h/", "ftp://***@h/"),
            ("http://u:hunter2@h:99999/", "http://***@h:99999/"), ("/a?token=hunter2&b=1", "/a?token=***&b=1"),
            ("a?b=1#access_token=hunter2&c=2", "a?b=1#access_token=***&c=2"),
            ("#id_token=hunter2", "#id_token=***"), ("https://h/#b=1&code=hunter2", "https://h/#b=1&code=***"),
            ("/@me", "/@me"), ("https://h:443/a?b=1", "https://h:443/a?b=1"), ("", ""),
        ])
    func references(value: String, shown: String) throws {
        #expect(SecretRedaction.standard.value(of: .location, value) == shown)
        #expect(SecretRedaction.none.value(of: .location, value) == value)
        let link = try #require(HTTPField.Name("Link"))
        #expect(
            SecretRedaction.standard.value(of: link, "</b>; rel=last, <\(value)>; rel=next")
                == "</b>; rel=last, <\(shown)>; rel=next")
    }

    @Test("A HAR log masks the usual names of secrets in the URL and in a form")
    func tokens() async throws {
        let entry = try await entry(
            "HTTP/1.1 204 No Content\r\n\r\n", { try HTTPRequest(.post, $0, "/?a=1&access_token=hunter2") },
            body: .form([QueryItem(name: "client_assertion", value: "hunter2")]))
        #expect(!"\(entry)".contains("hunter2"))
        #expect(entry.request.url.hasSuffix("/?a=1&access_token=***"))
        #expect(entry.request.queryString.map(\.value) == ["1", "***"])
        #expect(entry.request.postData?.text == "client_assertion=***")
    }

    @Test("A cookie without a name is a value, which may be a secret: it is omitted")
    func namelessCookies() async throws {
        let entry = try await entry(
            "HTTP/1.1 200 OK\r\nSet-Cookie: hunter2\r\nSet-Cookie: hunter2; Path=/a=b\r\nSet-Cookie: =hunter2\r\n"
                + "Content-Length: 0\r\n\r\n",
            { try HTTPRequest(.get, $0, "/", [.cookie: "hunter2; a=hunter2; =hunter2;"]) })
        #expect(!"\(entry)".contains("hunter2"))
        #expect(entry.request.cookies.map(\.name) == ["a"])
        #expect(entry.response.cookies.isEmpty)
    }

    @Test("Without a mask the secrets are written")
    func unmasked() async throws {
        var options = HAROptions()
        options.mask = .none
        let entry = try await entry(
            "HTTP/1.1 200 OK\r\nSet-Cookie: sid=hunter2\r\nContent-Length: 0\r\n\r\n",
            { try HTTPRequest(.get, $0, "/", [.cookie: "a=hunter2"]) }, options: options)
        #expect(entry.request.cookies.first?.value == "hunter2")
        #expect(entry.response.cookies.first?.value == "hunter2")
    }

    @Test("The entry contains the request body as text, form parameters, Base64 or a stream's name")
    func posted() async throws {
        let answer = "HTTP/1.1 204 No Content\r\n\r\n"
        func posted(_ body: HTTPBody, _ mask: SecretRedaction = .standard) async throws -> HARDocument
            .PostData?
        {
            var options = HAROptions()
            options.mask = mask
            return try await entry(answer, { try HTTPRequest(.post, $0) }, body: body, options: options)
                .request
                .postData
        }
        let json = try await posted(.json(["a": "ä"]))
        #expect(json?.mimeType == "application/json")
        #expect(json?.text == "{\"a\":\"ä\"}")
        let form = try await posted(
            .form([QueryItem(name: "a", value: "1"), QueryItem(name: "token", value: "hunter2")]),
            .standard.adding(queryItems: ["token"]))
        #expect(form?.params?.map(\.name) == ["a", "token"])
        #expect(form?.params?.map(\.value) == ["1", "***"])
        #expect(form?.text == "a=1&token=***")
        let bytes = try await posted(.bytes([0, 1]))
        #expect(bytes?.text == "AAE=")
        #expect(bytes?._encoding == "base64")
        let parts = try await posted(
            .multipart {
                $0.field("a", "1")
                $0.data("f", [1], filename: "f.png")
            })
        #expect(parts?.params?.map(\.name) == ["a", "f"])
        #expect(parts?.params?.last?.fileName == "f.png")
        #expect(parts?.params?.last?.contentType == "image/png")
    }

    @Test("A multipart form is written as text without files and without secrets")
    func postedParts() async throws {
        var options = HAROptions()
        options.mask = .standard.adding(queryItems: ["token"])
        let body = HTTPBody.multipart {
            $0.field("a", "1")
            $0.field("token", "hunter2")
            $0.part("own", .text("x"), headers: ["X-Key": "hunter2"])
            $0.data("f", Array("hunter2".utf8), filename: "f.txt")
        }
        let answer = "HTTP/1.1 204 No Content\r\n\r\n"
        let posted = try await entry(answer, { try HTTPRequest(.post, $0) }, body: body, options: options)
            .request.postData
        let boundary = try #require(MediaType(posted?.mimeType ?? "")?["boundary"])
        #expect(
            posted?.text
                == """
                --B\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n\
                --B\r\nContent-Disposition: form-data; name="token"\r\n\r\n***\r\n\
                --B\r\nContent-Disposition: form-data; name="own"\r\n\
                Content-Type: text/plain; charset=utf-8\r\n\r\nx\r\n\
                --B\r\nContent-Disposition: form-data; name="f"; filename="f.txt"\r\n\
                Content-Type: text/plain\r\n\r\n\r\n\
                --B--\r\n
                """.replacing("B", with: boundary))
    }

    @Test("A secret stays masked in a form that is longer than the limit")
    func longForm() async throws {
        var options = HAROptions()
        options.mask = .standard.adding(queryItems: ["token"])
        let body = HTTPBody.form([
            QueryItem(name: "token", value: "hunter2"), QueryItem(name: "a", value: "1"),
        ])
        for limit in 0..<19 {
            options.bodyLimit = ByteCount(limit)
            let posted = try await entry(
                "HTTP/1.1 204 No Content\r\n\r\n", { try HTTPRequest(.post, $0) }, body: body,
                options: options
            ).request.postData
            #expect(posted?.text?.contains("h") == false)
            #expect(posted?.params?.contains { $0.value?.contains("h") == true } == false)
            #expect(posted?.comment == (limit < 17 ? "the first \(limit) of 17 bytes" : nil))
        }
    }

    @Test("The entry contains the server's port and the received byte count")
    func forBrowsers() async throws {
        let entry = try await entry("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        let host = entry.request.headers.first { $0.name == "Host" }?.value
        #expect(host == "127.0.0.1:\(entry.connection ?? "")")
        #expect(entry._connectionId != nil && entry._connectionId != entry.connection)
        #expect(entry.response._transferSize == 5)
    }

    @Test("A log is a complete document after every append, and the pieces form the whole")
    func pieces() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin in
            let session = HTTPSession.own()
            var log = HARLog(creator: "Test", version: "7")
            var file: [UInt8] = []
            var entries: [HAREntry] = []
            func write(_ piece: HARLog.Piece) {
                file.removeLast(file.count - Int(piece.offset))
                file += piece.bytes
            }
            write(log.begin())
            #expect(try HARDocument.read(file).log.entries.isEmpty)
            for count in 1...3 {
                entries.append(HAREntry(try await session.get(origin.url())))
                write(log.append(try #require(entries.last)))
                let document = try HARDocument.read(file)
                #expect(document.violations == [])
                #expect(document.log.entries.count == count)
                #expect(document.log.creator.version == "7")
            }
            #expect(HARLog.bytes(entries, creator: "Test", version: "7") == file)
        }
    }

    @Test("A failed call is an entry of status 0 with the error")
    func failed() async throws {
        let request = try HTTPRequest(method: .get, url: "https://u:hunter2@h.example/")
        let error = HTTPError(.connectFailed, phase: .connecting, message: "refused")
        let entry = HAREntry(failed: request, url: try HTTPURL("https://u:hunter2@h.example/"), error: error)
        let document = try HARDocument.read(HARLog.bytes([entry]))
        #expect(document.violations == [])
        #expect(document.log.entries.first?.response.status == 0)
        #expect(document.log.entries.first?._error == "refused")
        #expect(!String(decoding: entry.json, as: UTF8.self).contains("hunter2"))
    }

    @Test("A body that breaks off is written together with its error")
    func cut() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel"), .close)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let error = try #require(
                await #expect(throws: HTTPError.self) { try await HTTPSession.own().get(origin.url()) })
            let exchange = try #require(error.exchange)
            let document = try HARDocument.read(HARLog.bytes([HAREntry(exchange, error: error)]))
            #expect(document.violations == [])
            #expect(document.log.entries.first?.response.content.text == "hel")
            #expect(document.log.entries.first?._error?.contains("3 of 5 bytes") == true)
        }
    }

    @Test("The phases of a call are separate and add up to the total")
    func timings() {
        var metrics = HTTPMetrics()
        metrics.wait = .milliseconds(100)
        metrics.dns = .milliseconds(10)
        metrics.connect = .milliseconds(20)
        metrics.tls = .milliseconds(30)
        metrics.send = .milliseconds(5)
        metrics.firstByte = .milliseconds(150)
        metrics.total = .milliseconds(400)
        let timings = HARTimings(metrics)
        #expect(timings.blocked == 40)
        #expect(timings.dns == 10)
        #expect(timings.connect == 50, "TLS is part of it")
        #expect(timings.ssl == 30)
        #expect(timings.send == 5)
        #expect(timings.wait == 45)
        #expect(timings.receive == 250)
        #expect(timings.total == 400)
    }

    @Test("A reused connection has no lookup time and no handshake time")
    func reused() {
        var metrics = HTTPMetrics()
        metrics.wait = .milliseconds(1)
        metrics.firstByte = .milliseconds(2)
        metrics.total = .milliseconds(3)
        let timings = HARTimings(metrics)
        #expect([timings.dns, timings.connect, timings.ssl] == [-1, -1, -1])
        #expect(timings.total == 3)
    }

    @Test("If connecting began before the call, only the part within the call counts")
    func earlyDial() {
        var metrics = HTTPMetrics()
        metrics.wait = .milliseconds(25)
        metrics.dns = .milliseconds(100)
        metrics.connect = .milliseconds(20)
        metrics.tls = .milliseconds(10)
        metrics.firstByte = .milliseconds(30)
        metrics.total = .milliseconds(30)
        let timings = HARTimings(metrics)
        #expect(timings.ssl == 10)
        #expect(timings.connect == 25)
        #expect(timings.dns == 0)
        #expect(timings.blocked == 0)
        #expect(timings.total == 30)
    }

    @Test("A response that arrives before the request was sent causes no negative time")
    func earlyAnswer() {
        var metrics = HTTPMetrics()
        metrics.wait = .milliseconds(10)
        metrics.send = .milliseconds(500)
        metrics.firstByte = .milliseconds(50)
        metrics.total = .milliseconds(40)
        let timings = HARTimings(metrics)
        #expect(timings.send == 40)
        #expect(timings.wait == 0)
        #expect(timings.receive == 0)
    }
}

@Suite("String escaping in HAR logs")
struct HARStringTests {
    private func written(_ bytes: [UInt8]) -> String {
        String(
            decoding: JSONValue.string(String(decoding: bytes, as: UTF8.self)).bytesForPages, as: UTF8.self)
    }

    @Test("Characters that end a JSON string or confuse a page or a script are escaped")
    func escapes() {
        #expect(written(Array("a\"b\\c\n\r\t".utf8)) == #""a\"b\\c\n\r\t""#)
        #expect(
            written(Array("\u{0}\u{1F}\u{7F}</script>\u{2028}".utf8))
                == #""\u0000\u001f\u007f\u003c/script>\u2028""#)
        #expect(written(Array("ä日😀".utf8)) == "\"ä日😀\"")
    }

    @Test("Invalid UTF-8 and lone surrogates become U+FFFD")
    func malformed() {
        #expect(written([0x61, 0xFF, 0x62]) == "\"a\u{FFFD}b\"")
        #expect(written([0xED, 0xA0, 0x80]) == "\"\u{FFFD}\u{FFFD}\u{FFFD}\"")
        #expect(written([0xC3]) == "\"\u{FFFD}\"")
    }

    @Test("All numbers are written as valid JSON numbers")
    func numbers() {
        func written(_ number: Double) -> String {
            JSONValue.milliseconds(number).text()
        }
        #expect(written(1.23456) == "1.235")
        #expect(written(-1) == "-1.0")
        #expect(written(.infinity) == "0.0")
        #expect(written(.nan) == "0.0")
    }
}

/// The text or Base64 form of a body in a log.
private enum HARTextReading {
    static func text(_ bytes: [UInt8], _ type: String) -> String? {
        let text = HARText(bytes, type: MediaType(type), limit: 100)
        return text.isBase64 ? nil : text.text
    }
}
