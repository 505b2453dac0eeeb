import MartletCacheChild
import MartletStorage
import Testing

@testable import MartletCache

@Suite("Size limit of the disk cache")
struct DiskCacheLimitTests {
    @Test(
        "The disk usage never exceeds the limit by a MiB, whatever is stored", arguments: EvictionOrder.allCases
    )
    func hard(_ order: EvictionOrder) async throws {
        let scene = try CacheDirectoryScene()
        let limit: UInt64 = 4 << 20
        let cache = try scene.cache(limit: limit, order: order)
        var generator = SystemRandomNumberGenerator()
        var highest: UInt64 = 0
        for number in 0..<200 {
            await Task.yield()
            let count = Int.random(in: 1...(number % 3 == 0 ? 500_000 : 20_000), using: &generator)
            cache.put("u\(Int.random(in: 0..<150, using: &generator))", seed: UInt64(number), count: count)
            if number % 5 == 0 { highest = max(highest, try scene.allocated) }
            if number == 100 { cache.saveIndex() }
        }
        #expect(highest <= limit + (1 << 20))
        #expect(highest > limit / 2)
        #expect(cache.statistics.evictions > 0)
        let counted = cache.statistics.byteCount
        cache.load()
        #expect(try cache.statistics.byteCount == scene.allocated)
        #expect(counted + 65_536 >= cache.statistics.byteCount)
    }

    @Test("A body above an eighth of the limit is not stored, and an event reports it")
    func tooLarge() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache(limit: 1 << 20)
        let head = SampleResponse.head("a", seed: 1, count: 200_000)
        #expect(cache.begin(head, expectedByteCount: 200_000) == nil)
        let writer = try #require(cache.begin(head))
        #expect(writer.append([UInt8](repeating: 0, count: 131_072)))
        #expect(!writer.append([0]))
        #expect(!writer.commit())
        let key = CacheKey(url: "a")
        #expect(
            scene.events.filter { if case .tooLarge = $0 { true } else { false } } == [
                .tooLarge(key, byteCount: 200_000, limit: 131_072),
                .tooLarge(key, byteCount: 131_073, limit: 131_072),
            ])
        #expect(try scene.entryFiles.isEmpty)
    }

    @Test("A scan of the directory counts the space that is reserved for a body that is being written")
    func reservedSpace() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.put("a")
        let before = cache.statistics.byteCount
        let (count, head) = (500_000, SampleResponse.head("b", seed: 2, count: 500_000))
        for isStored in [false, true] {
            let writer = try #require(cache.begin(head, expectedByteCount: UInt64(count)))
            let body = SampleResponse.body(seed: 2, count: count)
            #expect(writer.append(Array(body[..<40_000])))
            cache.load()
            #expect(cache.statistics.byteCount >= before + UInt64(count))
            if isStored {
                #expect(writer.append(Array(body[40_000...])) && writer.commit())
            } else {
                writer.abandon()
            }
            let counted = cache.statistics.byteCount
            #expect(try counted + 65_536 >= scene.allocated)
            cache.load()
            #expect(try cache.statistics.byteCount == scene.allocated)
        }
        #expect(cache.seed(of: "b") == 2)
    }

    @Test("A lowered limit applies immediately, and a limit of 0 stores and finds nothing")
    func lowered() async throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache(limit: 8 << 20)
        for number in 0..<50 {
            await Task.yield()
            cache.put("u\(number)", count: 50_000)
        }
        cache.setLimit(1 << 20)
        #expect(try scene.allocated <= 1 << 20)
        #expect(cache.seed(of: "u49") == 1)
        cache.setLimit(0)
        #expect(try scene.entryFiles.isEmpty)
        #expect(!cache.put("a"))
        #expect(cache.seed(of: "u49") == 0)
    }

    @Test("The order of use is retained across a restart", arguments: EvictionOrder.allCases)
    func restart(_ order: EvictionOrder) throws {
        let scene = try CacheDirectoryScene()
        do {
            let cache = try scene.cache(limit: 1 << 20, order: order)
            for number in 0..<20 { cache.put("u\(number)", count: 30_000) }
            for number in [3, 0, 7] { #expect(cache.seed(of: "u\(number)") == 1) }
            #expect(cache.saveIndex())
        }
        let cache = try scene.cache(limit: 1 << 20, order: order)
        cache.load()
        #expect(scene.events.contains(.indexed(count: 20, hadFile: true)))
        #expect(cache.statistics.entryCount == 20)
        // The limit first has room for all entries, and then for about ten.
        cache.setLimit(360_000)
        for number in [3, 0, 7, 19] { #expect(cache.seed(of: "u\(number)") == 1, "u\(number)") }
        for number in [1, 2, 4, 5, 6] { #expect(cache.seed(of: "u\(number)") == 0, "u\(number)") }
    }

    @Test(
        "A run that ends before the index is loaded retains the order, with its own uses as the newest",
        arguments: EvictionOrder.allCases)
    func shortRun(_ order: EvictionOrder) throws {
        let scene = try CacheDirectoryScene()
        do {
            let cache = try scene.cache(limit: 1 << 20, order: order)
            cache.load()
            for number in 0..<20 { cache.put("u\(number)", count: 30_000) }
            #expect(cache.saveIndex())
        }
        do {
            let short = try scene.cache(limit: 1 << 20, order: order)
            for name in ["u0", "u1"] {
                #expect(short.seed(of: name) == 1)
                #expect(short.saveIndex())
            }
            #expect(!short.statistics.isIndexComplete)
        }
        do {
            // This run used no entry.
            let idle = try scene.cache(limit: 1 << 20, order: order)
            #expect(idle.saveIndex() && !idle.statistics.isIndexComplete)
        }
        let cache = try scene.cache(limit: 1 << 20, order: order)
        cache.load()
        cache.setLimit(360_000)
        for number in [0, 1, 18, 19] { #expect(cache.seed(of: "u\(number)") == 1, "u\(number)") }
        for number in 2...6 { #expect(cache.seed(of: "u\(number)") == 0, "u\(number)") }
    }

    @Test("With a missing or damaged index every entry is still found and evicted")
    func noIndex() throws {
        for bytes in [nil, [], Array("garbage".utf8)] as [[UInt8]?] {
            let scene = try CacheDirectoryScene()
            do {
                let cache = try scene.cache(limit: 1 << 20)
                for number in 0..<20 { cache.put("u\(number)", count: 30_000) }
            }
            if let bytes { try scene.write(bytes, to: "index") }
            let cache = try scene.cache(limit: 400_000)
            #expect(cache.seed(of: "u0") == 1)
            cache.put("x", count: 30_000)
            #expect(try scene.allocated <= 400_000)
            // Entries that were found before the directory was scanned count as used.
            #expect(cache.seed(of: "u0") == 1)
            #expect(cache.statistics.isIndexComplete)
        }
    }

    @Test("A damaged lock file makes the cache count the directory again")
    func damagedLockFile() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache(limit: 1 << 20)
        for number in 0..<10 { cache.put("u\(number)", count: 30_000) }
        let counted = cache.statistics.byteCount
        for damage in [[], [1, 2, 3], [UInt8](repeating: 0xFF, count: 28)] as [[UInt8]] {
            // The lock is overwritten in place, because a new file would be another lock.
            let files = LinuxFileSystem()
            let file = try files.open("\(scene.path)/lock", for: .updating)
            try files.truncate(file, to: 0)
            try files.write(all: damage, to: file, at: 0)
            cache.put("u0", count: 30_000)
            #expect(cache.statistics.byteCount == counted)
        }
    }
}
