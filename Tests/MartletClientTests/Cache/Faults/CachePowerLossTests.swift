import FoundationEssentials
import Martlet
import MartletClientChild
import MartletStorage
import MartletTesting
import MartletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Power loss")
struct CachePowerLossTests {
    /// Runs a test with a small page, stored in its entry, and a large one, stored in its own file. Each response has a
    /// new version.
    private func withPages(_ body: (TestOrigin) async throws -> Void) async throws {
        let versions = Mutex<UInt64>(0)
        try await TestOrigin.withOrigin { request in
            guard request.method == .get else { return OriginResponse(204) }
            let version = versions.withLock { version in
                version += 1
                return version
            }
            return SamplePage.answer(
                request, version: version, count: request.path == "/small" ? 700 : 70_000)
        } run: { origin async throws in
            try await body(origin)
        }
    }

    /// Stores, replaces, removes and stores again, flushes the index, and returns the recorded changes.
    private func record(_ origin: TestOrigin) async throws -> [RecordingFileSystem.Change] {
        let files = RecordingFileSystem()
        let scene = try CacheFaultScene()
        let cache = try scene.cache(files: files)
        #expect(await eventually { cache.store.statistics.disk?.isIndexComplete == true })
        let session = scene.session(cache)
        for path in ["/small", "/large"] {
            _ = try await session.get(origin.url(path))
            _ = try await session.get(origin.url(path), options: CacheScene.mode(.reload))
            _ = try await session.delete(origin.url(path))
            _ = try await session.get(origin.url(path))
        }
        await cache.flush()
        return files.changes
    }

    /// Returns power losses at every change, with different losses of unsynced data.
    private static func cuts(_ count: Int) -> [PowerLoss] {
        var cuts: [PowerLoss] = []
        for number in 1...count {
            cuts.append(.after(number))
            if number % 4 == 0 { cuts += [.withoutData(number), .zeros(number)] }
            cuts.append(.any(number, seed: UInt64(number)))
        }
        // At the end the most changes can be lost.
        for seed in 0..<40 as Range<UInt64> { cuts.append(.any(count, seed: seed &+ 0x6D61_7274)) }
        return cuts
    }

    /// Repeats a request until its response comes from the cache. A single store may fail to get the directory's lock.
    private func isStoredAgain(
        _ path: String, _ session: HTTPSession, _ origin: TestOrigin
    ) async throws -> Bool {
        for _ in 0..<100 {
            let exchange = try await session.get(origin.url(path))
            guard SamplePage.isRight(exchange, path) else { return false }
            if exchange.source == .cache { return true }
        }
        return false
    }

    @Test(
        "After a power loss with any subset of unsynced writes, the next session serves correct pages"
    )
    func powerCuts() async throws {
        try await withPages { origin in
            let changes = try await record(origin)
            try #require(changes.count > 40)
            var removals: UInt64 = 0
            for cut in CachePowerLossTests.cuts(changes.count) {
                let scene = try CacheFaultScene()
                try LinuxFileSystem().makeDirectory(scene.path)
                for (name, bytes) in cut.files(after: changes) { try scene.write(bytes, to: name) }
                let cache = try await scene.openedCache()
                let session = scene.session(cache)
                for path in ["/small", "/large"] {
                    let exchange = try await session.get(origin.url(path))
                    #expect(SamplePage.isRight(exchange, path), "\(cut): \(path)")
                    // All changes were written, so the entry is found.
                    if case .after(changes.count) = cut { #expect(exchange.source == .cache) }
                    #expect(try await isStoredAgain(path, session, origin), "\(cut): \(path)")
                }
                #expect(await scene.isTidy(), "\(cut)")
                removals += cache.statistics.removals
                await session.invalidateAndCancel()
            }
            // Some entries were incomplete and were removed.
            #expect(removals > 0)
        }
    }
}
