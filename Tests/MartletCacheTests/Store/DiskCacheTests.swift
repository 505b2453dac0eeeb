import Foundation
import MartletCacheChild
import MartletStorage
import MartletWire
import Testing

@testable import MartletCache

@Suite("Responses on disk")
struct DiskCacheTests {
    @Test(
        "A stored response is found, also by the next process",
        arguments: [0, 1, 32_768, 32_769, 65_536, 300_000])
    func stores(_ count: Int) throws {
        let scene = try CacheDirectoryScene()
        #expect(try scene.cache().put("a", seed: 5, count: count))
        let next = try scene.cache()
        #expect(next.seed(of: "a") == 5)
        #expect(next.seed(of: "b") == 0)
        #expect(next.statistics.hits == 1)
        #expect(next.statistics.misses == 1)
        #expect(try scene.entryFiles.count == (count > 32_768 ? 2 : 1))
    }

    @Test("Any part of a body can be read")
    func ranges() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        let body = SampleResponse.body(seed: 1, count: 200_000)
        cache.put("a", count: 200_000)
        let reader = try #require(cache.find("a"))
        for offset in [0, 1, 65_535, 65_536, 131_000, 199_999] {
            for limit in [1, 100, 65_536, 70_000, 1_000_000] {
                let bytes = try reader.read(at: UInt64(offset), limit: limit)
                #expect((1...limit).contains(bytes.count))
                #expect(bytes == Array(body[offset...].prefix(bytes.count)))
            }
        }
        #expect(try reader.read(at: 200_000, limit: 10) == [])
        #expect(try reader.read(at: .max, limit: 10) == [])
    }

    @Test("A reader reads to the end even if its entry is replaced, removed or cleared")
    func readsOn() throws {
        for change in 0..<3 {
            let scene = try CacheDirectoryScene()
            let cache = try scene.cache()
            cache.put("a", seed: 1, count: 200_000)
            let reader = try #require(cache.find("a"))
            switch change {
            case 0: cache.put("a", seed: 2, count: 150_000)
            case 1: cache.remove(CacheKey(url: "a"))
            default: cache.removeAll()
            }
            #expect(try SampleResponse.matches(reader.head, reader.contents(limit: .max)))
            #expect(cache.seed(of: "a") == (change == 0 ? 2 : 0))
            #expect(try scene.entryFiles.count == (change == 0 ? 2 : 0))
        }
    }

    @Test("A truncated or discarded body is not stored, and the previous one is retained")
    func abandons() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.put("a", seed: 1)
        for count in [10, 100_000] {
            let writer = try #require(
                cache.begin(SampleResponse.head("a", seed: 2, count: count), expectedByteCount: UInt64(count))
            )
            writer.append(SampleResponse.body(seed: 2, count: count - 1))
            #expect(!writer.commit())
            let other = try #require(cache.begin(SampleResponse.head("a", seed: 2, count: count)))
            other.append(SampleResponse.body(seed: 2, count: count))
            other.abandon()
            #expect(!other.commit())
            _ = cache.begin(SampleResponse.head("a", seed: 2, count: count))?.append([1])
        }
        #expect(cache.seed(of: "a") == 1)
        #expect(try scene.entryFiles.count == 1)
    }

    @Test("A response that is invalidated while it arrives is not committed")
    func outdated() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        let writer = try #require(cache.begin(SampleResponse.head("a", seed: 2, count: 3)))
        writer.append(SampleResponse.body(seed: 2, count: 3))
        #expect(!writer.commit(if: { _ in false }))
        #expect(cache.seed(of: "a") == 0)
    }

    @Test("The last of two writers of one key to commit wins")
    func writers() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        let first = try #require(cache.begin(SampleResponse.head("a", seed: 1, count: 90_000)))
        let second = try #require(cache.begin(SampleResponse.head("a", seed: 2, count: 80_000)))
        first.append(SampleResponse.body(seed: 1, count: 90_000))
        second.append(SampleResponse.body(seed: 2, count: 80_000))
        #expect(second.commit())
        #expect(first.commit())
        #expect(cache.seed(of: "a") == 1)
        #expect(try scene.entryFiles.count == 2)
    }

    @Test("A second reader receives a body while it is written, from memory and from the file")
    func joins() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        let body = SampleResponse.body(seed: 4, count: 100_000)
        let writer = try #require(cache.begin(SampleResponse.head("a", seed: 4, count: 100_000)))
        #expect(try writer.read(at: 0, limit: 10).isEmpty && writer.phase == .writing)
        writer.append(Array(body[..<20_000]))
        #expect(try writer.read(at: 0, limit: 1_000_000) == Array(body[..<20_000]))
        writer.append(Array(body[20_000..<60_000]))
        #expect(try writer.read(at: 10_000, limit: 1_000_000) == Array(body[10_000..<60_000]))
        #expect(try writer.read(at: 60_000, limit: 10).isEmpty && writer.phase == .writing)
        writer.append(Array(body[60_000...]))
        #expect(writer.commit())
        #expect(try writer.read(at: 60_000, limit: 1_000_000) == Array(body[60_000...]))
        #expect(try writer.read(at: 100_000, limit: 10).isEmpty && writer.phase == .committed)
        let other = try #require(cache.begin(SampleResponse.head("b", seed: 4, count: 1)))
        other.abandon()
        #expect(try other.read(at: 0, limit: 1).isEmpty && other.phase == .abandoned)
    }

    @Test("A 304 replaces the head but not the body", arguments: [100, 100_000])
    func updates(_ count: Int) throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.put("a", seed: 3, count: count)
        let reader = try #require(cache.find("a"))
        var head = reader.head
        head.responseTime = WallTime(milliseconds: 99_999)
        head.fields.append(name: "Age", value: "0")
        #expect(cache.updateHead(of: reader, to: head))
        let updated = try #require(cache.find("a"))
        #expect(updated.head == head)
        #expect(cache.seed(of: "a") == 3)
        #expect(cache.updateHead(of: updated, to: reader.head))
    }

    @Test("The head of an entry that was removed or replaced is not updated")
    func updatesNothing() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.put("a", seed: 1)
        let reader = try #require(cache.find("a"))
        cache.put("a", seed: 2)
        #expect(!cache.updateHead(of: reader, to: reader.head))
        #expect(cache.seed(of: "a") == 2)
        cache.remove(CacheKey(url: "a"))
        #expect(!cache.updateHead(of: reader, to: reader.head))
        #expect(cache.seed(of: "a") == 0)
    }

    @Test("At most eight variants of a URL are stored, and a response without Vary replaces them")
    func variants() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        for number in 0..<10 {
            cache.put("a", seed: 20 + UInt64(number), language: "l\(number)", time: Int64(number))
        }
        #expect(cache.variants(of: CacheKey(url: "a")).count == 8)
        #expect(cache.seed(of: "a", language: "l0") == 0)
        #expect(cache.seed(of: "a", language: "l2") == 22)
        #expect(cache.seed(of: "a") == 29)
        cache.put("a", seed: 50, language: "l2", time: 100)
        #expect(cache.seed(of: "a", language: "l2") == 50)
        #expect(cache.variants(of: CacheKey(url: "a")).count == 8)
        cache.put("a", seed: 60, time: 200)
        #expect(try scene.entryFiles.count == 1)
        cache.put("a", seed: 61, language: "de", time: 300)
        #expect(try scene.entryFiles.count == 1)
        #expect(cache.seed(of: "a") == 61)
    }

    @Test("Another key with the same digest is a miss")
    func collisions() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.put("a", seed: 1)
        let name = CacheFile.entry(EntryName(digest: CacheDigest(CacheKey(url: "b")), slot: 0)).name
        try scene.write(try scene.contents(try #require(try scene.entryFiles.first)), to: name)
        #expect(cache.seed(of: "b") == 0)
        #expect(cache.seed(of: "a") == 1)
        cache.put("b", seed: 2)
        #expect(cache.seed(of: "b") == 2)
    }

    @Test("Entries are listed and verified, and damaged ones are removed")
    func verifies() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        for number in 1...5 { cache.put("u\(number)", seed: UInt64(number), count: number * 30_000) }
        var urls: [String] = []
        cache.forEachEntry { reader in
            urls.append(reader.head.key.url)
            return true
        }
        #expect(urls.sorted() == ["u1", "u2", "u3", "u4", "u5"])
        #expect(cache.verify() == (5, 450_000, 0))
        let body = try #require(try scene.entryFiles.first { $0.utf8.count > 34 })
        var bytes = try scene.contents(body)
        bytes[bytes.count - 1] ^= 1
        try scene.write(bytes, to: body)
        #expect(cache.verify().damaged == 1)
        #expect(cache.verify().whole == 4)
    }

    @Test(
        "A use that is noted after its entry was removed does not add the entry again",
        arguments: ["one key", "one variant", "all", "evicted"])
    func lateUse(_ removal: String) throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.load()
        cache.put("a")
        let reader = try #require(cache.variants(of: CacheKey(url: "a")).first)
        switch removal {
        case "one key": cache.remove(CacheKey(url: "a"))
        case "one variant": cache.remove(reader)
        case "all": cache.removeAll()
        default: cache.setLimit(1)
        }
        cache.noteUse(of: reader)
        #expect(cache.statistics.entryCount == 0)
    }

    @Test("An entry that another process removed does not count as evicted")
    func removedElsewhere() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.load()
        for url in ["a", "b"] { cache.put(url) }
        try scene.cache().remove(CacheKey(url: "a"))
        cache.setLimit(1)
        #expect(cache.statistics.entryCount == 0 && cache.statistics.evictions == 1)
    }

    @Test("Files that are not the cache's are not followed, counted or removed")
    func foreign() throws {
        let scene = try CacheDirectoryScene()
        let outside = try CacheDirectoryScene()
        try outside.write([9], to: "canary")
        let cache = try scene.cache(limit: 1 << 20)
        cache.put("a", seed: 1)
        let entry = try #require(try scene.entryFiles.first)
        let name = CacheFile.entry(EntryName(digest: CacheDigest(CacheKey(url: "b")), slot: 0)).name
        try FileManager.default.createSymbolicLink(
            atPath: "\(scene.path)/\(name)", withDestinationPath: "\(outside.path)/canary")
        try LinuxFileSystem().makeDirectory("\(scene.path)/\(String(entry.dropLast())+"5")")
        try LinuxFileSystem().makeDirectory("\(scene.path)/directory")
        try scene.write([1], to: "notes.txt")
        let next = try scene.cache(limit: 1 << 20)
        next.load()
        #expect(next.statistics.entryCount == 1)
        #expect(next.seed(of: "b") == 0)
        #expect(next.seed(of: "a") == 1)
        #expect(next.removeAll())
        #expect(try scene.names.filter { $0 != "lock" }.count == 4)
        next.put("b", seed: 2)
        #expect(next.seed(of: "b") == 2)
        #expect(try outside.contents("canary") == [9])
    }
}
