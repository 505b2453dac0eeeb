import Martlet

#if Configuration
    import Configuration

    private func settings() async throws {
        let environment = ConfigReader(provider: EnvironmentVariablesProvider())
        let settings = environment.scoped(to: "http")
        let configuration = try await SessionConfiguration(reading: settings)
        let session = HTTPSession(configuration: configuration)
        _ = session
    }
#endif

/// The compiled samples of the documentation pages on services. A test compares the two texts.
enum ServicesSamples {
    struct Post: Codable, Sendable {
        var title: String
    }

    static func oauth(_ session: HTTPSession, _ secret: String) async throws {
        let client = try OAuthClient(
            tokenURL: "https://id.example.com/token", clientID: "app",
            clientSecret: secret, scope: "posts.read")
        let api = try session.host("https://api.example.com/v2") {
            $0.authentication = client.authentication
        }
        _ = api
    }

    static func refresh(_ stored: String?, _ keychain: any Keychain) async throws {
        let client = try OAuthClient(
            tokenURL: "https://id.example.com/token", clientID: "app",
            refreshToken: stored
        ) { newToken in
            try await keychain.store(newToken)
        }
        _ = client
    }

    protocol Keychain: Sendable {
        func store(_ token: String) async throws
    }

    static func problem(_ session: HTTPSession) async throws {
        let api = try session.host("https://api.example.com/v2") { $0.errors = .problem }
        do {
            try await api.post("payments", json: ["amount": 50])
        } catch let problem as HTTPProblem {
            print(problem.type, problem.extensions["balance"]?.intValue ?? 0)
        }
    }

    static func lines(_ session: HTTPSession) async throws {
        for try await post in session.values(Post.self, from: "https://example.org/posts") {
            print(post.title)
        }
    }

    static func sent(_ session: HTTPSession, _ posts: AsyncStream<Post>, _ url: String) async throws {
        _ = try await session.post(url, body: .jsonLines(posts))
    }
}
