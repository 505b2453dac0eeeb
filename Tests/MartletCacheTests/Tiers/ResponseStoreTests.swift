import MartletCacheChild
import MartletWire
import Synchronization
import Testing

@testable import MartletCache

@Suite("Memory cache with a disk cache")
struct ResponseStoreTests {
    private let scene: CacheDirectoryScene
    private let disk: DiskCache
    private let store: ResponseStore
    private let key = CacheKey(url: "a")

    init() throws {
        scene = try CacheDirectoryScene()
        disk = try scene.cache()
        store = ResponseStore(memoryLimit: 1 << 20, disk: disk)
    }

    private func ends() -> @Sendable () -> [UInt64] {
        let heard = Ends()
        store.onRepresentationRemoved { _, representation in
            heard.add(representation)
            return true
        }
        return { heard.all }
    }

    private final class Ends: Sendable {
        private let list = Mutex<[UInt64]>([])
        func add(_ representation: UInt64) { list.withLock { $0.append(representation) } }
        var all: [UInt64] { list.withLock { $0 } }
    }

    @Test(
        "A response is stored in both tiers with one identifier, and remains on disk after the process ends")
    func both() throws {
        let stored = try #require(store.put("a", seed: 3))
        #expect(stored.isInMemory && stored.seed == 3)
        let onDisk = try #require(disk.variants(of: key).first)
        #expect(onDisk.entry.generation == stored.representation)
        let next = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache())
        #expect(next.inMemory(key).isEmpty)
        let found = try #require(next.all(key).first)
        #expect(found.seed == 3 && found.representation == stored.representation && !found.isInMemory)
    }

    @Test("A hit on disk is promoted, and the next hit is from memory with the same identifier")
    func movesUp() throws {
        let stored = try #require(store.put("a", seed: 3))
        store.trim(to: 0)
        #expect(!store.remembers("a"))
        #expect(store.seed(of: "a") == 3)
        let found = try #require(store.inMemory(key).first)
        #expect(found.seed == 3 && found.representation == stored.representation)
        #expect(store.statistics.memory.entryCount == 1)
    }

    @Test("Memory serves a URL only if it has all variants that are on disk")
    func otherVariants() throws {
        store.put("a", seed: 1, language: "de", time: 1000)
        store.put("a", seed: 2, language: "en", time: 2000)
        #expect(store.inMemory(key).count == 2)
        // Memory of the next run is empty, and the variants are promoted one by one.
        let next = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache())
        let found = next.all(key)
        #expect(found.count == 2)
        next.promote(try #require(found.first { $0.seed == 1 }))
        #expect(next.inMemory(key).isEmpty && next.all(key).count == 2)
        next.promote(try #require(next.all(key).first { $0.seed == 2 }))
        #expect(next.inMemory(key).count == 2)
        // A variant that is too large for memory is stored only on disk.
        next.put("a", seed: 3, count: 200_000, language: "fr", time: 3000)
        #expect(next.inMemory(key).isEmpty && next.all(key).count == 3)
        // After the removal, memory again has all variants that are on disk.
        for response in next.all(key) where response.seed == 3 { next.remove(response) }
        #expect(next.all(key).count == 2 && next.inMemory(key).count == 2)
    }

    @Test("After memory evicts one variant, it does not serve the URL from the others alone")
    func otherVariantsGivenUp() throws {
        store.put("a", seed: 1, count: 60_000, language: "de", time: 1000)
        store.put("a", seed: 2, count: 60_000, language: "en", time: 2000)
        store.trim(to: 70_000)
        #expect(store.statistics.memory.entryCount == 1)
        #expect(store.inMemory(key).isEmpty && store.all(key).count == 2)
        // Without a disk the remaining variants are all variants.
        let alone = ResponseStore(memoryLimit: 1 << 20, disk: nil)
        alone.put("a", seed: 1, count: 60_000, language: "de", time: 1000)
        alone.put("a", seed: 2, count: 60_000, language: "en", time: 2000)
        alone.trim(to: 70_000)
        #expect(alone.inMemory(key).count == 1)
    }

    @Test("A hit that was replaced, removed or invalidated since the lookup is not promoted")
    func staysDown() throws {
        for change in 0..<4 {
            store.put("a", seed: 3)
            store.trim(to: 0)
            let old = try #require(store.all(key).first)
            switch change {
            case 0: store.put("a", seed: 4)
            case 1: store.remove(old)
            case 2: store.invalidate(key)
            default: store.removeAll()
            }
            store.trim(to: 0)
            store.promote(old)
            #expect(!store.remembers("a"))
            #expect(store.seed(of: "a") == (change == 0 ? 4 : 0))
            #expect(old.seed == 3)
        }
    }

    @Test("A body that is too large for memory is stored only on disk, and replaces the entry in memory")
    func large() throws {
        store.put("a", seed: 1)
        #expect(store.remembers("a"))
        let stored = try #require(store.put("a", seed: 2, count: 200_000))
        #expect(!store.remembers("a") && stored.seed == 2)
        let found = try #require(store.find("a"))
        #expect(found.seed == 2 && found.variant.bodyLength == 200_000)
        #expect(!store.remembers("a"))
    }

    @Test("A body that is too large for both tiers is rejected and reported")
    func tooLarge() throws {
        let head = ResponseStore.head("a", seed: 1, count: 1)
        #expect(store.begin(head, expectedByteCount: disk.bodyLimit + 1, epoch: store.epoch) == nil)
        #expect(
            scene.events == [
                .tooLarge(key, byteCount: disk.bodyLimit + 1, limit: disk.bodyLimit)
            ])
    }

    @Test("A head that a 304 updates changes in both tiers, and is retained after an eviction from memory")
    func freshened() throws {
        let stored = try #require(store.put("a", seed: 3))
        var head = stored.head
        head.fields.append(name: "X-News", value: "1")
        head.responseTime = WallTime(milliseconds: 9000)
        let updated = try #require(store.freshen(stored, to: head, epoch: store.epoch))
        #expect(updated.head == head && updated.isInMemory && updated.seed == 3)
        #expect(updated.representation == stored.representation)
        #expect(store.inMemory(key).first?.head == head)
        store.trim(to: 0)
        let found = try #require(store.all(key).first)
        #expect(found.head == head && found.representation == stored.representation)
        // A response that was found only on disk is updated there, and can be promoted with its new head.
        let again = try #require(store.freshen(found, to: stored.head, epoch: store.epoch))
        #expect(!again.isInMemory && again.head == stored.head)
        store.promote(again)
        #expect(store.inMemory(key).first?.head == stored.head)
    }

    @Test("A 304 from before an invalidation is not stored")
    func lateFreshening() throws {
        let stored = try #require(store.put("a", seed: 3))
        let epoch = store.epoch
        var head = stored.head
        head.fields.append(name: "X-News", value: "1")
        store.invalidate(key)
        #expect(store.freshen(stored, to: head, epoch: epoch) == nil)
        #expect(store.seed(of: "a") == 0)
        #expect(try scene.entryFiles.isEmpty)
    }

    @Test("A newer response of another process replaces the one in memory")
    func otherProcess() throws {
        let ends = self.ends()
        let old = try #require(store.put("a", seed: 1, time: 1000))
        let other = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache())
        other.put("a", seed: 2, time: 2000)
        #expect(store.inMemory(key).map(\.seed) == [1])
        #expect(store.all(key).map(\.seed) == [2])
        #expect(!store.remembers("a"))
        #expect(ends() == [old.representation])
        // A variant with the same or an earlier time does not count as newer.
        store.put("b", seed: 3, time: 2000)
        other.put("b", seed: 4, time: 1000)
        #expect(store.all(CacheKey(url: "b")).map(\.seed) == [3])
    }

    @Test("Variants are stored in both tiers, and a response without Vary replaces them")
    func variants() throws {
        store.put("a", seed: 1, language: "en")
        store.trim(to: 0)
        store.put("a", seed: 2, language: "fr")
        #expect(store.inMemory(key).map(\.seed) == [2])
        #expect(store.all(key).map(\.seed) == [2, 1])
        store.put("a", seed: 3)
        #expect(store.inMemory(key).map(\.seed) == [3])
        #expect(store.all(key).map(\.seed) == [3])
    }

    @Test("A response does not replace a more recent one that was received after its request, in either tier")
    func overtaken() throws {
        for store in [
            store, ResponseStore(memoryLimit: 0, disk: disk), ResponseStore(memoryLimit: 1 << 20, disk: nil),
        ] {
            for count in [100, 100_000] where count == 100 || store.hasDisk {
                store.put("a", seed: 2, count: count, time: 2003)
                #expect(store.put("a", seed: 1, count: 100, time: 2000) == nil)
                #expect(store.put("a", seed: 1, count: 100_000, time: 2000) == nil)
                #expect(store.all(key).map(\.seed) == [2])
                // Another variant does not match the same requests, and a later request is always more recent.
                store.put("b", seed: 4, count: count, language: "en", time: 2003)
                #expect(store.put("b", seed: 3, count: count, language: "de", time: 2000)?.seed == 3)
                #expect(store.put("a", seed: 5, count: count, time: 2008)?.seed == 5)
                #expect(store.all(key).map(\.seed) == [5])
                store.removeAll()
            }
        }
        // One that an unsafe request has made out of date does not count.
        store.put("a", seed: 2, time: 2003)
        store.noteOutdated("a", at: WallTime(milliseconds: 2004))
        #expect(store.put("a", seed: 1, time: 2000)?.seed == 1)
    }

    @Test("A response that was requested before an invalidation is stored in neither tier")
    func invalidated() throws {
        let epoch = store.epoch
        for count in [100, 200_000] {
            let head = ResponseStore.head("a", seed: 1, count: count)
            let writer = try #require(store.begin(head, expectedByteCount: nil, epoch: epoch))
            writer.append(SampleResponse.body(seed: 1, count: count))
            store.invalidate(key)
            #expect(writer.commit(trailers: nil) == nil)
            #expect(!writer.isAlive)
            #expect(try writer.readable() == SampleResponse.body(seed: 1, count: count))
            #expect(store.put("a", seed: 2, count: count, epoch: epoch) == nil)
            #expect(store.inMemory(key).isEmpty && store.all(key).isEmpty)
        }
        #expect(try scene.entryFiles.isEmpty)
        #expect(store.put("a", seed: 3) != nil)
        #expect(!store.holds(epoch, for: key) && store.holds(epoch, for: CacheKey(url: "b")))
    }

    @Test("An invalidation removes the responses of one credential and those for all")
    func partitions() throws {
        let own = CacheKey(url: "a", partition: "p")
        for key in [key, own, CacheKey(url: "a", partition: "q")] {
            var head = ResponseStore.head("a", seed: 1, count: 1)
            head.key = key
            let writer = try #require(store.begin(head, expectedByteCount: nil, epoch: store.epoch))
            writer.append(SampleResponse.body(seed: 1, count: 1))
            #expect(writer.commit(trailers: nil) != nil)
        }
        store.invalidate(own)
        #expect(store.all(own).isEmpty && store.all(key).isEmpty)
        #expect(store.all(CacheKey(url: "a", partition: "q")).count == 1)
    }

    @Test(
        "An unsafe request invalidates the responses of other credentials in both tiers",
        arguments: [0, 1 << 20])
    func otherPartitions(memoryLimit: Int) throws {
        let store = ResponseStore(memoryLimit: memoryLimit, disk: store.disk)
        let other = CacheKey(url: "a", partition: "q")
        func put(at time: WallTime) throws {
            var head = ResponseStore.head("a", seed: 1, count: 1)
            (head.key, head.requestTime, head.responseTime) = (other, time, time)
            let writer = try #require(store.begin(head, expectedByteCount: nil, epoch: store.epoch))
            writer.append(SampleResponse.body(seed: 1, count: 1))
            #expect(writer.commit(trailers: nil) != nil)
        }
        try put(at: WallTime(milliseconds: 1000))
        #expect(store.all(other).count == 1)
        store.invalidate(CacheKey(url: "b"), others: WallTime(milliseconds: 2000))
        #expect(store.all(other).count == 1)
        store.invalidate(CacheKey(url: "a", partition: "p"), others: WallTime(milliseconds: 2000))
        #expect(store.inMemory(other).isEmpty && store.allNonBlocking(other)?.isEmpty != false)
        #expect(store.all(other).isEmpty)
        // A request after the invalidation counts, even within the same millisecond.
        for (url, now, expected) in [
            ("a", 2000, 2001), ("b", 1999, 1999), ("a", 1999, 1999), ("c", 2000, 2000),
        ] {
            let time = store.requestTime(for: url, now: WallTime(milliseconds: Int64(now)))
            #expect(time == WallTime(milliseconds: Int64(expected)))
        }
        try put(at: store.requestTime(for: "a", now: WallTime(milliseconds: 2000)))
        #expect(store.all(other).count == 1)
        // With too many URLs the oldest invalidation is dropped.
        store.invalidate(CacheKey(url: "a"), others: WallTime(milliseconds: 3000))
        #expect(store.all(other).isEmpty)
        try put(at: WallTime(milliseconds: 1000))
        #expect(store.all(other).isEmpty)
        for number in 0..<InvalidatedURLs.defaultLimit {
            _ = store.outdated.withLock { $0.update(WallTime(milliseconds: 1), for: "u\(number)") }
        }
        try put(at: WallTime(milliseconds: 1000))
        #expect(store.all(other).count == 1)
    }

    @Test("A response that is removed during a read is read to its end, and a later one is retained")
    func removal() throws {
        store.put("a", seed: 1, count: 200_000)
        let old = try #require(store.find("a"))
        store.remove(old)
        #expect(store.all(key).isEmpty)
        #expect(old.seed == 1)
        let small = try #require(store.put("a", seed: 2))
        store.remove(old)
        #expect(store.all(key).map(\.seed) == [2])
        store.put("a", seed: 3)
        store.remove(small)
        #expect(store.all(key).map(\.seed) == [3])
        #expect(try disk.statistics.byteCount == scene.allocated)
    }

    @Test(
        "Each body that is replaced, removed or invalidated is reported once, and evictions and updates are not"
    )
    func ended() throws {
        let ends = self.ends()
        let first = try #require(store.put("a", seed: 1))
        let second = try #require(store.put("a", seed: 2))
        #expect(ends() == [first.representation])
        _ = store.freshen(second, to: second.head, epoch: store.epoch)
        store.trim(to: 0)
        #expect(store.seed(of: "a") == 2)
        #expect(ends() == [first.representation])
        store.remove(second)
        #expect(ends() == [first.representation, second.representation])
        let small = try #require(store.put("a", seed: 3, language: "en"))
        let large = try #require(store.put("a", seed: 4, count: 200_000, language: "fr"))
        store.invalidate(key)
        #expect(Set(ends().suffix(2)) == [small.representation, large.representation])
        let last = try #require(store.put("b", seed: 5))
        store.trim(to: 0)
        store.removeAll()
        #expect(ends().count == 5 && ends().last == last.representation)
    }

    @Test("Each request counts as one hit or one miss, and each tier counts its own hits")
    func counted() throws {
        #expect(store.seed(of: "a") == 0)
        store.put("a", seed: 1)
        #expect(store.seed(of: "a") == 1)
        store.trim(to: 0)
        #expect(store.seed(of: "a") == 1)
        #expect(store.seed(of: "a") == 1)
        let statistics = store.statistics
        #expect(statistics.hits == 3 && statistics.misses == 1)
        #expect(statistics.memory.hits == 2 && statistics.memory.misses == 2)
        #expect(statistics.disk?.hits == 1 && statistics.disk?.misses == 1)
    }

    @Test("A hit in memory also counts as a use on disk and protects the entry from eviction")
    func usedOnDisk() throws {
        let scene = try CacheDirectoryScene()
        let disk = try scene.cache(limit: 256 << 10)
        let store = ResponseStore(memoryLimit: 4 << 20, disk: disk)
        for number in 0..<200 {
            store.put("u\(number)", seed: 1, count: 8000)
            #expect(store.seed(of: "u0") == 1)
        }
        #expect(disk.statistics.evictions > 0)
        #expect(disk.variants(of: CacheKey(url: "u0")).count == 1)
        #expect(disk.variants(of: CacheKey(url: "u1")).isEmpty)
    }

    @Test("Each tier stores, validates, removes and invalidates without the other")
    func oneTier() throws {
        for store in [
            ResponseStore(memoryLimit: 1 << 20, disk: nil), ResponseStore(memoryLimit: 0, disk: disk),
        ] {
            let stored = try #require(store.put("a", seed: 1))
            #expect(stored.isInMemory == (store.disk == nil) && stored.seed == 1)
            #expect(store.seed(of: "a") == 1 && store.seed(of: "b") == 0)
            #expect(store.statistics.hits == 1 && store.statistics.misses == 1)
            var head = stored.head
            head.fields.append(name: "X-News", value: "1")
            #expect(store.freshen(stored, to: head, epoch: store.epoch)?.head == head)
            #expect(store.all(key).map(\.head) == [head])
            #expect(store.all(key).map(\.representation) == [stored.representation])
            let replaced = try #require(store.put("a", seed: 2))
            store.remove(stored)
            #expect(store.seed(of: "a") == 2)
            store.remove(replaced)
            #expect(store.seed(of: "a") == 0)
            store.flush()
            store.trim(to: 0)
        }
        let nothing = ResponseStore(memoryLimit: 0, disk: nil)
        #expect(nothing.put("a") == nil)
        #expect(nothing.seed(of: "a") == 0 && nothing.statistics.misses == 1)
    }
}
