import Foundation
import MartletStorage
import Testing

@testable import MartletCache

@Suite("Inspecting a directory that others use")
struct DiskCacheLookingTests {
    @Test("Inspecting a cache neither creates nor changes it, and evicts nothing")
    func changesNothing() throws {
        let scene = try CacheDirectoryScene()
        let owner = try scene.cache(limit: 1 << 20)
        for number in 0..<50 { owner.put("u\(number)", seed: 3, count: 10_000) }
        owner.saveIndex()
        let (lock, index) = (try scene.contents("lock"), try scene.contents("index"))
        let names = try scene.names
        let guest = try DiskCache(existing: scene.path)
        let entries = try guest.entryNamesByURL()
        #expect(entries.count == 50)
        for name in entries { #expect(guest.inspect(name) != nil) }
        #expect(guest.verify().whole == 50)
        #expect(try guest.occupiedByteCount() == scene.allocated)
        #expect(guest.statistics.hits == 0 && guest.statistics.evictions == 0)
        #expect(try scene.names == names)
        #expect(try scene.contents("lock") == lock)
        #expect(try scene.contents("index") == index)
    }

    @Test("Entries are listed by URL, and damaged ones follow and are retained")
    func order() throws {
        let scene = try CacheDirectoryScene()
        let owner = try scene.cache()
        for url in ["c", "a", "d", "b"] { owner.put(url) }
        let victim = try scene.names.first { $0 != "lock" && $0 != "index" } ?? ""
        var bytes = try scene.contents(victim)
        bytes[bytes.count - 1] ^= 1
        try scene.write(bytes, to: victim)
        let guest = try DiskCache(existing: scene.path)
        let sights = try guest.entryNamesByURL().map { guest.inspect($0) }
        let urls = sights.compactMap { sight in
            if case .whole(let reader) = sight { reader.head.key.url } else { nil }
        }
        #expect(urls.count == 3 && urls == urls.sorted())
        guard case .damaged(let damage) = sights.last else {
            Issue.record("the damaged entry is not the last: \(sights)")
            return
        }
        #expect(damage.file == victim && damage.error == .checksum)
        #expect(try scene.names.contains(victim))
        #expect(guest.statistics.damaged == 0)
    }

    @Test("A missing directory is not created, and one that is not a cache is not opened")
    func opening() throws {
        let scene = try CacheDirectoryScene()
        #expect(throws: CacheOpeningError.missing(path: "\(scene.path)/none")) {
            try DiskCache(existing: "\(scene.path)/none")
        }
        #expect(try scene.names.isEmpty)
        _ = try DiskCache(existing: scene.path)
        try scene.write([], to: "lock")
        _ = try DiskCache(existing: scene.path)
        try scene.cache().put("a")
        _ = try DiskCache(existing: scene.path)
        try scene.write([1], to: "file")
        #expect(throws: CacheOpeningError.notADirectory(path: "\(scene.path)/file")) {
            try DiskCache(existing: "\(scene.path)/file")
        }
    }

    @Test("A cache without entries is still a cache")
    func emptied() throws {
        let scene = try CacheDirectoryScene()
        let owner = try scene.cache()
        owner.put("a")
        try scene.write([1], to: "notes.txt")
        owner.removeAll()
        #expect(try DiskCache(existing: scene.path).entryNames().isEmpty)
    }

    @Test("A directory that is removed during an inspection is not created again")
    func vanishes() throws {
        let scene = try CacheDirectoryScene()
        try scene.cache().put("a")
        let guest = try DiskCache(existing: scene.path)
        try FileManager.default.removeItem(atPath: scene.path)
        #expect(try guest.entryNames().isEmpty)
        #expect(guest.verify().whole == 0)
        #expect(guest.removeAllCounting() == nil)
        #expect(!FileManager.default.fileExists(atPath: scene.path))
    }

    @Test("Removing all entries returns their number and size, and the owner's counts follow")
    func counts() throws {
        let scene = try CacheDirectoryScene()
        let owner = try scene.cache()
        for number in 0..<5 { owner.put("u\(number)", count: 50_000) }
        let before = try scene.allocated
        let removed = try #require(DiskCache(existing: scene.path).removeAllCounting())
        #expect(removed.entryCount == 5)
        #expect(removed.byteCount == before - (try scene.allocated))
        #expect(owner.put("a", seed: 2))
        #expect(owner.statistics.byteCount == (try scene.allocated))
        #expect(owner.seed(of: "u1") == 0 && owner.seed(of: "a") == 2)
    }
}
