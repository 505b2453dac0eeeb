import Martlet

/// Hosts and parameters from the documentation, compiled.
enum HostSamples {
    struct Page: Codable {
        var titles: [String]
    }

    static func host(_ session: HTTPSession, draft: Page, limit: Int) async throws -> [Page] {
        let api = try session.host(
            "https://api.example.com/v2", headers: [.accept: "application/json"], encoding: .json)
        let page: Page = try await api.get(
            "posts", query: ["tags": ["swift", "linux"], "limit": 20]
        ).decode()
        let next: Page = try await api.get("posts", query: ["limit": .integer(limit), "q": "a\(limit)"])
            .decode()
        let made: Page = try await api.post("posts", parameters: draft).decode()
        _ = try await api.post("photos", body: .multipart { $0.field("title", "Sea") })
        return [page, next, made]
    }

    static func settings(_ session: HTTPSession) throws -> HTTPHost {
        try session.host("https://api.example.com/v2").with {
            $0.credentials = .basic(user: "me", password: "secret")
            $0.encoding.query.arrays = .repeated
            $0.options.timeouts = Timeouts()
        }
    }
}
