import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Properties and helpers that all responses share", .timeLimit(.minutes(20)))
struct ResponseReadingTests {
    private struct User: Codable, Equatable {
        var name: String
    }

    /// A middleware that reads the response's head.
    private struct Reader: HTTPMiddleware {
        let read: @Sendable (HTTPCall.Response) -> Void

        func handle(_ request: HTTPCall.Request, context: CallContext, next: HTTPNext) async throws
            -> HTTPCall.Response
        {
            let response = try await next(request)
            read(response)
            return response
        }
    }

    private static func words(_ response: some HTTPResponseHead, _ url: HTTPURL?) -> [String] {
        [
            "\(response.status.code) \(response.statusCode)", response.headers["x-name"] ?? "none",
            response.headers["not a name"] ?? "none", response.contentType?.essence ?? "none",
            response.contentType?.charset ?? "none", url?.path ?? "none", "\(response.source)",
        ]
    }

    @Test("Status, fields, media type, URL and source have the same names on every kind of response")
    func names() async throws {
        let fields: OriginFields = ["X-Name": "n", "Content-Type": "Text/Plain; charset=utf-8"]
        try await TestOrigin.withOrigin { _ in
            OriginResponse(201, headers: fields, body: .text("x"))
        } run: { origin async throws in
            let found = Mutex<[[String]]>([])
            let session = HTTPSession.own {
                $0.middleware = [
                    Reader { response in found.withLock { $0.append(Self.words(response, response.url)) } }
                ]
            }
            let exchange = try await session.get(origin.url("/p"))
            found.withLock { $0.append(Self.words(exchange, exchange.url)) }
            let open = try await session.open(origin.url("/p"))
            found.withLock { $0.append(Self.words(open, open.url)) }
            try await session.stream(origin.url("/p")) { response, _ in
                found.withLock { $0.append(Self.words(response, response.url)) }
                let text = try await response.text()
                #expect(text == "x")
            }
            let expected = ["201 201", "n", "none", "text/plain", "utf-8", "/p", "network"]
            #expect(found.withLock { $0 } == Array(repeating: expected, count: 6))
            let headers: HTTPHeaders = ["X-Name": "n"]
            #expect(headers["X-Name"] == "n" && headers["x-name"] == "n")
        }
    }

    @Test("A body can be read once; a second read is an error", arguments: [true, false])
    func secondPass(isOpened: Bool) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin { request in
            request.path == "/empty" ? OriginResponse(204) : .text("0123456789")
        } run: { origin async throws in
            func read(_ response: OpenResponse) async throws {
                var iterator = response.body.makeAsyncIterator()
                #expect(try await iterator.next() != nil)
                #expect(try await iterator.next() == nil)
                #expect(try await iterator.next() == nil)
                for pass: @Sendable () async throws -> Void in [
                    { _ = try await response.body.collect() }, { for try await _ in response.body {} },
                    { _ = try await response.text() }, { _ = try await response.decode(User.self) },
                    { try await response.body.write(to: directory.path("f")) },
                ] {
                    let error = await #expect(throws: HTTPError.self) { try await pass() }
                    #expect(error?.code == .bodyAlreadyRead && error?.url?.path == "/")
                }
                #expect(try directory.contents() == [])
            }
            func readEmpty(_ response: OpenResponse) async throws {
                for _ in 0..<2 { #expect(try await response.body.collect() == []) }
            }
            let session = HTTPSession.own()
            if isOpened {
                try await read(session.open(origin.url()))
                try await readEmpty(session.open(origin.url("/empty")))
            } else {
                try await session.stream(origin.url()) { response, _ in try await read(response) }
                try await session.stream(origin.url("/empty")) { response, _ in try await readEmpty(response) }
            }
        }
    }

