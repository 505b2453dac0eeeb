import FoundationEssentials
import Martlet

/// The samples about requests, compiled; a test compares them with the documentation.
enum RequestSamples {
    struct Issue: Decodable {}

    struct Filter: Encodable {
        var tag: String
    }

    struct Bar {
        func set(_ fraction: Double?) {}
    }

    static func handle(_ line: String) {}

    static func calls(_ session: HTTPSession, _ url: URL, id: String) async throws -> [User] {
        let list: [User] = try await session.get(
            "https://api.example.com/users", query: ["tag": ["swift", "linux"], "limit": 20]
        ).decode()
        let fast = try await session.get(
            url, headers: ["X-Trace": id], timeout: .seconds(2))
        for try await line in session.lines(from: "https://example.org/log") {
            handle(line)
        }
        print(fast)
        return list
    }

    static func query(_ session: HTTPSession, _ filter: Filter, _ draft: User) async throws {
        let found = try await session.get("https://api.example.com/users", query: filter)
        let posted = try await session.post(
            "https://api.example.com/users", query: ["notify": true], json: draft)
        print(found, posted)
    }

    static func variables(_ session: HTTPSession, text: String, page: Int?) async throws -> HTTPExchange {
        let results = try await session.get(
            "https://api.example.com/users",
            query: ["q": .value(text), "page": .value(page), "limit": 20])
        return results
    }

    static func paths(_ api: HTTPHost) async throws -> (HTTPExchange, HTTPURL) {
        let avatar = try await api.get(.path("users", 42, "avatar"))
        let url = try HTTPURL("https://api.example.com/v2").appending("users", 42)
        return (avatar, url)
    }

    static func events(_ session: HTTPSession, stored: String?) async throws -> EventStream {
        let events = session.events(
            "https://example.org/feed", lastEventID: stored,
            options: .init { $0.failureLimit = 3 })
        for await event in session.events {
            print(String(decoding: try JSONEncoder().encode(event), as: UTF8.self))
        }
        return events
    }

    static func conditional(_ session: HTTPSession, _ url: HTTPURL, etag: String?) async throws -> HTTPExchange {
        let fresh = try await session.get(url, headers: [.ifNoneMatch: etag])
        return fresh
    }

    static func headers(_ url: HTTPURL, id: String) async throws -> HTTPExchange {
        var configuration = SessionConfiguration.default
        configuration.headers = ["X-Client": "importer", .acceptLanguage: "de"]
        let session = HTTPSession(configuration: configuration)
        let traced = try await session.get(
            url, headers: ["X-Trace": id, .accept: "application/json"])
        return traced
    }

    static func files(
        _ session: HTTPSession, _ url: String, movie: String, hex: String, bar: Bar
    ) async throws {
        try await session.upload(.file(movie), to: url) { progress in
            bar.set(progress.fractionCompleted)
        }
        try await session.download(
            url, to: "/models/m.gguf", options: .init(segments: 8, checksum: .sha256(hex)))
    }

    static func pages(_ session: HTTPSession) async throws -> [Issue] {
        var issues: [Issue] = []
        let pages = session.pages(
            "https://api.example.com/issues", query: ["per_page": 100])
        for try await page in pages {
            issues += try page.decode([Issue].self)
        }
        return issues
    }

    /// The samples of the API's design that are about targets, each on one line as there.
    static func firstHour(_ session: HTTPSession, _ url: String, _ draft: User, hex: String) async throws {
        let user: User = try await session.get("https://api.example.com/users/1").decode()
        let made: User = try await session.post("https://api.example.com/users", body: .json(draft)).decode()
        try await session.stream("https://example.org/big") { response, body in
            for try await chunk in body { print(response.status, chunk.count) }
        }
        try await session.upload(.file("/data/movie.mp4"), to: url) { progress in
            print(progress.fractionCompleted ?? 0)
        }
        _ = try await session.post(url, body: .multipart { $0.file("photo", at: "/data/sea.jpg") })
        print(user, made)
    }
}
