import Martlet
import MartletTesting
import Synchronization

/// An origin of unique pages, and a check of the pages that a cache has stored.
struct CachePages: Sendable {
    /// The exclusive maximum length of a page in bytes.
    static let maximum: UInt64 = 150_000

    let origin: TestOrigin

    /// Starts the origin in this process, because this scenario measures no memory.
    init() async throws {
        let versions = Mutex<UInt64>(0)
        origin = try await TestOrigin.start { request in
            let version = versions.withLock { version in
                version += 1
                return version
            }
            return SamplePage.answer(request, version: version, maximum: CachePages.maximum)
        }
    }

    /// Returns how many of the pages are stored, and how many of them differ from the sent ones.
    func look(_ pages: UInt64, _ session: HTTPSession) async throws -> (found: Int, wrong: Int) {
        var result = (found: 0, wrong: 0)
        var options = RequestOptions()
        options.cacheMode = .onlyIfCached
        for page in 0..<pages {
            let path = CacheWork.path(page)
            let exchange = try await session.get(origin.url(path), options: options)
            guard exchange.statusCode != 504 else { continue }
            result.found += 1
            if !SamplePage.isRight(exchange, path) { result.wrong += 1 }
        }
        return result
    }

    /// Waits until a cache that was just opened has cleaned up its directory.
    /// - Returns: The files that remain incomplete after half a minute at most.
    static func leftovers(_ directory: CacheDirectory) async throws -> [String] {
        let deadline = ContinuousClock.now + .seconds(30)
        while true {
            let leftovers = directory.leftovers
            if leftovers.isEmpty || ContinuousClock.now >= deadline { return leftovers }
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}
