import MartletTesting
import Testing

import Martlet

/// The programs of the README, each compiled as it would be in an empty main.swift.
private enum ReadmePrograms {
    static func get() async throws {
        let session = HTTPSession()
        let exchange = try await session.get("https://example.org/")
        print(exchange.status, exchange.text)
    }

    static func service() async throws {
        struct User: Codable, Sendable { var name: String }
        let api = try HTTPSession.shared.host("https://api.example.com/v2") {
            $0.encoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.decoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.credentials = .basic(user: "me", password: "secret")
        }
        let users: [User] = try await api.get("users", query: ["tag": "swift", "limit": 20]).decode()
        let made: User = try await api.post("users", json: User(name: "Ada")).decode()
        print(users, made)
    }

    static func stream() async throws {
        try await HTTPSession.shared.stream("https://example.org/large.csv") { response, body in
            for try await line in body.lines { print(line) }
        }
    }

    static func download() async throws {
        try await HTTPSession.shared.download("https://example.org/m.gguf", to: "m.gguf") { progress in
            print(progress.completedByteCount)
        }
    }

    static func settings() async throws {
        var configuration = SessionConfiguration.default
        configuration.retry = .transient(maximumAttempts: 4)
        configuration.cookies = CookieJar(file: "/var/lib/app/cookies")
        configuration.cache = try .at("/var/cache/app", memory: .mebibytes(32), disk: .gibibytes(1))
        let session = HTTPSession(configuration: configuration)
        let page = try await session.get("https://example.org/", headers: ["X-Id": "7"], timeout: .seconds(5))
        print(page)
    }

    static func errors() async throws {
        do {
            print(try await HTTPSession.shared.get("https://example.org/").validated().text)
        } catch let error as HTTPError where error.isTimeout {
            print("too slow:", error.phase, "sent:", error.wasSent)
        } catch let error as HTTPError where error.status == 404 {
            print(error)  // GET https://example.org/: 404 Not Found (text/html, 58 bytes)
        }
    }

    static func outbox() async throws {
        let outbox = try await OfflineQueue(session: .shared, directory: "/var/lib/app/outbox")
        let note = HTTPRequest(method: .post, scheme: "https", authority: "api.example.com", path: "/notes")
        switch try await outbox.send(note, body: .json(["text": "Hello"])) {
        case .response(let response): print(response.statusCode)
        case .queued(let ticket): print("will be sent later:", ticket)
        }
    }
}

/// What the samples of the README speak of.
struct User: Codable, Equatable {
    var name: String
}

/// The response of a server framework, such as Hummingbird's.
struct Response: Sendable {
    struct Body: Sendable {
        var pieces: any AsyncSequence<[UInt8], any Error> & Sendable

        init(asyncSequence pieces: some AsyncSequence<[UInt8], any Error> & Sendable) { self.pieces = pieces }
    }

    var status: HTTPResponse.Status
    var body: Body
}

/// The README's samples, compiled; a test compares the two texts.
enum ReadmeSamples {
    static func json(_ session: HTTPSession, draft: User) async throws -> [User] {
        let user: User = try await session.get("https://api.example.com/users/1").decode()
        let made: User = try await session.post("https://api.example.com/users", body: .json(draft)).decode()
        return [user, made]
    }

    static func stream(_ session: HTTPSession, _ request: HTTPRequest) async throws {
        try await session.stream(request) { response, body in
            for try await chunk in body {
                print(response.status, chunk.count)
            }
        }
    }

    static func shared() async throws -> String {
        let page = try await HTTPSession.shared.get("https://example.org/").text
        return page
    }

    static func opened(_ session: HTTPSession) async throws -> Response {
        let open = try await session.open("https://origin.internal/file")
        return Response(status: open.status, body: .init(asyncSequence: open.body))
    }

    static func files(_ session: HTTPSession, _ request: HTTPRequest) async throws {
        try await session.upload(.file("/data/movie.mp4"), to: request) { progress in
            print(progress.fractionCompleted ?? 0)
        }
        try await session.download(
            "https://example.org/model.gguf", to: "/models/model.gguf"
        ) { progress in
            print(progress.completedByteCount)
        }
    }

    static func task(_ session: HTTPSession, _ request: HTTPRequest) async throws -> HTTPExchange {
        let task = await session.task(for: request, body: .file("/data/movie.mp4"))
        await task.pause()
        await task.resume()
        let exchange = try await task.value
        return exchange
    }

    static func settings() -> [HTTPSession] {
        var configuration = SessionConfiguration.default
        configuration.timeouts.connect = .seconds(5)
        configuration.timeouts.total = .seconds(60)
        configuration.tls.trust = .system.adding(.file("/etc/corp/ca.pem"))
        let session = HTTPSession(configuration: configuration)
        let impatient = session.with { $0.timeouts.total = .seconds(2) }
        return [session, impatient]
    }

