import MartletCacheChild
import MartletStorage
import Testing

@testable import MartletCache

@Suite("Size of the cache directory itself")
struct DiskCacheDirectorySizeTests {
    @Test("The directory, with the names of many small entries, and its files stay within the limit")
    func manyNames() async throws {
        let scene = try CacheDirectoryScene()
        let limit: UInt64 = 6 << 20
        let cache = try scene.cache(limit: limit)
        cache.load()
        var highest: UInt64 = 0
        for number in 0..<2000 {
            cache.put("u\(number)", count: 100)
            guard number % 40 == 0 else { continue }
            await Task.yield()
            highest = max(highest, try scene.allocated)
        }
        #expect(highest <= limit && highest > limit - limit / 8)
        #expect(cache.statistics.evictions > 0)
        #expect(try cache.statistics.byteCount == scene.allocated)
    }

    @Test("A directory that is larger than the limit stores no entry, and no call fails")
    func noRoom() async throws {
        let scene = try CacheDirectoryScene()
        do {
            let cache = try scene.cache(limit: 16 << 20)
            for number in 0..<1000 {
                cache.put("u\(number)", count: 100)
                if number % 40 == 0 { await Task.yield() }
            }
        }
        let own = try LinuxFileSystem().status(at: scene.path).allocatedByteCount
        let cache = try scene.cache(limit: max(own, 4096))
        cache.load()
        #expect(try scene.entryFiles.isEmpty)
        #expect(!cache.put("a", count: 100))
        #expect(cache.seed(of: "a") == 0)
    }
}
