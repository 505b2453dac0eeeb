import Martlet
import MartletTesting
import Testing

/// The samples of the page about testing, which run.
@Suite("The samples of the page about testing")
struct TestingSamples {
    struct User: Codable, Equatable {
        var name: String
    }

    struct UserClient {
        let api: HTTPHost

        init(_ session: HTTPSession) throws { api = try session.host("https://api.example.com/v2") }

        func user(_ id: Int) async throws -> User { try await api.get("users/\(id)").validated().decode() }
    }

    private static func appConfiguration() -> SessionConfiguration { .ephemeral }

    @Test("A mock transport responds to a client with the configuration of the program")
    func mock() async throws {
        let mock = MockTransport(
            handler: .router {
                $0.get("/v2/users/1", .json(text: #"{"name":"Anna"}"#))
                $0.get("/v2/users/2", .status(503))
            })
        var configuration = Self.appConfiguration()
        configuration.connect(to: mock)
        let client = try UserClient(HTTPSession(configuration: configuration))

        #expect(try await client.user(1) == User(name: "Anna"))
        await #expect(throws: HTTPError.self) { try await client.user(2) }
        #expect(mock.recorder.requests.map(\.target) == ["/v2/users/1", "/v2/users/2"])
        await mock.stop()
    }

    @Test("A mock transport is the shortest configuration")
    func shortest() async throws {
        let mock = MockTransport { request in .text("Hello, \(request.path)") }
        let session = HTTPSession(configuration: .mock(mock))
        #expect(try await session.get("https://example.org/martlet").text == "Hello, /martlet")
    }

    @Test("A fault and a script are responses too")
    func faults() async throws {
        let broken = MockTransport { _ in throw OriginFault(.reset) }
        let session = HTTPSession(configuration: .mock(broken))
        let error = await #expect(throws: HTTPError.self) {
            try await session.get("http://example.org/")
        }
        #expect(error?.code == .connectionLost && error?.wasSent == true)

        let short = MockTransport(
            scripts: .respond("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"))
        let truncated = await #expect(throws: HTTPError.self) {
            try await HTTPSession(configuration: .mock(short)).get("http://example.org/")
        }
        #expect(truncated?.code == .truncated)
    }

    @Test("A recorded request has what was sent, the body included")
    func asserting() async throws {
        let mock = MockTransport { _ in .status(201, headers: ["Location": "/users/7"]) }
        let session = HTTPSession(configuration: .mock(mock))
        _ = try await session.post(
            "https://example.org/users?notify=yes", body: .json(User(name: "Anna")))

        let request = try #require(mock.recorder.requests.first)
        #expect(request.method == .post && request.path == "/users")
        #expect(request.query["notify"] == "yes")
        #expect(request.headers["Content-Type"] == "application/json")
        #expect(try request.decode(User.self) == User(name: "Anna"))
    }

    struct Visit: Codable, Equatable {
        var homePage: String
    }

    @Test("A response and a recorded request use the coders of the service")
    func coders() async throws {
        let visit = Visit(homePage: "martlet")
        let mock = MockTransport { _ in
            try .json(visit, status: 201, encoder: .json(keys: .snakeCase, dates: .iso8601))
        }
        let session = HTTPSession(configuration: .mock(mock))
        let body = HTTPBody.json(["home_page": "martlet"])
        #expect(try await session.post(mock.url("/visits"), body: body).text == #"{"home_page":"martlet"}"#)
        let request = try #require(mock.requests.first)
        let decoder = BodyDecoder.json(keys: .snakeCase, dates: .iso8601)
        #expect(try request.decode(Visit.self, decoder: decoder) == visit)
    }

    @Test("A form is recorded part by part")
    func parts() async throws {
        let photo = [UInt8](repeating: 7, count: 1000)
        let mock = MockTransport { _ in .status(201) }
        let session = HTTPSession(configuration: .mock(mock))
        let form = HTTPBody.multipart {
            $0.field("title", "Sea")
            $0.data("photo", photo, filename: "sea.jpg", contentType: "image/jpeg")
        }
        _ = try await session.post(mock.url("/photos"), body: form)

        let parts = try #require(mock.requests.first).parts
        #expect(parts.map(\.name) == ["title", "photo"] && parts[0].text == "Sea")
        #expect(parts[1].filename == "sea.jpg" && parts[1].contentType == "image/jpeg")
        #expect(parts[1].body == photo)
    }

