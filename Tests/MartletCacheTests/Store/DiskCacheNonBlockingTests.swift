import Glibc
import MartletCacheChild
import MartletStorage
import MartletTestSupport
import MartletWire
import Testing

@testable import MartletCache

@Suite("Lookup of entries without blocking on the disk")
struct DiskCacheNonBlockingTests {
    private let scene: CacheDirectoryScene
    private let files = FaultyFileSystem(isAtHand: true)
    private let disk: DiskCache

    init() throws {
        scene = try CacheDirectoryScene()
        disk = try scene.cache(files: files)
    }

    private func seeds(_ readers: [EntryReader]?) -> [String]? {
        readers?.map { $0.head.fields.firstValue(of: "x-seed") ?? "" }
    }

    @Test(
        "A nonblocking lookup finds the same entries and bodies as a blocking one, for any size and number",
        arguments: [0, 100, 32_768, 32_769, 300_000])
    func same(count: Int) throws {
        disk.put("a", seed: 1, count: count)
        let found = try #require(disk.variantsNonBlocking(of: CacheKey(url: "a"))?.first)
        #expect(seeds([found]) == ["1"] && found.byteCount == UInt64(count))
        var bytes: [UInt8] = []
        while bytes.count < count {
            bytes += try #require(found.readNonBlocking(at: UInt64(bytes.count), limit: 100_000))
        }
        #expect(SampleResponse.matches(found.head, bytes))
        #expect(found.readNonBlocking(at: UInt64(count), limit: 1) == [])
        #expect(seeds(disk.variantsNonBlocking(of: CacheKey(url: "b"))) == [])
        for (number, language) in ["de", "en", "fr"].enumerated() {
            disk.put("c", seed: UInt64(number), count: count, language: language)
        }
        #expect(
            seeds(disk.variantsNonBlocking(of: CacheKey(url: "c")))
                == seeds(disk.variants(of: CacheKey(url: "c")))
        )
        #expect(disk.variantsNonBlocking(of: CacheKey(url: "c"))?.count == 3)
    }

    @Test("A new directory supports nonblocking lookups like an existing one on the same file system")
    func newDirectory() throws {
        let isSupported = LinuxFileSystem().supportsNonBlockingReads(inDirectory: scene.path)
        for _ in ["new", "existing"] {
            let cache = try DiskCache(directory: scene.path + "/a/cache", limit: .max)
            #expect((cache.nonBlockingFiles != nil) == isSupported)
        }
    }

    @Test(
        "A lookup that would block or that fails returns nothing and emits no event",
        arguments: [FaultyFileSystem.Call.open, .status, .read], [EAGAIN, EIO])
    func waiting(_ call: FaultyFileSystem.Call, _ code: Int32) throws {
        disk.put("a", seed: 1, count: 100_000)
        let key = CacheKey(url: "a")
        let reader = try #require(disk.variants(of: key).first)
        let events = scene.events
        files.fail(.init(call, code: code))
        #expect(disk.variantsNonBlocking(of: key) == nil)
        if call == .read { #expect(reader.readNonBlocking(at: 0, limit: 10) == nil) }
        #expect(scene.events == events)
        files.mend()
        #expect(disk.seed(of: "a") == 1)
    }

    @Test("A nonblocking lookup ignores a damaged entry, and a blocking one removes it", arguments: [100, 100_000])
    func damaged(count: Int) throws {
        disk.put("a", seed: 1, count: count)
        let key = CacheKey(url: "a")
        let reader = try #require(disk.variants(of: key).first)
        let events = scene.events
        for name in try scene.entryFiles {
            var bytes = try scene.contents(name)
            bytes[bytes.count - 1] ^= 1
            try scene.write(bytes, to: name)
        }
        #expect(disk.variantsNonBlocking(of: key) == nil)
        #expect(scene.events == events && disk.statistics.damaged == 0)
        if count > 32_768 { #expect(reader.readNonBlocking(at: 65_536, limit: 100) == nil) }
        #expect(disk.variants(of: key).isEmpty)
        #expect(disk.statistics.damaged == 1)
        #expect(disk.variantsNonBlocking(of: key)?.isEmpty == true)
    }

    @Test("An entry that could not be removed is not found")
    func hidden() throws {
        disk.put("a", seed: 1)
        files.fail(.init(.remove, code: EROFS))
        disk.remove(CacheKey(url: "a"))
        #expect(try !scene.entryFiles.isEmpty)
        #expect(disk.variantsNonBlocking(of: CacheKey(url: "a"))?.isEmpty == true)
    }

    @Test("A file system without nonblocking reads is read with blocking calls")
    func unknown() throws {
        let disk = try scene.cache(files: FaultyFileSystem())
        disk.put("a", seed: 1)
        #expect(disk.variantsNonBlocking(of: CacheKey(url: "a")) == nil)
        #expect(disk.variants(of: CacheKey(url: "a")).first?.readNonBlocking(at: 0, limit: 10) == nil)
    }

    @Test(
        "A nonblocking lookup checks both tiers, except while memory has evicted entries that are not on disk")
    func tiers() throws {
        let store = ResponseStore(memoryLimit: 20_000, disk: disk)
        let key = CacheKey(url: "a")
        store.put("a", seed: 1)
        #expect(store.allNonBlocking(key)?.map(\.seed) == [1])
        store.trim(to: 0)
        let found = try #require(store.allNonBlocking(key)?.first)
        #expect(found.seed == 1 && !found.isInMemory)
        for number in 0..<50 { store.put("u\(number)", seed: 2) }
        store.trim(to: 0)
        files.fill(after: 0)
        store.put("a", seed: 3, time: 2000)
        files.mend()
        let others = (0..<50).compactMap { store.all(CacheKey(url: "u\($0)")).first }
        for other in others { store.promote(other) }
        #expect(!store.remembers("a"))
        #expect(store.allNonBlocking(key) == nil)
        #expect(store.all(key).map(\.seed) == [3])
        #expect(store.allNonBlocking(key)?.map(\.seed) == [3])
    }
}
