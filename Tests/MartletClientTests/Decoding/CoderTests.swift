import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Encoder and decoder of a session or host", .timeLimit(.minutes(20)))
struct CoderTests {
    private struct Event: Codable, Hashable, Sendable {
        var firstName: String
        var createdAt: Date
    }

    private struct Problem: Error, Codable, Equatable {
        var errorTitle: String
    }

    private static let event = Event(firstName: "Anna", createdAt: Date(timeIntervalSince1970: 1_000_000_000))
    private static let json = #"{"first_name":"Anna","created_at":"2001-09-09T01:46:40Z"}"#

    private static func api(_ origin: TestOrigin) throws -> HTTPHost {
        try HTTPSession.own().host(origin.base) {
            $0.encoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.decoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.errors = .decoding(Problem.self)
        }
    }

    @Test("Values, endpoints, lines and events are decoded with the host's decoder")
    func decoding() async throws {
        struct Latest: HTTPEndpoint {
            typealias Response = Event
            var path: String { "latest" }
        }
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/lines":
                let fraction = Self.json.replacing("40Z", with: "40.000Z")
                return .text("\(Self.json)\n\n\(fraction)\r\n")
            case "/events":
                return OriginResponse(
                    headers: ["Content-Type": "text/event-stream"], body: .text("data: \(Self.json)\n\n"))
            case "/list": return .json(text: "[\(Self.json)]")
            default: return .json(text: Self.json)
            }
        } run: { origin async throws in
            let api = try Self.api(origin)
            #expect(try await api.get("latest").decode() == Self.event)
            // Without a host, the decoder is given to `decode`, as a BodyDecoder or as a JSONDecoder.
            let plain = try await HTTPSession.own().get(origin.url("/latest"))
            #expect(try plain.decode(using: .json(keys: .snakeCase, dates: .iso8601)) == Self.event)
            let decoder = JSONDecoder()
            decoder.keyDecodingStrategy = .convertFromSnakeCase
            decoder.dateDecodingStrategy = .iso8601
            #expect(try plain.decode(Event.self, using: decoder) == Self.event)
            #expect(throws: HTTPError.self) { try plain.decode(Event.self, using: .json()) }
            #expect(try await api.get("list").decode([Event].self) == [Self.event])
            #expect(try await api.call(Latest()) == Self.event)
            let lines = try await api.stream("lines") { _, body in
                var events: [Event] = []
                for try await event in body.jsonLines(of: Event.self) { events.append(event) }
                return events
            }
            #expect(lines == [Self.event, Self.event])
            var options = EventStreamOptions()
            options.reconnects = false
            for try await event in api.session.events(origin.url("/events"), options: options) {
                #expect(try event.decode(Event.self) == Self.event)
            }
            try await api.stream("events") { _, body in
                for try await event in body.serverSentEvents {
                    #expect(try event.decode() == Self.event)
                    #expect(event == ServerSentEvent(data: Self.json))
                }
            }
        }
    }

    @Test("Encodable bodies and JSON parameters are encoded with the host's encoder")
    func encoding() async throws {
        let bodies = Mutex<[String]>([])
        try await TestOrigin.withOrigin { request in
            let body = try await request.collectText()
            bodies.withLock { $0.append(body) }
            #expect(request.headers["Content-Type"] == "application/json")
            return .json(text: "{}")
        } run: { origin async throws in
            let api = try Self.api(origin)
            _ = try await api.post("events", body: .json(Self.event))
            _ = try await api.session.post(origin.url("/events"), body: .json(Self.event))
            _ = try await api.with { $0.encoding = .json }.post("events", parameters: Self.event)
            for body in bodies.withLock({ $0 }) {
                #expect(body.contains("first_name") && body.contains("2001-09-09T01:46:40Z"), "\(body)")
            }
            _ = try await api.post("events", body: .json(Self.event, encoder: JSONEncoder()))
            #expect(bodies.withLock { $0.count == 4 && $0[3].contains("firstName") })
        }
    }

    @Test(
        "Queries and forms of types use the host's encoder for names and dates; literals and dictionaries do not"
    )
    func queries() throws {
        struct Filter: Encodable {
            var createdAfter = Date(timeIntervalSince1970: 1_000)
            var tagNames: [String: Int] = ["aB": 1]
            var pageSize: Int?
            var inner = ["x": Inner()]
        }
        struct Inner: Encodable {
            var isOn = true
        }
        let custom = JSONEncoder()
        custom.keyEncodingStrategy = .custom { path in path.last.map { AnyKey("k" + $0.stringValue) } ?? AnyKey("") }
        custom.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode("d\(Int(date.timeIntervalSince1970))")
        }
        let rows: [(BodyEncoder?, String)] = [
            (nil, "createdAfter=1970-01-01T00%3A16%3A40Z&inner%5Bx%5D%5BisOn%5D=true&tagNames%5BaB%5D=1"),
            (
                .json(keys: .snakeCase),
                "created_after=1970-01-01T00%3A16%3A40Z&inner%5Bx%5D%5Bis_on%5D=true&tag_names%5BaB%5D=1"
            ),
            (.json(dates: .secondsSince1970), "createdAfter=1000&inner%5Bx%5D%5BisOn%5D=true&tagNames%5BaB%5D=1"),
            (
                .json(dates: .millisecondsSince1970),
                "createdAfter=1000000&inner%5Bx%5D%5BisOn%5D=true&tagNames%5BaB%5D=1"
            ),
            (.json(custom), "kcreatedAfter=d1000&kinner%5Bx%5D%5BkisOn%5D=true&ktagNames%5BaB%5D=1"),
        ]
        for (encoder, expected) in rows {
            let session = HTTPSession.own { if let encoder { $0.encoder = encoder } }
            let api = try session.host("https://a.example")
            #expect(try api.prepare(.get, "x", parameters: Filter()).request.path == "/x?\(expected)")
            let form = try api.prepare(.post, "x", parameters: Filter()).body.bytesInMemory?.get()
            #expect(form.map { String(decoding: $0, as: UTF8.self) } == expected)
            #expect(try api.prepare(.get, "x", parameters: ["pageSize": 1]).request.path == "/x?pageSize=1")
            let own = api.with { $0.encoding.query.dates = .iso8601WithMilliseconds }
            // The host's dates apply unless the encoder specifies a form of dates.
            if encoder == nil || expected.contains("d1000") {
                #expect(try own.prepare(.get, "x", parameters: Filter()).request.path?.contains("40.000Z") == true)
            }
        }
    }

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    @Test("A date closure that encodes the date itself is a typed error and does not recurse endlessly")
    func recursiveDates() throws {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .custom { date, encoder in
            var container = encoder.singleValueContainer()
            try container.encode(date)
        }
        let api = try HTTPSession.own { $0.encoder = .json(encoder) }.host("https://a.example")
        let error = #expect(throws: HTTPError.self) { try api.prepare(.get, "x", parameters: ["d": Date()]) }
        #expect((error?.underlying as? ParameterError)?.code == .tooDeep)
    }

    @Test("The host's encoder writes JSON with sorted names in bodies, parameters and form parts")
    func sortedNames() async throws {
        struct Wide: Encodable, Sendable {
            var (zetaOne, alphaTwo, midThree, betaFour) = (1, 2, 3, 4)
        }
        let sorted = #"{"alpha_two":2,"beta_four":4,"mid_three":3,"zeta_one":1}"#
        try await TestOrigin.withOrigin { request in
            .text(try await request.collectText())
        } run: { origin async throws in
            let api = try Self.api(origin)
            for _ in 0..<5 {
                #expect(try await api.post("x", body: .json(Wide())).text == sorted)
                #expect(try await api.with { $0.encoding = .json }.post("x", parameters: Wide()).text == sorted)
                let inner = HTTPBody.multipart { $0.part("inner", .json(Wide())) }
                let form = HTTPBody.multipart {
                    $0.part("outer", .json(Wide()))
                    $0.part("form", inner)
                }
                #expect(try await api.post("x", body: form).text.split(separator: sorted).count == 3)
            }
            let failing = HTTPBody.multipart { $0.part("x", .json(["a": Double.infinity])) }
            let error = await #expect(throws: HTTPError.self) { try await api.post("x", body: failing) }
            #expect(error?.code == .invalidRequest && error?.wasSent == false)
        }
    }

    @Test("Creating a host by URL or by name accepts fields and a configuration closure")
    func settings() throws {
        let session = HTTPSession.own()
        let hosts = [
            try session.host("https://a.example/v2", headers: ["X-A": "1"], encoding: .json) {
                $0.headers["X-B"] = "2"
            },
            try session.host(named: "a.example", path: "v2", headers: ["X-A": "1"]) { $0.headers["X-B"] = "2" },
        ]
        for api in hosts {
            #expect(api.headers["X-A"] == "1" && api.headers["X-B"] == "2" && "\(api.base)" == "https://a.example/v2")
        }
    }

    @Test("Every verb accepts response conditions")
    func conditions() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let api = try HTTPSession.own().host(origin.base)
            let other = ResponseValidator.status(400..<500)
            let calls: [@Sendable () async throws -> Void] = [
                { _ = try await api.get("x", validate: other) }, { _ = try await api.head("x", validate: other) },
                { try await api.delete("x", validate: other) }, { _ = try await api.post("x", validate: other) },
                { _ = try await api.put("x", body: .text("a"), validate: other) },
                { _ = try await api.patch("x", validate: other) },
                { _ = try await api.request(method: .options, "x", validate: other) },
                { try await api.upload(.text("a"), to: "x", validate: other) },
                { _ = try await api.open("x", validate: other) },
                { try await api.stream("x", validate: other) { _, _ in } },
                { _ = try await api.task("x", validate: other).value },
            ]
            for (index, call) in calls.enumerated() {
                let error = await #expect(throws: HTTPError.self, "\(index)") { try await call() }
                #expect(error?.code == .unacceptableStatus, "\(index)")
            }
        }
    }

    @Test("An initial token is sent without a fetch and is replaced once for all calls after a 401")
    func tokenAtHand() async throws {
        let refreshes = Counter()
        try await TestOrigin.withOrigin { request in
            let token = request.headers["Authorization"]
            return token == "Bearer t2" || (token == "Bearer t1" && request.path == "/first")
                ? .text("ok") : OriginResponse(401)
        } run: { origin async throws in
            let api = try HTTPSession.own().host(origin.base) {
                $0.authentication = .bearer("t1") {
                    refreshes.add()
                    return "t2"
                }
            }
            #expect(try await api.get("first").text == "ok")
            #expect(refreshes.count == 0)
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<5 { group.addTask { try await api.get("second").text } }
                for try await text in group { #expect(text == "ok") }
            }
            #expect(refreshes.count == 1)
            let shared = SingleFlightTokens(CountingTokens(), token: "t2")
            let other = api.with { $0.authentication = .bearer(tokens: shared) }
            #expect(try await other.get("second").text == "ok")
            #expect(other.authentication?.tokens === shared)
            await shared.invalidate()
            #expect(try await shared.token() == "t0")
        }
    }

    @Test("A value that cannot be encoded is a typed error before anything is sent")
    func unencodable() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().post(origin.url(), body: .json(["a": Double.infinity]))
            }
            #expect(error?.code == .invalidRequest && error?.wasSent == false)
            #expect(error?.underlying is EncodingError)
            #expect(origin.requests.isEmpty)
        }
    }

    @Test("A status other than 2xx becomes the service's error in every function that validates")
    func problems() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/page"
                ? OriginResponse(503, headers: ["Content-Type": "text/html"], body: .text("<p>"))
                : OriginResponse(
                    409, headers: ["Content-Type": "application/problem+json"],
                    body: .text(#"{"error_title":"no"}"#))
        } run: { origin async throws in
            let api = try Self.api(origin)
            let expected = Problem(errorTitle: "no")
            await #expect(throws: expected) { try await api.get("x").decode([Int].self) }
            await #expect(throws: expected) { try await api.stream("x") { _, _ in } }
            let session = api.session
            await #expect(throws: expected) { try await session.get(origin.url("/x")).decode([Int].self) }
            await #expect(throws: expected) { try await session.get(origin.url("/x")).validated() }
            await #expect(throws: expected) {
                try await session.get(origin.url("/x")).validated(.success)
            }
            let page = await #expect(throws: HTTPError.self) { try await api.get("page") }
            #expect(page?.code == .unacceptableStatus && page?.status == 503)
        }
    }

    @Test("An error mapper runs once, even if it returns the same error")
    func once() async throws {
        let count = Mutex(0)
        struct Broken: HTTPEndpoint {
            typealias Response = [Int]
            var path: String { "x" }
        }
        try await TestOrigin.withOrigin(handler: .fixed(.json(text: "{}"))) { origin in
            let api = try HTTPSession.own().host(origin.base) {
                $0.errors = ErrorMapper { error in
                    count.withLock { $0 += 1 }
                    return error
                }
            }
            let error = await #expect(throws: HTTPError.self) { try await api.call(Broken()) }
            #expect(error?.code == .decodingFailed)
            #expect(count.withLock { $0 } == 1)
        }
    }

    private func exchange(_ body: some Sequence<UInt8>, _ type: String?) async throws -> HTTPExchange {
        let fields: OriginFields = type.map { ["Content-Type": $0] } ?? [:]
        let response = OriginResponse(headers: fields, body: .bytes(Array(body)))
        return try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            try await HTTPSession.own().get(origin.url("/users?limit=2"))
        }
    }

    @Test("A decoding error contains the coding path and the escaped first bytes of the body")
    func failures() async throws {
        struct User: Decodable {
            var name: String
        }
        let rows: [(String, String)] = [
            (#"[{"name":"a"},{"name":1}]"#, "the value at [1].name of the body is not of type String"),
            (#"[{}]"#, "the value at [0] of the body has no “name”"),
            (#"[{"name":null}]"#, "the value at [0].name of the body is null instead of a value of type String"),
            (#"{}"#, "the body is not of type Array<Any>"), ("[", "the body cannot be decoded: "),
            ("", "without a body"),
            ("\u{1B}[2J\u{202E}x", #"\u{1B}[2J\u{202E}x"#),
            (String(repeating: "x", count: 1000), String(repeating: "x", count: 256) + "…"),
        ]
        for (body, expected) in rows {
            let exchange = try await exchange(body.utf8, "application/json")
            let error = try #require(#expect(throws: HTTPError.self) { try exchange.decode([User].self) })
            #expect(error.code == .decodingFailed && error.underlying is DecodingError)
            #expect(error.description.contains("GET \(exchange.url): "))
            #expect(error.message.contains(expected), "\(error)")
            let response = body.isEmpty ? "application/json" : "application/json, \(body.utf8.count) bytes"
            #expect(error.message.contains("200 OK (\(response))"), "\(error)")
            #expect(error.exchange?.body == Array(body.utf8) && error.status == 200)
        }
    }

    @Test("The names and values of the body in a decoding error are escaped and shortened")
    func hostileNames() async throws {
        let name = #"\u001b[2J\n"# + String(repeating: "k", count: 10_000)
        let body = String(repeating: #"{"\#(name)":"#, count: 6) + "1" + String(repeating: "}", count: 6)
        let exchange = try await exchange(body.utf8, "application/json")
        let error = try #require(
            #expect(throws: HTTPError.self) {
                try exchange.decode([String: [String: [String: [String: [String: [String: String]]]]]].self)
            })
        #expect(error.message.hasPrefix(#"the value at \u{1B}[2J\nkkk"#), "\(error)")
        #expect(error.message.contains(#"….\u{1B}[2J"#), "\(error)")
        #expect(error.message.contains("… of the body is not of type String"), "\(error)")
        #expect(error.message.utf8.count < 2000)
        struct Rejection: Error, CustomStringConvertible {
            let description: String
        }
        let decoder = ClosureResponseDecoder<Int> { throw Rejection(description: "\u{1B}\n\($0.text)") }
        let other = try #require(#expect(throws: HTTPError.self) { try exchange.decode(using: decoder) })
        #expect(other.message.hasPrefix(#"the body cannot be decoded: \u{1B}\n{"#), "\(other)")
        #expect(other.message.utf8.count < 2000)
    }

    @Test(
        "Decoding accepts JSON, unlabeled bodies and unspecific types, and rejects other types first"
    )
    func contentTypes() async throws {
        let accepted = [
            "application/json", "application/json; charset=utf-8", "text/json", "application/vnd.api+json",
            "application/problem+json", "text/plain", "application/octet-stream", nil,
        ]
        for type in accepted { #expect(try await exchange("[1]".utf8, type).decode() == [1]) }
        for type in ["text/html; charset=utf-8", "application/xml", "image/png"] {
            let exchange = try await exchange("<p>Log in</p>".utf8, type)
            let error = #expect(throws: HTTPError.self) { try exchange.decode([Int].self) }
            #expect(error?.code == .unacceptableContentType)
            #expect(error?.message.contains("<p>Log in</p>") == true, "\(error?.message ?? "")")
        }
    }

    @Test("The token closure can send requests on its own session")
    func token() async throws {
        final class Holder: Sendable {
            let session = Mutex<HTTPSession?>(nil)
        }
        let holder = Holder()
        let tokens = Counter()
        try await TestOrigin.withOrigin { request in
            if request.path == "/token" { return .text("t\(request.headers["Authorization"] == nil ? 1 : 2)") }
            return request.headers["Authorization"] == "Bearer t1" ? .text("ok") : OriginResponse(401)
        } run: { origin async throws in
            let session = HTTPSession.own {
                $0.authentication = .bearer {
                    tokens.add()
                    let session = holder.session.withLock { $0 }
                    return try await session?.get(origin.url("/token")).text ?? ""
                }
            }
            holder.session.withLock { $0 = session }
            for _ in 1...3 { #expect(try await session.get(origin.url("/a")).text == "ok") }
            #expect(tokens.count == 1)
            holder.session.withLock { $0 = nil }
        }
    }
}
