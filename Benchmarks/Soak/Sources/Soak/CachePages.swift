import Martlet
import MartletTesting
import Synchronization

/// An origin of pages that are never the same twice, and a look at what a cache has of them.
struct CachePages: Sendable {
    /// Pages are shorter than this, in bytes.
    static let maximum: UInt64 = 150_000

    let origin: TestOrigin

    /// Starts the origin, in this process: nobody's memory is measured here.
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

    /// What is stored of the pages: how many are found, and how many of them are not what was sent.
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

    /// Waits until a cache that was just opened has tidied up its folder.
    /// - Returns: What it has left there, for half a minute.
    static func leftovers(_ folder: CacheDirectory) async throws -> [String] {
        let deadline = ContinuousClock.now + .seconds(30)
        while true {
            let leftovers = folder.leftovers
            if leftovers.isEmpty || ContinuousClock.now >= deadline { return leftovers }
            try await Task.sleep(for: .milliseconds(1))
        }
    }
}
