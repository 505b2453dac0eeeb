import Foundation
import Glibc
import MartletCacheChild
import MartletStorage
import MartletTestSupport
import MartletWire
import Testing

@testable import MartletCache

@Suite("Memory before a disk that fails")
struct ResponseStoreFaultTests {
    @Test(
        "Whatever fails, memory serves what is stored, and writes it down when the disk is back",
        arguments: FaultyFileSystem.Call.allCases, [EIO, ENOSPC, EROFS])
    func failing(_ call: FaultyFileSystem.Call, _ code: Int32) throws {
        let scene = try CacheFolderScene()
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

    @Test("What is not on disk is written down for want of memory, and a cache opened later has it")
    func pressure() throws {
        let scene = try CacheFolderScene()
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

    @Test("What makes room for others in memory and is not on disk is written down")
    func evicted() throws {
        let scene = try CacheFolderScene()
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
        "What a hit that moves up drives out is written down by whoever blocks next, unless it is invalidated"
    )
    func drivenOut() throws {
        let scene = try CacheFolderScene()
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

    @Test("A head that only memory could take is written down over the disk's, the body staying")
    func freshened() throws {
        let scene = try CacheFolderScene()
        let files = FaultyFileSystem()
        let disk = try scene.cache(files: files)
        let store = ResponseStore(memoryLimit: 1 << 20, disk: disk)
        let stored = try #require(store.put("a", seed: 1, count: 50_000))
        var head = stored.head
        head.fields.append(name: "X-News", value: "1")
        files.fail(.init(.write, code: EIO))
        let updated = store.freshen(stored, to: head, epoch: store.epoch)
        #expect(updated.head == head && store.inMemory(CacheKey(url: "a")).first?.head == head)
        files.mend()
        store.flush()
        store.trim(to: 0)
        let found = try #require(store.find("a"))
        #expect(found.head == head && found.seed == 1)
        #expect(found.representation == stored.representation)
        disk.load()
        #expect(try disk.statistics.byteCount == scene.allocated)
    }

    @Test("A folder that vanishes leaves memory serving, and is made again")
    func vanishing() throws {
        let scene = try CacheFolderScene()
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
