import FoundationEssentials
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletHosts
@testable import MartletNetwork
@testable import MartletStreams

/// A cache in a folder of a test's own, whose files fail where the test wants them to, and what it said.
///
/// The origin's path `/7/100` stands for a hundred bytes of the test pattern from its seventh on.
final class CacheFaultScene: Sendable {
    let folder: TemporaryFolder
    let files = FaultyFileSystem()
    private let heard = Mutex<[CacheEvent]>([])

    init() throws {
        folder = try TemporaryFolder()
    }

    /// The cache's folder.
    var path: String { folder.path + "/cache" }

    // MARK: The cache

    /// Opens the cache: without memory, unless said otherwise, so that all that is found is found on disk.
    func cache(
        memory: ByteCount = .bytes(0), disk: ByteCount = .mebibytes(256),
        pressure: MemoryPressureSource? = nil, files: (any FileSystem)? = nil
    ) throws -> ResponseCache {
        var options = ResponseCache.Options()
        options.memoryPressure = pressure
        let cache = try ResponseCache.at(
            FilePath(path), memory: memory, disk: disk, options: options, files: files ?? self.files)
        let events = cache.events
        // It ends with the cache, which it does not keep.
        let task = Task { [weak self] in
            for await event in events { self?.heard.withLock { $0.append(event) } }
        }
        _ = task
        return cache
    }

    /// Opens the cache, and waits until it knows what is in its folder.
    func openedCache(memory: ByteCount = .bytes(0), disk: ByteCount = .mebibytes(256)) async throws
        -> ResponseCache
    {
        let cache = try cache(memory: memory, disk: disk)
        #expect(await eventually { cache.store.statistics.disk?.isIndexComplete == true })
        return cache
    }

    /// A session with a cache.
    func session(_ cache: ResponseCache) -> HTTPSession {
        HTTPSession.own { $0.cache = cache }
    }

    /// All that was said so far.
    var events: [CacheEvent] { heard.withLock { $0 } }

    /// Waits until something is said.
    func hears(_ matchesIfRange: (CacheEvent) -> Bool) async -> Bool {
        await eventually { events.contains(where: matchesIfRange) }
    }

    // MARK: The folder

    /// The names in the cache's folder; none where it is not there.
    var names: [String] { ((try? LinuxFileSystem().names(inFolder: path)) ?? []).sorted() }

    /// The cache's files but lock, index and what is half written.
    var entryFiles: [String] { names.filter { $0 != "lock" && $0 != "index" && !$0.hasPrefix("new.") } }

    /// The files of larger bodies.
    var bodyFiles: [String] { names.filter { $0.split(separator: ".").count == 3 } }

    /// Waits until nothing is half written.
    func isTidy() async -> Bool {
        await eventually { !names.contains { $0.hasPrefix("new.") } }
    }

    func contents(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }

    /// Changes bytes where they are.
    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }

    func remove(_ name: String = "") throws {
        try FileManager.default.removeItem(atPath: name.isEmpty ? path : "\(path)/\(name)")
    }

    // MARK: Requests

    /// Answers as the path says, fresh for ten minutes.
    static func answer(_ request: OriginRequest) -> OriginResponse {
        guard request.method == .get else { return OriginResponse(204) }
        let numbers = request.path.split(separator: "/").compactMap { UInt64($0) }
        guard numbers.count == 2 else { return OriginResponse(404) }
        return OriginResponse(
            200, fields: ["Cache-Control": "max-age=600"], body: .pattern(numbers[1], from: numbers[0]))
    }

    /// Runs a test beside an origin that answers so.
    static func withOrigin(_ body: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin {
            CacheFaultScene.answer($0)
        } run: { origin async throws in
            try await body(origin)
        }
    }

    /// Asks for so many bytes from a place on, expects just these, and says where they came from.
    @discardableResult
    static func get(
        _ offset: Int, _ count: Int, _ session: HTTPSession, _ origin: TestOrigin,
        _ location: SourceLocation = #_sourceLocation
    ) async throws -> HTTPExchange.Source {
        let exchange = try await session.get(origin.url("/\(offset)/\(count)"))
        let isRight = exchange.body == TestPattern.bytes(from: UInt64(offset), count: count)
        #expect(isRight && exchange.statusCode == 200, sourceLocation: location)
        return exchange.source
    }

    /// Asks until an answer comes from the cache: it works.
    static func comesBack(
        _ offset: Int, _ count: Int, _ session: HTTPSession, _ origin: TestOrigin,
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        // A single response may go uncached where something else holds the folder's lock for too long, such as a cache
        // that is just being given up; the cache is back when one is stored.
        for _ in 0..<100 {
            if try await get(offset, count, session, origin, location) == .cache { return }
        }
        Issue.record("nothing is stored any more", sourceLocation: location)
    }
}

extension CacheEvent {
    var isUnavailable: Bool { if case .unavailable = self { true } else { false } }
    var isDamage: Bool { if case .damaged = self { true } else { false } }
}
