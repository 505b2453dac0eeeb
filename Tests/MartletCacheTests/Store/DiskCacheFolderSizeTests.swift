import MartletCacheChild
import MartletStorage
import Testing

@testable import MartletCache

@Suite("What a cache's folder occupies itself")
struct DiskCacheFolderSizeTests {
    @Test("With the names of many small entries in it, the folder and they are within the limit")
    func manyNames() async throws {
        let scene = try CacheFolderScene()
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

    @Test("A folder that is larger than the limit has no room for anything, and nothing fails")
    func noRoom() async throws {
        let scene = try CacheFolderScene()
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
