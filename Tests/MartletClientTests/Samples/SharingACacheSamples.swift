import Martlet
import MartletTesting

/// The samples of the page about sharing a cache, compiled; a test compares the two texts.
enum SharingACacheSamples {
    static func configured() throws -> HTTPSession {
        var options = ResponseCache.Options()
        options.eviction = .sieve
        options.staleIfError = .seconds(86_400)

        var configuration = SessionConfiguration.default
        configuration.cache = try .at(
            "/var/cache/app", memory: .mebibytes(32), disk: .gibibytes(1), options: options)
        let session = HTTPSession(configuration: configuration)
        return session
    }

    static func asked(_ session: HTTPSession) async throws {
        var options = RequestOptions()
        options.cacheMode = .revalidate
        let page = try await session.get("https://api.example.com/birds", options: options)
        print(page.source, page.cacheStatus ?? "no cache")
    }

    static func offline(_ session: HTTPSession) async throws {
        func read(_ url: String) async throws -> HTTPExchange {
            do { return try await session.get(url) } catch is HTTPError {
                var offline = RequestOptions()
                offline.cacheMode = .onlyIfCached
                return try await session.get(url, options: offline).validated()
            }
        }
        print(try await read("https://example.org/"))
    }

    static func twice(_ api: HTTPHost) async throws {
        let deliveries = api.deliveries(for: "birds", cache: .cacheThenRevalidate)
        for try await delivery in deliveries {
            print(delivery.exchange.text, delivery.isStale, delivery.isPreview)
        }
    }

    static func separated(_ session: HTTPSession, userID: String) -> HTTPSession {
        let own = session.with { $0.cachePartition = userID }
        return own
    }

    static func watched(_ cache: ResponseCache) async {
        print(cache.statistics.hits, cache.statistics.misses, cache.statistics.diskBytes)
        for await event in cache.events {
            if case .unavailable(let reason) = event { print(reason) }
        }
    }

    static func current(_ configuration: SessionConfiguration) throws -> SessionConfiguration {
        var configuration = configuration
        configuration.cache = try .at("/var/cache/app", memory: .bytes(0))
        return configuration
    }

    static func shared() throws -> HTTPSession {
        var configuration = SessionConfiguration.default
        configuration.cache = try .at("/var/cache/app")
        configuration.proxy = try .http("http://cache.internal:3128")
        let session = HTTPSession(configuration: configuration)
        return session
    }
}
