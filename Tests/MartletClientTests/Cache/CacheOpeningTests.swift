import Dispatch
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Opening a cache")
struct CacheOpeningTests {
    @Test("A cache serves and stores responses while its directory is still being scanned")
    func atOnce() async throws {
        let scene = try CacheFaultScene()
        try await CacheFaultScene.withOrigin { origin in
            let first = try await scene.openedCache()
            let filling = scene.session(first)
            for number in 0..<20 { try await CacheFaultScene.comesBack(number, 40_000, filling, origin) }
            await first.flush()
            let gate = DispatchSemaphore(value: 0)
            scene.files.interrupt(.names) { gate.wait() }
            let cache = try scene.cache()
            let session = scene.session(cache)
            do {
                // If an expectation fails, the blocked scan must still continue.
                defer { gate.signal() }
                for number in 0..<20 {
                    #expect(try await CacheFaultScene.get(number, 40_000, session, origin) == .cache)
                }
                try await CacheFaultScene.comesBack(20, 40_000, session, origin)
                #expect(cache.store.statistics.disk?.isIndexComplete == false)
            }
            #expect(await eventually { cache.store.statistics.disk?.isIndexComplete == true })
            #expect(await eventually { cache.statistics.diskEntries == 21 })
            #expect(await scene.hears { $0 == .indexed(count: 21, hadFile: true) })
        }
    }
}
