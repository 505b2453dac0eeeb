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
@testable import MartletConditions
@testable import MartletStreams

/// A cache in a test's own directory with injected file errors, and the events of the cache.
///
/// The origin responds to `/7/100` with 100 bytes of the test pattern from offset 7.
final class CacheFaultScene: Sendable {
    let directory: TemporaryDirectory
    let files = FaultyFileSystem()
    private let heard = Mutex<[CacheEvent]>([])

    init() throws {
        directory = try TemporaryDirectory()
    }

    /// The directory of the cache.
    var path: String { directory.path + "/cache" }

    // MARK: Cache

    /// Opens the cache, by default without memory, so that every hit comes from disk.
    func cache(
        memory: ByteCount = .bytes(0), disk: ByteCount = .mebibytes(256),
        pressure: MemoryPressureSource? = nil, files: (any FileSystem)? = nil
    ) throws -> ResponseCache {
        var options = ResponseCache.Options()
        options.memoryPressure = pressure
        let cache = try ResponseCache.at(
            FilePath(path), memory: memory, disk: disk, options: options, files: files ?? self.files)
        let events = cache.events
        // The task ends with the cache, which it does not retain.
        let task = Task { [weak self] in
            for await event in events { self?.heard.withLock { $0.append(event) } }
        }
        _ = task
        return cache
    }

    /// Opens the cache and waits until the scan of its directory is complete.
    func openedCache(memory: ByteCount = .bytes(0), disk: ByteCount = .mebibytes(256)) async throws
        -> ResponseCache
    {
        let cache = try cache(memory: memory, disk: disk)
        #expect(await eventually { cache.store.statistics.disk?.isIndexComplete == true })
        return cache
    }

    /// Makes a session with a cache.
    func session(_ cache: ResponseCache) -> HTTPSession {
        HTTPSession.own { $0.cache = cache }
    }

    /// All events so far.
    var events: [CacheEvent] { heard.withLock { $0 } }

    /// Waits for an event.
    func hears(_ predicate: (CacheEvent) -> Bool) async -> Bool {
        await eventually { events.contains(where: predicate) }
    }

    // MARK: Directory

    /// The sorted file names in the cache's directory; empty if it does not exist.
    var names: [String] { ((try? LinuxFileSystem().names(inDirectory: path)) ?? []).sorted() }

    /// The files of the cache without the lock, the index and incomplete files.
    var entryFiles: [String] { names.filter { $0 != "lock" && $0 != "index" && !$0.hasPrefix("new.") } }

    /// The files of larger bodies.
    var bodyFiles: [String] { names.filter { $0.split(separator: ".").count == 3 } }

    /// Waits until there are no incomplete files.
    func isTidy() async -> Bool {
        await eventually { !names.contains { $0.hasPrefix("new.") } }
    }

    func contents(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: "\(path)/\(name)")))
    }

    /// Overwrites a file without replacing it.
    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: "\(path)/\(name)"))
    }

    func remove(_ name: String = "") throws {
        try FileManager.default.removeItem(atPath: name.isEmpty ? path : "\(path)/\(name)")
    }

    // MARK: Requests

    /// Returns a response to a path of the scene, fresh for ten minutes.
    static func answer(_ request: OriginRequest) -> OriginResponse {
        guard request.method == .get else { return OriginResponse(204) }
        let numbers = request.path.split(separator: "/").compactMap { UInt64($0) }
        guard numbers.count == 2 else { return OriginResponse(404) }
        return OriginResponse(
            200, headers: ["Cache-Control": "max-age=600"], body: .pattern(numbers[1], from: numbers[0]))
    }

    /// Runs a test with an origin that responds to the paths of the scene.
    static func withOrigin(_ body: (TestOrigin) async throws -> Void) async throws {
        try await TestOrigin.withOrigin {
            CacheFaultScene.answer($0)
        } run: { origin async throws in
            try await body(origin)
        }
    }

    /// Runs a test with a new scene, a session with an opened cache, and an origin that responds to the scene's paths.
    static func withSession(
        _ body: (CacheFaultScene, HTTPSession, TestOrigin) async throws -> Void
    ) async throws {
        let scene = try CacheFaultScene()
        try await withOrigin { origin in
            let session = scene.session(try await scene.openedCache())
            try await body(scene, session, origin)
        }
    }

    /// Requests `count` bytes from an offset, expects exactly these, and returns their source.
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

    /// Repeats a request until its response comes from the cache, which shows that the cache works again.
    static func comesBack(
        _ offset: Int, _ count: Int, _ session: HTTPSession, _ origin: TestOrigin,
        _ location: SourceLocation = #_sourceLocation
    ) async throws {
        // A single response may stay uncached if something else holds the directory's lock for too long, such as a
        // cache that is being released. The cache works again once one response is stored.
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
