import Glibc
package import Martlet
import MartletTesting
import Synchronization

/// What a process does with a cache that others use, too, and that it may be killed in the middle of: it stores pages through
/// a session, each of them anew, and reads what is stored.
///
/// It says what it has come to in letters on its standard output: `s` for each page stored, `h` for each answer from the
/// cache and `n` for each from the network, `!` for a wrong one, `e` for an error.
package struct CacheWork: Sendable {
    /// The folder of the cache.
    package var folder: String
    /// What it may occupy, in bytes.
    package var limit: Int
    /// The origin: its scheme and authority.
    package var base: String
    /// Where its random numbers begin.
    package var seed: UInt64
    /// How many requests it makes.
    package var count: Int
    /// How many pages there are.
    package var pages: UInt64

    /// So many that make their requests one after the other.
    private static let lanes = 3

    package init(folder: String, limit: Int, base: String, seed: UInt64, count: Int, pages: UInt64) {
        self.folder = folder
        self.limit = limit
        self.base = base
        self.seed = seed
        self.count = count
        self.pages = pages
    }

    /// From the words of a command line.
    package init?(_ words: [String]) {
        guard words.count == 6, let limit = Int(words[1]), let seed = UInt64(words[3]),
            let count = Int(words[4]), let pages = UInt64(words[5]), pages > 0
        else { return nil }
        self.init(folder: words[0], limit: limit, base: words[2], seed: seed, count: count, pages: pages)
    }

    /// As words of a command line.
    package var words: [String] { [folder, "\(limit)", base, "\(seed)", "\(count)", "\(pages)"] }

    /// The path of a page.
    package static func path(_ page: UInt64) -> String { "/page/\(page)" }

    /// A session on the folder, whose clocks end nothing but a hang.
    package static func session(_ cache: ResponseCache) -> HTTPSession {
        var configuration = SessionConfiguration.ephemeral
        let long = Duration.seconds(300)
        configuration.timeouts = Timeouts(connect: long, head: long, idle: long)
        configuration.cache = cache
        return HTTPSession(configuration: configuration)
    }

    /// A cache on a folder, which the machine's memory does not trim.
    package static func cache(_ folder: String, limit: Int, memory: ByteCount) throws -> ResponseCache {
        var options = ResponseCache.Options()
        options.memoryPressure = nil
        return try .at(FilePath(folder), memory: memory, disk: .bytes(limit), options: options)
    }

    /// Does it, and writes down the index at the end.
    /// - Returns: Whether the folder could be used.
    package func run() async -> Bool {
        // With memory before the disk for every second of them.
        let memory = ByteCount.kibibytes(seed % 2 == 0 ? 0 : 256)
        guard let cache = try? CacheWork.cache(folder, limit: limit, memory: memory) else { return false }
        let session = CacheWork.session(cache)
        let told = Told()
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

    /// How many stores were told of.
    private final class Told: Sendable {
        /// Guarded among the lanes.
        private let count = Mutex<UInt64>(0)

        /// How many of so many are not told yet; they are then.
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
