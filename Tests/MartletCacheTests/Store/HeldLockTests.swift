import MartletStorage
import MartletTestSupport
import Testing

@testable import MartletCache

@Suite("A cache whose lock another process holds")
struct HeldLockTests {
    @Test("A process waits once for a held lock, and then each call tries once until it is free")
    func waitsOnce() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let cache = try scene.cache(files: files)
        #expect(cache.put("a"))
        let holder = try LinuxFileSystem().open("\(scene.path)/lock", for: .updating)
        #expect(try LinuxFileSystem().tryLock(holder))
        #expect(!cache.put("b"))
        #expect(cache.lock.isHeldUp())
        // Without a new attempt, nothing shows that the lock is still held.
        let later = ContinuousClock.now + .seconds(60)
        #expect(!cache.lock.isHeldUp(at: later))
        // All caches of the process share their knowledge of the directory.
        for cache in [cache, try scene.cache(files: files)] {
            let calls: [(DiskCache) -> Void] = [
                { _ = $0.put("c") }, { _ = $0.put("d", count: 50_000) }, { $0.saveIndex() },
                { $0.removeAll() }, { $0.setLimit(1 << 20) },
            ]
            for call in calls {
                let before = files.count(of: .lock)
                call(cache)
                #expect(files.count(of: .lock) == before + 1)
            }
        }
        LinuxFileSystem().unlock(holder)
        cache.removeAll()
        #expect(!cache.lock.isHeldUp())
        #expect(cache.put("e") && cache.seed(of: "e") == 1)
        #expect(scene.events.last == .recovered)
    }

    @Test("An entry that is removed while the lock is held is not found again")
    func removes() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        for url in ["a", "b", "c"] { cache.put(url) }
        let holder = try LinuxFileSystem().open("\(scene.path)/lock", for: .updating)
        #expect(try LinuxFileSystem().tryLock(holder))
        cache.remove(CacheKey(url: "a"))
        #expect(cache.statistics.entryCount == 2)
        if let reader = cache.find("b") { cache.remove(reader) }
        #expect(["a", "b", "c"].map { cache.seed(of: $0) } == [0, 0, 1])
        LinuxFileSystem().unlock(holder)
        #expect(["a", "b", "c"].map { cache.seed(of: $0) } == [0, 0, 1])
    }
}
