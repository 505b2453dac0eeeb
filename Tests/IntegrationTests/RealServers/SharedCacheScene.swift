import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Shared setup of the suites about private caches with a shared cache.
enum SharedCacheScene {
    /// A response that is fresh for longer than any test takes, in both caches.
    static let lasting = "max-age=1000000"

    /// A client with a private cache.
    static func client(_ proxy: ProxySettings) -> HTTPSession {
        .plain {
            $0.proxy = proxy
            $0.cache = .memoryOnly(options: .withoutPressure)
        }
    }

    // MARK: Responses of origins

    /// A text, with the given cache directives.
    static func text(_ text: String, _ control: String = lasting) -> OriginHandler.Respond {
        { _ in OriginResponse(200, headers: ["Cache-Control": control], body: .text(text)) }
    }

    /// A page that each POST changes, with the given cache directives.
    static func page(_ control: String = lasting) -> OriginHandler.Respond {
        let page = VersionedPage()
        return { page.answer($0, ["Cache-Control": control]) }
    }

    /// The requested language, as a separate variant.
    static let byLanguage: OriginHandler.Respond = { request in
        let language = request.headers["Accept-Language"] ?? "none"
        return OriginResponse(
            200, headers: ["Cache-Control": lasting, "Vary": "Accept-Language", "ETag": "\"\(language)\""],
            body: .text(language))
    }

    /// The credentials of the request, with the given cache directives.
    static func byUser(_ control: String) -> OriginHandler.Respond {
        { request in
            OriginResponse(
                200, headers: ["Cache-Control": control],
                body: .text(request.headers["Authorization"] ?? "nobody"))
        }
    }

    // MARK: Requests of clients

    /// Sends two requests for each of two users of one session: first the network responds, then the session's cache.
    /// - Parameter text: The expected text for either of them.
    static func requestAsUsers(_ session: HTTPSession, _ url: String, _ text: (String) -> String) async throws {
        for source in [HTTPExchange.Source.network, .cache] {
            for user in ["Bearer wren", "Bearer robin"] {
                let answer = try await session.get(url, headers: [.authorization: user])
                #expect(answer.source == source && answer.text == text(user))
            }
        }
    }

    /// The diagnostic field of a shared cache in its responses.
    struct Words {
        let field: String
        /// The value if the cache has contacted the origin.
        let missed: String
        /// The value if the cache had the response.
        let found: String
    }

    /// Sends no-store requests before and after a storable one, to an origin that responds with a ``text(_:_:)``.
    static func requestWithoutStoring(
        _ session: HTTPSession, _ other: HTTPSession, _ url: String, _ origin: TestOrigin, _ words: Words
    ) async throws {
        for _ in 0..<2 {
            let answer = try await session.get(url, options: .using(.noStore))
            #expect(answer.source == .network && answer.field(words.field) == words.missed)
            #expect(origin.requests.last?.headers["Cache-Control"]?.contains("no-store") == true)
        }
        #expect(try await session.get(url).field(words.field) == words.missed)
        // Stored responses of other requests may be used.
        let found = try await session.get(url, options: .using(.noStore))
        #expect(found.source == .network && found.field(words.field) == words.found)
        #expect(try await other.get(url).field(words.field) == words.found)
        #expect(origin.requests.count == 3)
        // The caller's options can forbid that.
        let asked = try await session.get(
            url, headers: [.cacheControl: "no-store, no-cache"], options: .using(.noStore))
        #expect(asked.source == .network && origin.requests.count == 4)
        #expect(try await session.get(url).source == .cache)
    }

    /// A body of 200,000 bytes with a long freshness lifetime, sent when a gate opens.
    static func large(after gate: Gate) -> OriginHandler.Respond {
        { _ in
            await gate.pass()
            return OriginResponse(
                200, headers: ["Cache-Control": lasting],
                body: .text(String(repeating: "0123456789", count: 20_000)))
        }
    }

    /// Sends ten concurrent requests by each of several clients for an uncached URL that waits for a gate.
    static func stampede(
        _ sessions: [HTTPSession], _ url: String, _ server: some RealServer, _ origin: TestOrigin,
        _ gate: Gate
    ) async throws {
        defer { gate.open() }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for session in sessions {
                for _ in 0..<10 { group.addTask { try await session.get(url).body.count } }
            }
            // The first client may be any of them: the others wait at the shared cache, or find the stored response
            // afterwards.
            try await server.child.wait(for: "a connection of each client") {
                sessions.allSatisfy { $0.poolStatus.opened > 0 }
            }
            try await origin.waitForRequests(count: 1)
            gate.open()
            for try await count in group { #expect(count == 200_000) }
        }
        #expect(origin.requests.count == 1)
    }
}