    @Test("The rest of a body is collected as text or as a value, up to a limit")
    func helpers() async throws {
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/latin": OriginResponse(headers: ["Content-Type": "text/plain; charset=latin1"], body: .bytes([0xE9]))
            case "/404": .json(text: #"{"name":"n"}"#, status: 404)
            default: .json(text: #"{"name":"n"}"#)
            }
        } run: { origin async throws in
            let session = HTTPSession.own()
            #expect(try await session.open(origin.url("/latin")).text() == "é")
            #expect(try await session.open(origin.url("/a")).decode() == User(name: "n"))
            #expect(try await session.stream(origin.url("/a")) { try await $1.decode(User.self) } == User(name: "n"))
            let status = await #expect(throws: HTTPError.self) {
                try await session.open(origin.url("/404")).decode(User.self)
            }
            #expect(status?.code == .unacceptableStatus && status?.exchange?.body.count == 12)
            let large = await #expect(throws: HTTPError.self) {
                try await session.open(origin.url("/a")).text(upTo: .bytes(3))
            }
            #expect(large?.code == .bodyTooLarge)
            let exchange = try await session.get(origin.url("/404"))
            #expect(try exchange.decode(User.self, status: 400..<500) == User(name: "n"))
        }
    }

    @Test("An unknown charset and bytes that are invalid in the charset are reported")
    func charsets() async throws {
        try await TestOrigin.withOrigin { request in
            let charset = String(request.path.dropFirst())
            return OriginResponse(
                headers: ["Content-Type": "text/plain; charset=\(charset)"], body: .bytes([0x83, 0x65]))
        } run: { origin async throws in
            let session = HTTPSession.own()
            let unknown = try await session.get(origin.url("/shift_jis"))
            #expect(unknown.text == "\u{FFFD}e")
            #expect(unknown.textError?.description == "the charset “shift_jis” is not known")
            let malformed = try await session.get(origin.url("/utf-8"))
            #expect(malformed.text == "\u{FFFD}e" && "\(malformed.textError as Any)".contains("byte 0"))
            let known = try await session.get(origin.url("/latin1"))
            #expect(known.text == "ƒe" && known.textError == nil)
            #expect(try unknown.text(charset: "Latin1") == "ƒe")
            #expect(try malformed.text(charset: "iso-8859-1") == "ƒe")
            #expect(try String(decoding: malformed.body, charset: "iso-8859-1") == "ƒe")
            #expect(throws: ResponseDecodingError.self) {
                try String(decoding: malformed.body, charset: "shift_jis")
            }
            let unsupported = #expect(throws: HTTPError.self) { try known.text(charset: "shift_jis") }
            #expect(unsupported?.code == .decodingFailed && unsupported?.message.contains("shift_jis") == true)
            let error = await #expect(throws: HTTPError.self) {
                try await session.open(origin.url("/shift_jis")).text()
            }
            #expect(error?.code == .decodingFailed && error?.underlying is ResponseDecodingError)
            #expect(error?.exchange?.body == [0x83, 0x65])
            #expect(try await session.open(origin.url("/utf-8")).text() == "\u{FFFD}e")
        }
    }

    @Test("A missing body causes the same message in every decoder", arguments: [204, 205, 200])
    func noBody(status: Int) async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(status)
        } run: { origin async throws in
            let exchange = try await HTTPSession.own().get(origin.url("/users/1"))
            for decode: @Sendable () throws -> Any in [
                { try exchange.decode(User.self) }, { try exchange.decode([String].self, using: JSONDecoder()) },
                { try exchange.decode(using: .json(User.self)) }, { try exchange.decode(using: .json) },
                { try exchange.decode(using: .propertyList(User.self)) },
            ] {
                let error = try #require(#expect(throws: HTTPError.self) { try decode() })
                #expect(error.code == .decodingFailed)
                #expect(
                    error.description.hasPrefix(
                        "GET \(exchange.url): there is no value to decode: the response was \(status)"))
                #expect(error.description.hasSuffix("without a body"))
            }
            #expect(try exchange.decode(using: .nilIfEmpty(.json(User.self))) == nil)
        }
    }

    @Test("A condition that needs only the head is checked before the body is read", arguments: [0, 1, 2])
    func headFirst(number: Int) async throws {
        let script = ServerScript(
            .expectRequestHead,
            .send("HTTP/1.1 500 No\r\nContent-Type: text/plain\r\nContent-Length: 1000000\r\n\r\nabc"), .stall)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let (validator, code): (ResponseValidator, HTTPError.Code) = [
                (.success, .unacceptableStatus), (.contentType("image/*"), .unacceptableContentType),
                (.body(atMost: .bytes(10)), .bodyTooLarge),
            ][number]
            let session = HTTPSession.own { $0.validator = validator }
            let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(error?.code == code)
            #expect(error?.exchange?.text == "abc")
            #expect(session.poolStatus.leased == 0)
        }
    }

    @Test("Conditions after a closure that receives the body are checked after it")
    func closureFirst() async throws {
        struct Rejection: Error {}
        try await TestOrigin.withOrigin { _ in
            .text("no", status: 500)
        } run: { origin async throws in
            let session = HTTPSession.own {
                $0.validator = .custom { if $0.text == "no" { throw Rejection() } }.and(.success)
            }
            await #expect(throws: Rejection.self) { try await session.get(origin.url()) }
        }
    }

    @Test("The error for an unaccepted URL contains the URL without its secrets")
    func invalidURLs() async throws {
        for (text, shown) in [
            ("https://exa mple.org/a?token=s", "“https://exa mple.org/a”"), ("example.org", "“example.org”"),
            ("https://user:secret@exa mple.org/", "“https://***@exa mple.org/”"),
            ("user:secret@example.org//", "“***@example.org//”"), ("https://a\tb/#secret", "“https://a\\tb/”"),
            ("ftp://" + String(repeating: "a", count: 300), "aaa…”"),
        ] {
            let error = await #expect(throws: HTTPError.self) { try await HTTPSession.own().get(text) }
            #expect(error?.code == .invalidURL && error?.message.contains(shown) == true, "\(error as Any)")
            #expect(error?.message.contains("secret") == false)
        }
    }

    @Test("A URL converts to Foundation's URL and back")
    func foundation() throws {
        let url = try HTTPURL("https://user:pw@example.org:8443/ä b?q=a#f")
        let other = try #require(URL(url))
        #expect(other.absoluteString == url.absoluteString)
        #expect(try HTTPURL(other) == url)
    }

    @Test("A destination that already exists is an error with the file's path and its own code")
    func existingFile() async throws {
        let directory = try TemporaryDirectory()
        try directory.write([1], to: "f")
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().stream(origin.url()) { _, body in
                    try await body.write(to: directory.path("f"))
                }
            }
            #expect(error?.code == .fileExists)
            #expect(error?.message.hasPrefix("\(directory.path("f")) already exists") == true)
        }
    }
}
