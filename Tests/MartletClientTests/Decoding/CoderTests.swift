import FoundationEssentials
import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("The encoder and decoder of a session or host", .timeLimit(.minutes(20)))
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

    @Test("decode, endpoints, lines and events use the host's decoder")
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
                    fields: ["Content-Type": "text/event-stream"], body: .text("data: \(Self.json)\n\n"))
            case "/list": return .json(text: "[\(Self.json)]")
            default: return .json(text: Self.json)
            }
        } run: { origin async throws in
            let api = try Self.api(origin)
            #expect(try await api.get("latest").decode() == Self.event)
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
            for try await event in api.session.events(from: origin.url("/events"), options: options) {
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

    @Test("A body of a value is encoded by the host's encoder, as are parameters sent as JSON")
    func encoding() async throws {
        let bodies = Mutex<[String]>([])
        try await TestOrigin.withOrigin { request in
            let body = try await request.collectText()
            bodies.withLock { $0.append(body) }
            #expect(request.fields["Content-Type"] == "application/json")
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

    @Test("A response that is not 2xx becomes the service's error by decode, validated, hosts and streams")
    func problems() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/page"
                ? OriginResponse(503, fields: ["Content-Type": "text/html"], body: .text("<p>"))
                : OriginResponse(
                    409, fields: ["Content-Type": "application/problem+json"],
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

    @Test("A mapper receives an error once, also if it returns the same error")
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
        let response = OriginResponse(fields: fields, body: .bytes(Array(body)))
        return try await TestOrigin.withOrigin(handler: .fixed(response)) { origin in
            try await HTTPSession.own().get(origin.url("/users?limit=2"))
        }
    }

    @Test("Decoding failures have the coding path and the first bytes of the body, escaped")
    func failures() async throws {
        struct User: Decodable {
            var name: String
        }
        let rows: [(String, String)] = [
            (#"[{"name":"a"},{"name":1}]"#, "the value at [1].name of the body is not a String"),
            (#"[{}]"#, "the value at [0] of the body has no “name”"),
            (#"[{"name":null}]"#, "the value at [0].name of the body is null, and not a String"),
            (#"{}"#, "the body is not a Array<Any>"), ("[", "the body cannot be decoded: "),
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
            #expect(error.message.contains("200 OK (application/json, \(body.utf8.count) bytes)"), "\(error)")
            #expect(error.exchange?.body == Array(body.utf8) && error.status == 200)
        }
    }

    @Test(
        "decode accepts JSON, unlabelled bodies and types that say nothing, and rejects others before decoding"
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

    @Test("A token's closure may make calls on the session that it is for")
    func token() async throws {
        final class Holder: Sendable {
            let session = Mutex<HTTPSession?>(nil)
        }
        let holder = Holder()
        let tokens = Counter()
        try await TestOrigin.withOrigin { request in
            if request.path == "/token" { return .text("t\(request.fields["Authorization"] == nil ? 1 : 2)") }
            return request.fields["Authorization"] == "Bearer t1" ? .text("ok") : OriginResponse(401)
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
