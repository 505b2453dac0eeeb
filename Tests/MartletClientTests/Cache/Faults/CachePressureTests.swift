import Glibc
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore
@testable import MartletConditions

@Suite("A cache under memory pressure")
struct CachePressureTests {
    private static let numbers = 0..<20

    private func fill(_ session: HTTPSession, _ origin: TestOrigin) async throws {
        for number in CachePressureTests.numbers {
            try await CacheFaultScene.get(number, 2000, session, origin)
        }
    }

    /// Runs a test with a cache whose memory is full and whose disk accepts no writes, and with manual memory pressure.
    private func withUnwritten(
        _ body: (
            CacheFaultScene, ManualMemoryPressure, ResponseCache, HTTPSession, TestOrigin
        ) async throws -> Void
    ) async throws {
        let scene = try CacheFaultScene()
        let pressure = ManualMemoryPressure()
        try await CacheFaultScene.withOrigin { origin in
            let cache = try scene.cache(memory: .mebibytes(8), pressure: pressure.source)
            #expect(await scene.hears { if case .indexed = $0 { true } else { false } })
            let session = scene.session(cache)
            scene.files.fill(after: 0)
            try await fill(session, origin)
            try await body(scene, pressure, cache, session, origin)
        }
    }

    @Test("Memory pressure halves or empties the memory after writing it to disk")
    func pressure() async throws {
        try await withUnwritten { scene, pressure, cache, session, origin async throws in
            scene.files.mend()
            #expect(scene.entryFiles.isEmpty)
            let full = cache.statistics.memoryBytes
            #expect(cache.statistics.memoryEntries == 20)
            pressure.set(.warning)
            #expect(await eventually { cache.statistics.memoryBytes <= full / 2 })
            #expect(cache.statistics.memoryEntries >= 8)
            #expect(await eventually { scene.entryFiles.count >= 10 })
            pressure.set(.critical)
            #expect(await eventually { cache.statistics.memoryBytes == 0 })
            #expect(await eventually { scene.entryFiles.count == 20 })
            for number in CachePressureTests.numbers {
                #expect(try await CacheFaultScene.get(number, 2000, session, origin) == .cache)
            }
            #expect(origin.requests.count == 20)
            pressure.set(.normal)
            #expect(cache.statistics.memoryEntries > 0)
        }
    }

    @Test("Memory pressure with a full disk loses entries but fails no requests")
    func pressureWithoutDisk() async throws {
        try await withUnwritten { scene, pressure, cache, session, origin async throws in
            pressure.set(.critical)
            #expect(await eventually { cache.statistics.memoryEntries == 0 })
            try await fill(session, origin)
            scene.files.mend()
            try await CacheFaultScene.comesBack(1, 2000, session, origin)
        }
    }

    @Test("A released cache writes the entries from memory to disk, and the next cache serves them")
    func gone() async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            try await leaveUnwritten(scene, origin)
            // The index is written last.
            #expect(await eventually { scene.entryFiles.count == 20 && scene.names.contains("index") })
            let next = scene.session(try await scene.openedCache())
            for number in CachePressureTests.numbers {
                #expect(try await CacheFaultScene.get(number, 2000, next, origin) == .cache)
            }
        }
    }

    /// Fills a cache whose disk is full, then frees the disk and releases the cache.
    private func leaveUnwritten(_ scene: CacheFaultScene, _ origin: TestOrigin) async throws {
        let cache = try await scene.openedCache(memory: .mebibytes(8))
        let session = scene.session(cache)
        scene.files.fill(after: 0)
        try await fill(session, origin)
        #expect(scene.entryFiles.isEmpty)
        scene.files.mend()
        await session.invalidateAndCancel()
    }
}
