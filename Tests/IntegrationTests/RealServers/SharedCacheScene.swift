import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// What the suites of private caches behind a shared one have in common.
enum SharedCacheScene {
    /// Fresh for longer than any test takes, in both.
    static let lasting = "max-age=1000000"

    /// A client with a cache of its own.
    static func client(_ proxy: ProxySettings) -> HTTPSession {
        .plain {
            $0.proxy = proxy
            $0.cache = .memoryOnly(options: .withoutPressure)
        }
    }

    // MARK: What origins answer

    /// A text, stored as these directives say.
    static func text(_ text: String, _ control: String = lasting) -> OriginHandler.Respond {
        { _ in OriginResponse(200, fields: ["Cache-Control": control], body: .text(text)) }
    }

    /// A page that each POST changes, stored as these directives say.
    static func page(_ control: String = lasting) -> OriginHandler.Respond {
        let page = VersionedPage()
        return { page.answer($0, ["Cache-Control": control]) }
    }

    /// The language that is asked for, as a variant of its own.
    static let byLanguage: OriginHandler.Respond = { request in
        let language = request.fields["Accept-Language"] ?? "none"
        return OriginResponse(
            200, fields: ["Cache-Control": lasting, "Vary": "Accept-Language", "ETag": "\"\(language)\""],
            body: .text(language))
    }

    /// The credentials of the request, stored as these directives say.
    static func byUser(_ control: String) -> OriginHandler.Respond {
        { request in
            OriginResponse(
                200, fields: ["Cache-Control": control],
                body: .text(request.fields["Authorization"] ?? "nobody"))
        }
    }

    // MARK: What clients do

    /// Has two users of one session ask twice each: the network answers first, and the session's own cache then.
    /// - Parameter text: what either of them is to get.
    static func askAsUsers(_ session: HTTPSession, _ url: String, _ text: (String) -> String) async throws {
        for source in [HTTPExchange.Source.network, .cache] {
            for user in ["Bearer wren", "Bearer robin"] {
                let answer = try await session.get(url, headers: [.authorization: user])
                #expect(answer.source == source && answer.text == text(user))
            }
        }
    }

    /// What a shared cache says in a field of its answers.
    struct Words {
        let field: String
        /// It has asked the origin.
        let missed: String
        /// It had the answer.
        let found: String
    }

    /// Asks so that no trace be left, before and behind a request that leaves one, of an origin that answers with a
    /// ``text(_:_:)``.
    static func askWithoutTrace(
        _ session: HTTPSession, _ other: HTTPSession, _ url: String, _ origin: TestOrigin, _ words: Words
    ) async throws {
        for _ in 0..<2 {
            let answer = try await session.get(url, options: .using(.noStore))
            #expect(answer.source == .network && answer.field(words.field) == words.missed)
            #expect(origin.requests.last?.fields["Cache-Control"]?.contains("no-store") == true)
        }
        #expect(try await session.get(url).field(words.field) == words.missed)
        // What others have left may answer.
        let found = try await session.get(url, options: .using(.noStore))
        #expect(found.source == .network && found.field(words.field) == words.found)
        #expect(try await other.get(url).field(words.field) == words.found)
        #expect(origin.requests.count == 3)
        // Unless the caller says more.
        let asked = try await session.get(
            url, headers: [.cacheControl: "no-store, no-cache"], options: .using(.noStore))
        #expect(asked.source == .network && origin.requests.count == 4)
        #expect(try await session.get(url).source == .cache)
    }

    /// A body of 200,000 bytes, stored for long, that comes when a gate opens.
    static func large(behind gate: Gate) -> OriginHandler.Respond {
        { _ in
            await gate.pass()
            return OriginResponse(
                200, fields: ["Cache-Control": lasting],
                body: .text(String(repeating: "0123456789", count: 20_000)))
        }
    }

    /// Has several clients ask ten times each at once for what nobody has, which ``large(behind:)`` answers.
    static func stampede(
        _ sessions: [HTTPSession], _ url: String, _ server: some RealServer, _ origin: TestOrigin,
        _ gate: Gate
    ) async throws {
        defer { gate.open() }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for session in sessions {
                for _ in 0..<10 { group.addTask { try await session.get(url).body.count } }
            }
            // Whichever client comes first: the other one waits at the shared cache, or finds it there afterwards.
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
