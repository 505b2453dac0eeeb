import Glibc
package import Martlet
import MartletTesting
import Synchronization

/// Work on a cache that other processes share, and that may be killed at any time. It stores pages through a session,
/// each with new content, and reads stored pages.
///
/// It writes its results as letters to its standard output: `s` for each page stored, `h` for each response from the
/// cache and `n` for each from the network, `!` for a wrong one, `e` for an error.
package struct CacheWork: Sendable {
    /// The directory of the cache.
    package var directory: String
    /// The maximum size of the cache in bytes.
    package var limit: Int
    /// The scheme and authority of the origin.
    package var base: String
    /// The seed of the random numbers.
    package var seed: UInt64
    /// The number of requests.
    package var count: Int
    /// The number of different pages.
    package var pages: UInt64

    /// The number of tasks that make requests one after the other.
    private static let lanes = 3

    package init(directory: String, limit: Int, base: String, seed: UInt64, count: Int, pages: UInt64) {
        self.directory = directory
        self.limit = limit
        self.base = base
        self.seed = seed
        self.count = count
        self.pages = pages
    }

    /// Parses the words of a command line.
    package init?(_ words: [String]) {
        guard words.count == 6, let limit = Int(words[1]), let seed = UInt64(words[3]),
            let count = Int(words[4]), let pages = UInt64(words[5]), pages > 0
        else { return nil }
        self.init(directory: words[0], limit: limit, base: words[2], seed: seed, count: count, pages: pages)
    }

    /// The words of a command line for this work.
    package var words: [String] { [directory, "\(limit)", base, "\(seed)", "\(count)", "\(pages)"] }

    /// The path of a page.
    package static func path(_ page: UInt64) -> String { "/page/\(page)" }

    /// A session on the directory, whose timeouts end nothing but a hang.
    package static func session(_ cache: ResponseCache) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral
        let long = Duration.seconds(300)
        configuration.timeouts = Timeouts(connect: long, head: long, idle: long)
        configuration.cache = cache
        return HTTPSession(configuration: configuration)
    }

    /// A cache on a directory, which memory pressure does not trim.
    package static func cache(_ directory: String, limit: Int, memory: ByteCount) throws -> ResponseCache {
        var options = ResponseCache.Options()
        options.memoryPressure = nil
        return try .at(FilePath(directory), memory: memory, disk: .bytes(limit), options: options)
    }

    /// Does the work, and writes the index at the end.
    /// - Returns: Whether the directory could be used.
    package func run() async -> Bool {
        // Only odd seeds have a memory cache in front of the disk.
        let memory = ByteCount.kibibytes(seed % 2 == 0 ? 0 : 256)
        guard let cache = try? CacheWork.cache(directory, limit: limit, memory: memory) else { return false }
        let session = CacheWork.session(cache)
        let told = ReportCount()
        await withTaskGroup(of: Void.self) { group in
            for lane in 0..<CacheWork.lanes {
                group.addTask {
                    var generator = SeededGenerator(seed: seed, stream: UInt64(lane))
                    for _ in 0..<count / CacheWork.lanes {
                        var said = await turn(session, &generator)
                        let stores = cache.statistics.stores
                        said += String(repeating: "s", count: told.news(of: stores))
                        CacheWork.say(said)
                    }
                }
            }
        }
        await cache.flush()
        return true
    }

    /// The number of stores that were reported.
    private final class ReportCount: Sendable {
        /// Shared by the lanes.
        private let count = Mutex<UInt64>(0)

        /// Returns the number of stores that were not reported yet, and marks them as reported.
        func news(of stores: UInt64) -> Int {
            count.withLock { count in
                defer { count = max(count, stores) }
                return Int(stores - min(stores, count))
            }
        }
    }

    private func turn(_ session: HTTPSession, _ generator: inout SeededGenerator) async -> String {
        let path = CacheWork.path(generator.next() % pages)
        var options = RequestOptions()
        if generator.next() % 3 != 0 { options.cacheMode = .reload }
        do {
            let exchange = try await session.get(base + path, options: options)
            guard SamplePage.isRight(exchange, path) else { return "!" }
            return exchange.source == .network ? "n" : "h"
        } catch {
            return "e"
        }
    }

    private static func say(_ letters: String) {
        let bytes = Array(letters.utf8)
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}
