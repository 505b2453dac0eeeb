import Foundation
import Glibc
import MartletCacheChild
import MartletStorage
import MartletTestSupport
import MartletWire
import Testing

@testable import MartletCache

@Suite("Memory cache with a failing disk")
struct ResponseStoreFaultTests {
    @Test(
        "During any fault memory serves its entries, and writes them when the disk recovers",
        arguments: FaultyFileSystem.Call.allCases, [EIO, ENOSPC, EROFS])
    func failing(_ call: FaultyFileSystem.Call, _ code: Int32) throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let store = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache(files: files))
        store.put("old", seed: 1)
        store.put("gone", seed: 2)
        files.fail(.init(call, code: code))
        store.put("old", seed: 11, time: 2000)
        store.put("new", seed: 12, time: 2000)
        store.invalidate(CacheKey(url: "gone"))
        #expect(store.seed(of: "old") == 11)
        #expect(store.seed(of: "new") == 12)
        #expect(store.seed(of: "gone") == 0)
        files.mend()
        #expect(store.seed(of: "old") == 11)
        #expect(store.seed(of: "gone") == 0)
        store.trim(to: 0)
        #expect(!store.remembers("old") && !store.remembers("new"))
        #expect(store.seed(of: "old") == 11)
        #expect(store.seed(of: "new") == 12)
        let next = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache())
        #expect(next.seed(of: "old") == 11)
        #expect(next.seed(of: "new") == 12)
    }

    @Test("Under memory pressure unwritten entries are written, and a later cache finds them")
    func pressure() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let store = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache(files: files))
        files.fill(after: 0)
        let stored = try (0..<50).map { try #require(store.put("u\($0)", seed: UInt64($0) + 1)) }
        #expect(try scene.entryFiles.isEmpty)
        files.mend()
        store.trim(to: 20_000)
        #expect(store.statistics.memory.byteCount <= 20_000)
        for number in 0..<50 { #expect(store.seed(of: "u\(number)") == UInt64(number) + 1) }
        store.flush()
        let next = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache())
        for number in 0..<50 {
            let found = try #require(next.find("u\(number)"))
            #expect(found.seed == UInt64(number) + 1)
            #expect(found.representation == stored[number].representation)
        }
    }

    @Test("Unwritten entries that are evicted from memory are written to disk")
    func evicted() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let store = ResponseStore(memoryLimit: 20_000, disk: try scene.cache(files: files))
        files.fill(after: 0)
        store.put("a", seed: 1)
        #expect(store.remembers("a"))
        files.mend()
        for number in 0..<50 { store.put("u\(number)", seed: 2) }
        #expect(!store.remembers("a"))
        #expect(store.seed(of: "a") == 1)
    }

    @Test(
        "Entries that a promoted hit evicts are written by the next blocking call, unless they are invalidated"
    )
    func drivenOut() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let store = ResponseStore(memoryLimit: 20_000, disk: try scene.cache(files: files))
        for number in 0..<50 { store.put("u\(number)", seed: 2) }
        store.trim(to: 0)
        files.fill(after: 0)
        store.put("a", seed: 1)
        store.put("b", seed: 1)
        files.mend()
        let found = (0..<50).compactMap { store.all(CacheKey(url: "u\($0)")).first }
        let writes = files.count(of: .create)
        for response in found { store.promote(response) }
        #expect(files.count(of: .create) == writes)
        #expect(!store.remembers("a") && !store.remembers("b"))
        store.invalidate(CacheKey(url: "b"))
        #expect(store.all(CacheKey(url: "a")).map(\.seed) == [1])
        #expect(store.all(CacheKey(url: "b")).isEmpty)
    }

    @Test("A head that only memory could store is later written to disk, and the body is retained")
    func freshened() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let disk = try scene.cache(files: files)
        let store = ResponseStore(memoryLimit: 1 << 20, disk: disk)
        let stored = try #require(store.put("a", seed: 1, count: 50_000))
        var head = stored.head
        head.fields.append(name: "X-News", value: "1")
        files.fail(.init(.write, code: EIO))
        let updated = store.freshen(stored, to: head, epoch: store.epoch)
        #expect(updated?.head == head && store.inMemory(CacheKey(url: "a")).first?.head == head)
        files.mend()
        store.flush()
        store.trim(to: 0)
        let found = try #require(store.find("a"))
        #expect(found.head == head && found.seed == 1)
        #expect(found.representation == stored.representation)
        disk.load()
        #expect(try disk.statistics.byteCount == scene.allocated)
    }

    @Test("If the directory disappears, memory still serves, and the directory is created again")
    func vanishing() throws {
        let scene = try CacheDirectoryScene()
        let store = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache())
        store.put("a", seed: 1)
        try FileManager.default.removeItem(atPath: scene.path)
        #expect(store.seed(of: "a") == 1)
        #expect(store.all(CacheKey(url: "a")).map(\.seed) == [1])
        #expect(store.put("b", seed: 2)?.seed == 2)
        store.invalidate(CacheKey(url: "a"))
        #expect(store.seed(of: "a") == 0)
        store.trim(to: 0)
        #expect(store.seed(of: "b") == 2)
    }
}