    static func merging(_ url: String) async throws -> (HTTPExchange, HTTPSession) {
        var configuration = SessionConfiguration.default
        configuration.timeouts.total = .seconds(60)
        let session = HTTPSession(configuration: configuration)
        // The total timeout stays 60 s.
        let response = try await session.get(
            url, options: .init { $0.timeouts.head = .seconds(5) })
        let impatient = session.with { $0.timeouts.total = .seconds(2) }
        return (response, impatient)
    }

    static func caching(
        _ request: HTTPRequest, _ screen: @Sendable (HTTPExchange, Bool) -> Void
    ) async throws {
        func show(_ delivery: CacheThenNetworkResponse, stale: Bool) { screen(delivery.exchange, stale) }
        var configuration = SessionConfiguration.default
        configuration.cache = try .at("/var/cache/app", memory: .mebibytes(32), disk: .gibibytes(1))
        let session = HTTPSession(configuration: configuration)
        for try await delivery in session.deliveries(for: request) {
            show(delivery, stale: delivery.isStale)
        }
    }

    static func policies(_ request: HTTPRequest, secret: String) async throws -> HTTPExchange {
        var configuration = SessionConfiguration.default
        configuration.cookies = CookieJar(file: "/var/lib/app/cookies")
        configuration.authentication.credentials = .digest(user: "me", password: secret)
        configuration.retry = .transient(maximumAttempts: 4)
        configuration.proxy = try .socks5("127.0.0.1:1080")
        let polite = HTTPSession(configuration: configuration)

        var options = RequestOptions()
        options.redirects = .doNotFollow
        options.idempotencyKey = .random
        let answer = try await polite.send(request, options: options)
        return answer
    }

    static func streams(_ session: HTTPSession, _ request: HTTPRequest) async throws {
        _ = try await session.post(
            "https://example.org/photos",
            body: .multipart {
                $0.field("title", "Sea")
                $0.file("photo", at: "/data/sea.jpg")
            })
        try await session.stream(request) { _, body in
            for try await line in body.lines { print(line) }
        }
        for try await event in session.events("https://example.org/feed") {
            print(event.event, event.data)
        }
    }

    static func host(_ session: HTTPSession, draft: User) async throws -> [User] {
        let api = try session.host(
            "https://api.example.com/v2", headers: [.accept: "application/json"], encoding: .json)
        let users: [User] = try await api.get(
            "users", query: ["tags": ["swift", "linux"], "limit": 20]
        ).decode()
        let made: User = try await api.post("users", parameters: draft).decode()
        return users + [made]
    }

    struct APIProblem: Error, Decodable {
        var title: String
    }

    struct Post: Decodable {
        var title: String
    }

    static func service(_ session: HTTPSession, token: String) async throws -> [Post] {
        let api = try session.host("https://api.example.com/v2") {
            $0.encoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.decoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.authentication = .bearer(token) {
                try await session.get("https://id.example.com/token").validated().text
            }
            $0.errors = .decoding(APIProblem.self)
        }
        let list = try await api.get("posts").decode([Post].self)
        return list
    }

    static func values(_ session: HTTPSession, _ request: HTTPRequest) async throws {
        try await session.stream(request) { _, body in
            for try await post in body.jsonLines(of: Post.self) {
                print(post.title)
            }
        }
        for try await event in session.events("https://example.org/feed") {
            print(try event.decode(Post.self).title)
        }
    }

    static func errors(_ session: HTTPSession) async throws {
        do {
            _ = try await session.get("https://example.org/")
        } catch let error as HTTPError where error.isTimeout {
            print("too slow:", error.phase, "sent:", error.wasSent)
        } catch let error as HTTPError where error.status == 404 {
            print(error)  // GET https://example.org/: 404 Not Found (text/html, 58 bytes)
        }
    }
}

@Suite("The README's own sample of a test")
struct ReadmeTestSample {
    @Test("An origin on loopback sends its handler's response")
    func testing() async throws {
        let session = HTTPSession.own()
        let origin = try await TestOrigin.start { request in
            .text("Hello, \(request.path)")
        }
        let exchange = try await session.get(origin.url("/martlet"))
        #expect(exchange.response.status == .ok)
        await origin.stop()
        #expect(exchange.text == "Hello, /martlet")
    }

    @Test("The samples of settings are valid: only the network can fail them")
    func settings() async throws {
        #expect(ReadmeSamples.settings().count == 2)
        let request = try HTTPRequest(method: .get, url: "http://192.0.2.1/")
        do {
            _ = try await ReadmeSamples.policies(request, secret: "secret")
        } catch {
            #expect(error is HTTPError, "\(error)")
        }
    }
}
