import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Header fields that could split a request, in each function that accepts header fields.
@Suite("Invalid header fields", .timeLimit(.minutes(20)))
struct HeaderRejectionTests {
    /// A function that accepts header fields.
    struct Place: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let call: @Sendable (HTTPSession, String, HTTPHeaders) async throws -> Void
    }

    struct Endpoint: HTTPEndpoint {
        typealias Response = Void
        let path = "p"
        let headers: HTTPHeaders
    }

    static let places: [Place] = [
        Place(testDescription: "get") { _ = try await $0.get($1, headers: $2) },
        Place(testDescription: "head") { _ = try await $0.head($1, headers: $2) },
        Place(testDescription: "delete") { _ = try await $0.delete($1, headers: $2) },
        Place(testDescription: "post") { _ = try await $0.post($1, body: .text("x"), headers: $2) },
        Place(testDescription: "put") { _ = try await $0.put($1, body: .text("x"), headers: $2) },
        Place(testDescription: "patch") { _ = try await $0.patch($1, body: .text("x"), headers: $2) },
        Place(testDescription: "send") { _ = try await $0.send(.options, $1, headers: $2) },
        Place(testDescription: "send with a body") { _ = try await $0.send(.post, $1, body: .text("x"), headers: $2) },
        Place(testDescription: "send a request") {
            _ = try await $0.send(HTTPRequest(method: .get, url: $1), headers: $2)
        },
        Place(testDescription: "stream") { try await $0.stream($1, headers: $2) { _, _ in } },
        Place(testDescription: "upload") { try await $0.upload(.text("x"), to: $1, headers: $2) },
        Place(testDescription: "save") { session, url, headers in
            let directory = try TemporaryDirectory()
            try await session.save(url, to: directory.path("f"), overwrites: false, headers: headers)
        },
        Place(testDescription: "download") { session, url, headers in
            let directory = try TemporaryDirectory()
            try await session.download(url, to: directory.path("f"), headers: headers)
        },
        Place(testDescription: "task") { _ = try await $0.task(for: $1, headers: $2).value },
        Place(testDescription: "events") { for try await _ in $0.events($1, headers: $2) {} },
        Place(testDescription: "lines") { for try await _ in $0.lines(from: $1, headers: $2) {} },
        Place(testDescription: "deliveries") { for try await _ in $0.deliveries(for: $1, headers: $2) {} },
        Place(testDescription: "options of a download") { session, url, headers in
            let directory = try TemporaryDirectory()
            try await session.download(url, to: directory.path("f"), options: .init(headers: headers))
        },
        Place(testDescription: "configuration") { session, url, headers in
            _ = try await session.with { $0.headers = headers }.get(url)
        },
        Place(testDescription: "trailers") { session, url, headers in
            var options = RequestOptions()
            options.trailers = headers
            _ = try await session.post(url, body: .stream { Pieces("x") }, options: options)
        },
        Place(testDescription: "host") { _ = try await $0.host($1, headers: $2).get() },
        Place(testDescription: "host, set later") { session, url, headers in
            _ = try await session.host(url).with { $0.headers = headers }.post(parameters: ["a": 1])
        },
        Place(testDescription: "call of a host") { _ = try await $0.host($1).get("p", headers: $2) },
        Place(testDescription: "task of a host") {
            _ = try await $0.host($1).task("p", headers: $2).value
        },
        Place(testDescription: "endpoint") { try await $0.host($1).call(Endpoint(headers: $2)) },
        Place(testDescription: "idempotency key") { session, url, headers in
            // Only the value is given in this case.
            if headers.error?.message.contains("in its value") != true {
                _ = try await session.get(url, headers: headers)
            }
            let options = RequestOptions(idempotencyKey: .value("hunter2\r\nEVIL: 1"))
            _ = try await session.post(url, body: .text("x"), options: options)
        },
    ]

    private static let bad: [(name: String, value: String, shown: String)] = [
        ("X-A", "hunter2\r\nEVIL: 1", "carriage return, 0x0D at position 7"),
        ("X-A", "hunter2\nEVIL: 1", "line feed, 0x0A at position 7"), ("X-A", "hunter2\0", "NUL, 0x00"),
        ("X-A", "hunter2\u{1B}[0m", "0x1B"), ("X-A", "hunter2\u{7F}", "0x7F"),
        ("X A", "hunter2", "space, 0x20 at position 1"), (":path", "hunter2", "colon, 0x3A at position 0"),
        ("X-A:", "hunter2", "colon"), ("X\r\nEVIL", "hunter2", "carriage return"), ("", "hunter2", "no name"),
        ("Xä", "hunter2", "0xC3"), ("X\0", "hunter2", "NUL"),
    ]

    @Test(
        "An invalid name or value is a typed error before any connection, and the message omits the value",
        arguments: places)
    func rejected(_ place: Place) async throws {
        try await TestOrigin.withOrigin(respond: { _ in .text("EVIL") }) { origin in
            for row in Self.bad {
                let headers: HTTPHeaders = ["X-Good": "1", HTTPHeaders.Name(row.name): row.value]
                let error = await #expect(throws: HTTPError.self) {
                    try await place.call(HTTPSession.own(), origin.base, headers)
                }
                #expect(error?.code == .invalidHeader)
                #expect(error?.phase == .preparing)
                #expect(error?.wasSent == false)
                if place.testDescription != "idempotency key" {
                    #expect(error?.message.contains(row.shown) == true, "\(error?.message ?? "")")
                }
                #expect(error.map { "\($0)".contains("hunter2") } == false)
                #expect(error?.message.contains("\r") == false)
            }
            #expect(origin.connectionCount == 0)
        }
    }

    @Test("A valid value replaces a rejected one, and nil removes it")
    func replaced() throws {
        var headers: HTTPHeaders = ["x-trace": "a\n", "Y": "b\n", "Bad Name": "c"]
        #expect(throws: HTTPError.self) { try headers.validated() }
        // One name for subscripts and as a key of a literal.
        let trace: HTTPHeaders.Name = "X-Trace"
        headers[trace] = "good"
        #expect(headers[trace] == "good" && headers[.accept] == nil)
        #expect(try ([trace: "a"] as HTTPHeaders).validated() == HTTPHeaders(["X-Trace": "a"]).fields)
        headers["y"] = nil
        headers["Bad Name"] = nil
        #expect(try headers.validated() == HTTPHeaders(["X-Trace": "good"]).fields)
        headers["X-Trace"] = "bad\n"
        #expect(headers["X-Trace"] == nil)
        #expect(throws: HTTPError.self) { try headers.validated() }
    }

    @Test(
        "Too many fields are an error of the call, however they are added", arguments: ["name", "field", "set", "fill"])
    func tooMany(_ way: String) throws {
        var headers = HTTPHeaders()
        let name = try #require(HTTPField.Name("X-A"))
        switch way {
        case "name": for _ in 0..<70_000 { headers.append("X-A", "1") }
        case "field": for _ in 0..<70_000 { headers.append(HTTPField(name: name, value: "1")) }
        case "set": for number in 0..<10_001 { headers["X-\(number)"] = "1" }
        default:
            for _ in 0..<9_000 { headers.append("X-A", "1") }
            var more = HTTPFields()
            for number in 0..<9_000 { more.append(HTTPField(name: try #require(.init("X-\(number)")), value: "1")) }
            headers.fill(from: more)
        }
        #expect(Array(headers).count == 10_000)
        let error = #expect(throws: HTTPError.self) { try headers.validated() }
        #expect(error?.code == .invalidHeader)
    }

    @Test("Literals keep order and repeated fields, and constants and strings are the same name")
    func literals() throws {
        let id = "7"
        let headers: HTTPHeaders = ["X-Trace": id, .accept: "a/b", "accept": "c/d", "X-\(id)": "tab\there"]
        let fields = try headers.validated()
        #expect(fields.map(\.name.rawName) == ["X-Trace", "Accept", "accept", "X-7"])
        #expect(headers[.accept] == "a/b, c/d")
        #expect(headers["X-TRACE"] == "7")
        #expect(headers["X-7"] == "tab\there")
        #expect(Array(HTTPHeaders(["b": "1", "a": "2"])).map(\.name.rawName) == ["a", "b"])
        #expect(!"\(HTTPHeaders(["Authorization": "hunter2"]))".contains("hunter2"))
        #expect(HTTPHeaders(fields) == headers)
    }

    @Test("A field of a literal whose value is nil is omitted")
    func absentFields() async throws {
        let tag: String? = "\"v1\""
        let absent: String? = nil
        let headers: HTTPHeaders = [.ifNoneMatch: tag, "X-A": absent, "X-B": nil, "X-C": "c", "X-C": absent]
        #expect(headers.map(\.name.rawName) == ["If-None-Match", "X-C"])
        #expect(headers[.ifNoneMatch] == "\"v1\"" && headers["X-C"] == "c")
        #expect(["Bad Name": absent] as HTTPHeaders == HTTPHeaders())
        try await TestOrigin.withOrigin(respond: { _ in .text("x") }) { origin in
            _ = try await HTTPSession.own().get(origin.url(), headers: ["X-A": absent, "X-B": tag])
            let fields = try #require(origin.requests.first?.headers)
            #expect(fields["X-A"] == nil && fields["X-B"] == "\"v1\"")
        }
    }

    @Test("Fields of a call replace those of the request and of the session")
    func precedence() async throws {
        try await TestOrigin.withOrigin(respond: { _ in .text("x") }) { origin in
            let session = HTTPSession.own {
                $0.headers = ["X-A": "session", "X-B": "session", "X-C": "session"]
            }
            var request = try HTTPRequest(method: .get, url: origin.base)
            request.headerFields = HTTPFields(
                try HTTPHeaders(["X-B": "request", "X-C": "request"]).validated())
            _ = try await session.get(request, headers: ["x-c": "call"])
            let fields = try #require(origin.requests.first?.headers)
            #expect([fields["X-A"], fields["X-B"], fields["X-C"]] == ["session", "request", "call"])
        }
    }
}
