import Foundation
import MartletCacheChild
import MartletStorage
import Testing

@testable import MartletCache

@Suite("Caches that share a directory")
struct DiskCacheSharingTests {
    @Test("Two caches find each other's entries and share one limit")
    func two() async throws {
        let scene = try CacheDirectoryScene()
        let limit: UInt64 = 2 << 20
        let first = try scene.cache(limit: limit)
        let second = try scene.cache(limit: limit)
        for number in 0..<100 {
            await Task.yield()
            #expect(
                (number % 2 == 0 ? first : second).put("u\(number)", seed: UInt64(number) + 1, count: 40_000))
            #expect((number % 2 == 0 ? second : first).seed(of: "u\(number)") == UInt64(number) + 1)
            #expect(try scene.allocated <= limit)
        }
        first.saveIndex()
        second.saveIndex()
        let third = try scene.cache(limit: limit)
        third.load()
        #expect(third.seed(of: "u99") == 100)
        #expect(try third.statistics.byteCount == scene.allocated)
    }

    @Test(
        "While another process holds the lock, entries are found but not stored; afterwards both caches work")
    func locked() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.put("a", seed: 1)
        let files = LinuxFileSystem()
        do {
            let holder = try files.open("\(scene.path)/lock", for: .updating)
            #expect(try files.tryLock(holder))
            #expect(!cache.put("b", seed: 2))
            #expect(cache.seed(of: "a") == 1)
            cache.remove(CacheKey(url: "a"))
            #expect(cache.seed(of: "a") == 0)
        }
        #expect(cache.put("b", seed: 3))
        #expect(cache.seed(of: "b") == 3)
    }

    @Test("A file of a running process is retained, and a file of a dead process is removed")
    func leftovers() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        let writer = try #require(cache.begin(SampleResponse.head("a", seed: 1, count: 50_000)))
        writer.append(SampleResponse.body(seed: 1, count: 50_000))
        try scene.write([1, 2, 3], to: CacheFile.temporary(99).name)
        let orphan = CacheFile.body(
            EntryName(digest: CacheDigest(CacheKey(url: "x")), slot: 0), generation: 4)
        try scene.write([1, 2, 3], to: orphan.name)
        let other = try scene.cache()
        other.load()
        #expect(try scene.entryFiles.count == 1)
        #expect(writer.commit())
        #expect(other.seed(of: "a") == 1)
    }

    @Test("Two processes that store and read the same URLs never see a wrong body or an error")
    func processes() async throws {
        let scene = try CacheDirectoryScene()
        async let first = CacheChild.run(
            scene.path, limit: 2 << 20, seed: 1, count: 250, urls: 60, maximum: 200_000)
        async let second = CacheChild.run(
            scene.path, limit: 2 << 20, seed: 2, count: 250, urls: 60, maximum: 200_000)
        for (output, status) in try await [first, second] {
            #expect(status == 0)
            #expect(output.count == 250)
            #expect(!output.contains("!"))
            #expect(output.contains("h") && output.contains("s"))
        }
        let cache = try scene.cache(limit: 2 << 20)
        cache.load()
        #expect(cache.verify().damaged == 0)
        #expect(try scene.allocated <= 2 << 20)
    }

    @Test("After a kill at any moment every hit of another process is a stored body")
    func kills() async throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache(limit: 2 << 20)
        for round in 1...8 {
            async let other = CacheChild.run(
                scene.path, limit: 2 << 20, seed: round + 100, count: 60, urls: 20, maximum: 150_000)
            let (output, status) = try await CacheChild.run(
                scene.path, limit: 2 << 20, seed: round, count: 100_000, urls: 20, maximum: 150_000,
                killAfter: round * 17)
            #expect(status == SIGKILL)
            #expect(!output.contains("!"))
            #expect(try await other.status == 0)
            cache.load()
            #expect(cache.verify().damaged == 0, "round \(round)")
            cache.forEachEntry { reader in
                #expect((try? SampleResponse.matches(reader.head, reader.contents(limit: .max))) == true)
                return true
            }
            #expect(try scene.allocated <= 3 << 20)
        }
    }
}
