import Glibc
import Foundation
import MartletCacheChild
import MartletStorage
import MartletTestSupport
import Testing

@testable import MartletCache

@Suite("A cache on a failing disk")
struct DiskCacheFaultTests {
    @Test(
        "Each fault leads to a miss, an old or a new body, and the cache recovers",
        arguments: FaultyFileSystem.Call.allCases, [EIO, ENOSPC, EMFILE, EROFS])
    func failing(_ call: FaultyFileSystem.Call, _ code: Int32) throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let cache = try scene.cache(files: files)
        for (url, seed, count) in [("small", 1, 100), ("large", 2, 100_000), ("gone", 3, 100)] {
            cache.put(url, seed: UInt64(seed), count: count)
        }
        files.fail(.init(call, code: code))
        cache.put("small", seed: 11, count: 200)
        cache.put("large", seed: 12, count: 90_000)
        cache.remove(CacheKey(url: "gone"))
        cache.saveIndex()
        cache.load()
        let small = cache.seed(of: "small")
        let large = cache.seed(of: "large")
        #expect(
            [0, 1, 11].contains(small) && [0, 2, 12].contains(large), "\(String(describing: (small, large)))")
        #expect(cache.seed(of: "gone") == 0)
        files.mend()
        #expect(cache.seed(of: "gone") == 0)
        #expect(cache.put("small", seed: 21, count: 100))
        #expect(cache.put("large", seed: 22, count: 100_000))
        #expect(cache.seed(of: "small") == 21)
        #expect(cache.seed(of: "large") == 22)
        cache.load()
        #expect(try cache.statistics.byteCount == scene.allocated)
        let spoke = scene.events.contains { if case .unavailable = $0 { true } else { false } }
        #expect(spoke == scene.events.contains(.recovered))
    }

    @Test("Short reads and writes change nothing")
    func shortPieces() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        files.limitPieces(to: 1000)
        let cache = try scene.cache(files: files)
        #expect(cache.put("a", seed: 4, count: 100_000))
        #expect(cache.put("b", seed: 5, count: 3000))
        #expect(cache.seed(of: "a") == 4)
        #expect(cache.seed(of: "b") == 5)
    }

    @Test("A disk that is full at any byte retains the old entry and no partial one")
    func full() async throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let cache = try scene.cache(files: files)
        cache.put("a", seed: 1, count: 40_000)
        var stored: UInt64 = 1
        var rejections = 0
        for room in Array(stride(from: 0, to: 45_000, by: 900))
            + Array(stride(from: 40_900, to: 41_600, by: 7))
        {
            await Task.yield()
            files.fill(after: UInt64(room))
            let seed = UInt64(room) + 2
            if cache.put("a", seed: seed, count: 40_000) { stored = seed } else { rejections += 1 }
            #expect(cache.seed(of: "a") == stored, "\(room) bytes of room")
            files.mend()
        }
        #expect(rejections > 40)
        #expect(stored > 1)
        cache.load()
        #expect(try scene.entryFiles.count == 2)
    }

    @Test("File space is preallocated for a large body and not for a small one")
    func settingAside() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let cache = try scene.cache(files: files)
        files.fail(.init(.allocate, code: EIO))
        #expect(cache.put("short", seed: 1, count: 1_000_000))
        #expect(!cache.put("long", seed: 2, count: 1_100_000))
        #expect(cache.seed(of: "short") == 1 && cache.seed(of: "long") == 0)
        #expect(try cache.statistics.byteCount == scene.allocated)
    }

    @Test("Variants that could not be removed stay misses when another one is stored")
    func hiddenVariants() throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let cache = try scene.cache(files: files)
        cache.put("a", seed: 1, language: "en")
        cache.put("a", seed: 2, language: "fr")
        files.fail(.init(.remove, code: EROFS))
        cache.remove(CacheKey(url: "a"))
        #expect(cache.seed(of: "a", language: "fr") == 0)
        files.mend()
        cache.put("a", seed: 3, language: "en")
        #expect(cache.seed(of: "a", language: "en") == 3)
        #expect(cache.seed(of: "a", language: "fr") == 0)
        #expect(try cache.statistics.byteCount == scene.allocated)
    }

    @Test("A removed directory is a miss and is created again for the next entry")
    func vanishing() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.put("a", seed: 1)
        cache.load()
        try FileManager.default.removeItem(atPath: scene.path)
        #expect(cache.seed(of: "a") == 0)
        #expect(cache.put("b", seed: 2))
        #expect(cache.seed(of: "b") == 2)
        #expect(try LinuxFileSystem().status(at: scene.path).access.isReadableByOthers == false)
        #expect(try cache.statistics.byteCount == scene.allocated)
    }

    @Test("A file instead of the directory makes each lookup a miss until it is a directory")
    func file() throws {
        let scene = try CacheDirectoryScene()
        try FileManager.default.removeItem(atPath: scene.path)
        try Data([1]).write(to: URL(fileURLWithPath: scene.path))
        let cache = try scene.cache()
        #expect(!cache.put("a"))
        #expect(cache.seed(of: "a") == 0)
        #expect(
            scene.events.first
                == .unavailable(StorageError(operation: "lstat", path: scene.path + "/.", code: ENOTDIR)))
        try FileManager.default.removeItem(atPath: scene.path)
        #expect(cache.put("a", seed: 3))
        #expect(cache.seed(of: "a") == 3)
        #expect(scene.events.last == .recovered)
    }

    @Test("A directory of another user, or one that others can access, is rejected")
    func access() throws {
        let scene = try CacheDirectoryScene()
        for mode in [0o750, 0o705, 0o720, 0o702] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: scene.path)
            #expect(throws: CacheDirectoryError.accessibleByOthers(path: scene.path)) { try scene.cache() }
        }
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: scene.path)
        _ = try scene.cache()
        var other = "/usr"
        if geteuid() == 0 {
            try FileManager.default.setAttributes([.ownerAccountID: 4242], ofItemAtPath: scene.path)
            other = scene.path
        }
        #expect(throws: CacheDirectoryError.ownedByAnotherUser(path: other)) {
            try DiskCache(directory: other, limit: 1 << 20)
        }
    }

    @Test("Files are private to their owner, and missing parent directories are created")
    func modes() throws {
        let scene = try CacheDirectoryScene()
        let cache = try DiskCache(directory: scene.path + "/a/b", limit: 1 << 20)
        cache.put("a", count: 100_000)
        cache.saveIndex()
        let files = LinuxFileSystem()
        let names = try files.names(inDirectory: scene.path + "/a/b")
        #expect(names.count == 4)
        for name in names {
            let access = try files.status(at: "\(scene.path)/a/b/\(name)").access
            #expect(!access.isReadableByOthers && !access.isWritableByOthers)
        }
    }

    @Test(
        "A body file that is truncated, longer, corrupted or missing delivers no wrong byte, and its entry is removed"
    )
    func damagedBody() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        for damage in 0..<5 {
            cache.put("a", seed: 7, count: 150_000)
            let name = try #require(try scene.entryFiles.first { $0.utf8.count > 34 })
            var bytes = try scene.contents(name)
            switch damage {
            case 0: bytes.removeLast()
            case 1: bytes.append(0)
            case 2: bytes[0] ^= 0x80
            case 3: bytes[149_999] ^= 1
            default: bytes = []
            }
            try scene.write(bytes, to: name)
            if damage == 4 { try LinuxFileSystem().remove("\(scene.path)/\(name)") }
            if damage == 3 {
                // Complete blocks before the damage are readable, and reading the damaged block fails.
                let reader = try #require(cache.find("a"))
                #expect(try reader.read(at: 0, limit: 65_536) == Array(bytes[..<65_536]))
                #expect(throws: EntryFormatError.checksum) { try reader.read(at: 131_072, limit: 65_536) }
            }
            #expect(cache.seed(of: "a") == 0)
            #expect(try scene.entryFiles.isEmpty)
        }
        #expect(cache.statistics.damaged == 5)
        cache.load()
        #expect(try cache.statistics.byteCount == scene.allocated)
    }

    @Test("An entry file that is damaged, truncated or of a newer version is a miss and is removed")
    func damagedEntry() throws {
        let scene = try CacheDirectoryScene()
        let cache = try scene.cache()
        cache.put("a", seed: 7, count: 50)
        let name = try #require(try scene.entryFiles.first)
        let whole = try scene.contents(name)
        for place in 0..<whole.count {
            var bytes = whole
            if place % 2 == 0 { bytes[place] ^= 0x10 } else { bytes.removeLast(whole.count - place) }
            try scene.write(bytes, to: name)
            #expect(cache.seed(of: "a") == 0, "byte \(place)")
            #expect(try scene.entryFiles.isEmpty)
        }
        try scene.write(whole, to: name)
        #expect(cache.seed(of: "a") == 7)
    }

    @Test("A store that stops at any call leaves the old or the new body, and the next process cleans up")
    func stops() async throws {
        var calls = 0
        while calls < 400 {
            await Task.yield()
            let scene = try CacheDirectoryScene()
            do {
                let cache = try scene.cache()
                cache.put("large", seed: 1, count: 70_000)
                cache.put("small", seed: 2, count: 100)
            }
            let files = FaultyFileSystem()
            files.stop(after: calls)
            do {
                let cache = try scene.cache(files: files)
                cache.put("large", seed: 11, count: 80_000)
                cache.put("small", seed: 12, count: 200)
                cache.saveIndex()
            }
            let isDone = files.count() < calls
            let cache = try scene.cache()
            #expect([1, 11].contains(cache.seed(of: "large")), "stopped after \(calls) calls")
            #expect([2, 12].contains(cache.seed(of: "small")), "stopped after \(calls) calls")
            cache.load()
            #expect(try scene.entryFiles.count == 3, "stopped after \(calls) calls")
            cache.load()
            #expect(try cache.statistics.byteCount == scene.allocated)
            if isDone { break }
            calls += 1
        }
        #expect(calls > 30 && calls < 400)
    }
}