    @Test("A mock is stopped after a closure")
    func scoped() async throws {
        try await MockTransport.withMock { request in
            .text("Hello, \(request.path)")
        } run: { mock in
            let session = HTTPSession(configuration: .mock(mock))
            let page = try await session.get(mock.url("/martlet")).text
            #expect(page == "Hello, /martlet")
        }
    }

    @Test("Responses come in turn")
    func inTurn() async throws {
        let mock = MockTransport(
            handler: .inTurn([
                .status(503, headers: ["Retry-After": "0"]),
                .fault(OriginFault(.reset)),
                .text("at last"),
            ]))
        var configuration = SessionConfiguration.mock(mock)
        configuration.retry = .transient(backoff: .constant(.zero))
        let session = HTTPSession(configuration: configuration)
        #expect(try await session.get("https://example.org/").text == "at last")
        #expect(mock.recorder.requests.count == 3)
    }

    @Test("An event stream pauses until the test continues it, and resumes after its last event")
    func events() async throws {
        let signals = OriginSignals()
        let mock = MockTransport { request in
            switch request.headers["Last-Event-ID"] {
            case nil:
                OriginResponse(
                    contentType: "text/event-stream",
                    body: .stream { writer in
                        try await writer.write("id: 1\ndata: ready\n\n")
                        try await signals.wait(for: "continue")
                        try await writer.write("id: 2\ndata: steady\n\n")
                    })
            case "2": .text("id: 3\ndata: go\n\n", contentType: "text/event-stream")
            default: .status(204)
            }
        }
        let session = HTTPSession(configuration: .mock(mock))
        var options = EventStreamOptions()
        options.reconnectionTime = .zero

        var received: [String] = []
        for try await event in session.events(mock.url("/news"), options: options) {
            received.append(event.data)
            if event.id == "1" { signals.raise("continue") }
        }
        #expect(received == ["ready", "steady", "go"])
        #expect(mock.requests.map { $0.headers["Last-Event-ID"] } == [nil, "2", "3"])
    }

    @Test("A body fails in the middle")
    func middle() async throws {
        let mock = MockTransport { _ in throw OriginFault(.cut, afterBodyBytes: 1000) }
        let session = HTTPSession(configuration: .mock(mock))
        var received = 0
        let error = await #expect(throws: HTTPError.self) {
            try await session.stream("http://example.org/") { _, body in
                for try await chunk in body { received += chunk.count }
            }
        }
        #expect(received == 1000 && error?.code == .truncated)
    }

    @Test("A path has parameters")
    func parameters() async throws {
        let mock = MockTransport(
            handler: .router {
                $0.get("/users/:id") { request in
                    try .json(User(name: "user \(request.parameters["id"] ?? "")"))
                }
                $0.delete("/users/:id", .status(204))
            })
        let session = HTTPSession(configuration: .mock(mock))
        let user: User = try await session.get("https://example.org/users/7").decode()
        #expect(user.name == "user 7")
        #expect(try await session.delete("https://example.org/users/7").response.status == .noContent)
    }

    @Test("An origin is started again on the same port for a queue that was closed")
    func samePort() async throws {
        let files = try TemporaryDirectory()
        let (session, directory) = (HTTPSession(), files.path)
        let gone = try await TestOrigin.start { _ in .status(204) }
        let note = try HTTPRequest(method: .post, url: gone.url("/notes"))
        await gone.stop()
        let queue = try await OfflineQueue(session: session, directory: directory)
        try await queue.submit(note, body: .text("kept"))
        await queue.close()

        let back = try await TestOrigin.start(
            OriginOptions(binding: .ipv4(port: gone.port))
        ) { _ in .status(204) }
        let later = try await OfflineQueue(session: session, directory: directory)
        try await later.drained
        #expect(back.requests.map(\.path) == ["/notes"])
        await later.close()
        await back.stop()
    }
}
