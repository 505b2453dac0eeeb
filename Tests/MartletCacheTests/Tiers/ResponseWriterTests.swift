import Foundation
import Glibc
import MartletCacheChild
import MartletStorage
import MartletTestSupport
import MartletWire
import Testing

@testable import MartletCache

@Suite("Writing a response to both tiers")
struct ResponseWriterTests {
    private func begin(_ store: ResponseStore, count: Int, expected: UInt64? = nil) throws -> ResponseWriter {
        let head = ResponseStore.head("a", seed: 5, count: count)
        return try #require(store.begin(head, expectedByteCount: expected, epoch: store.epoch))
    }

    @Test(
        "A body can be read from its beginning while it arrives, after it is stored and after it is discarded",
        arguments: [100, 20_000, 60_000, 400_000], [true, false])
    func readable(_ count: Int, _ isKnown: Bool) throws {
        let scene = try CacheDirectoryScene()
        let body = SampleResponse.body(seed: 5, count: count)
        for isStored in [true, false] {
            let store = ResponseStore(memoryLimit: 400_000, disk: try scene.cache())
            let writer = try begin(store, count: count, expected: isKnown ? UInt64(count) : nil)
            #expect(writer.readableByteCount == 0)
            #expect(try writer.read(at: 0, limit: 10).isEmpty)
            for start in stride(from: 0, to: count, by: 7001) {
                let end = min(count, start + 7001)
                #expect(writer.append(Array(body[start..<end])))
                #expect(writer.readableByteCount == UInt64(end))
                #expect(try writer.read(at: UInt64(start), limit: .max).first == body[start])
            }
            #expect(try writer.readable() == body)
            if isStored {
                #expect(writer.commit(trailers: nil)?.seed == 5)
                #expect(writer.isAlive)
            } else {
                writer.abandon()
                #expect(!writer.isAlive && writer.commit(trailers: nil) == nil)
            }
            #expect(try writer.readable() == body)
            #expect(try writer.read(at: UInt64(count), limit: 10).isEmpty)
            #expect(store.seed(of: "a") == 5)
        }
    }

    @Test(
        "A response that is withdrawn before or after it is stored is in neither tier",
        arguments: [100, 400_000], [true, false])
    func withdrawn(_ count: Int, _ isStored: Bool) throws {
        let scene = try CacheDirectoryScene()
        let stores = [
            ResponseStore(memoryLimit: 8 << 20, disk: try scene.cache()),
            ResponseStore(memoryLimit: 8 << 20, disk: nil),
        ]
        for store in stores {
            let writer = try begin(store, count: count)
            let body = SampleResponse.body(seed: 5, count: count)
            #expect(writer.append(body))
            if isStored { #expect(writer.commit(trailers: nil)?.seed == 5) }
            #expect(writer.withdraw() == isStored)
            #expect(!writer.isAlive && writer.commit(trailers: nil) == nil)
            #expect(store.seed(of: "a") == 0)
            #expect(try writer.readable() == body)
            // The withdrawal does not remove the entry that replaced it.
            store.put("a", seed: 6)
            #expect(!writer.withdraw() && store.seed(of: "a") == 6)
        }
    }

    @Test("A body that is shorter or longer than its announced length is in neither tier")
    func wrongLength() throws {
        let scene = try CacheDirectoryScene()
        let stores = [
            ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache()),
            ResponseStore(memoryLimit: 1 << 20, disk: nil),
        ]
        for store in stores {
            for expected in [99, 101] {
                let writer = try begin(store, count: 100, expected: UInt64(expected))
                #expect(writer.append(SampleResponse.body(seed: 5, count: 100)) == (expected == 101))
                #expect(writer.commit(trailers: nil) == nil && !writer.isAlive)
            }
            #expect(store.seed(of: "a") == 0)
        }
        #expect(try scene.entryFiles.isEmpty)
    }

    @Test("Trailers are stored in both tiers, and an empty body is stored")
    func trailers() throws {
        let scene = try CacheDirectoryScene()
        let store = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache())
        let writer = try begin(store, count: 0)
        let trailers = FieldBlock([("X-Sum", "1")])
        #expect(writer.commit(trailers: trailers)?.head.trailers == trailers)
        #expect(writer.commit(trailers: nil) == nil && writer.isAlive)
        store.trim(to: 0)
        #expect(store.find("a")?.head.trailers == trailers)
    }

    @Test("Without a disk a body that outgrows memory is rejected, and the received part stays readable")
    func outgrows() throws {
        let store = ResponseStore(memoryLimit: 80_000, disk: nil)
        let writer = try begin(store, count: 20_000)
        let body = SampleResponse.body(seed: 5, count: 20_000)
        #expect(writer.append(Array(body[..<9000])))
        #expect(!writer.append(Array(body[9000...])))
        #expect(!writer.isAlive && writer.commit(trailers: nil) == nil)
        #expect(try writer.readable() == Array(body[..<9000]))
        #expect(store.seed(of: "a") == 0)
    }

    @Test(
        "If the disk fails during a write, memory stores a small body, and a large one is discarded",
        arguments: [90_000, 300_000])
    func diskFails(_ count: Int) throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let store = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache(files: files))
        let writer = try begin(store, count: count)
        let body = SampleResponse.body(seed: 5, count: count)
        #expect(writer.append(Array(body[..<50_000])))
        files.fail(.init(.write, code: EIO))
        let isTaken = writer.append(Array(body[50_000...]))
        #expect(isTaken == (count < 131_072))
        #expect(try writer.readable() == Array(body[..<(isTaken ? count : 50_000)]))
        #expect((writer.commit(trailers: nil)?.seed == 5) == isTaken)
        #expect(store.seed(of: "a") == (isTaken ? 5 : 0))
    }

    @Test(
        "A body that outgrows memory moves to disk, and one that is too large for the disk stays in memory")
    func otherTier() throws {
        let scene = try CacheDirectoryScene()
        let disk = try scene.cache(limit: 256 << 10)
        let store = ResponseStore(memoryLimit: 1 << 20, disk: disk)
        let count = 100_000
        #expect(UInt64(count) > disk.bodyLimit)
        let writer = try begin(store, count: count, expected: UInt64(count))
        #expect(writer.append(SampleResponse.body(seed: 5, count: count)))
        #expect(writer.commit(trailers: nil)?.isInMemory == true)
        #expect(scene.events.isEmpty && store.seed(of: "a") == 5)
        let small = ResponseStore(memoryLimit: 80_000, disk: disk)
        let other = try begin(small, count: 20_000)
        #expect(other.append(SampleResponse.body(seed: 5, count: 20_000)))
        let stored = try #require(other.commit(trailers: nil))
        #expect(!stored.isInMemory && stored.seed == 5)
    }

    @Test("Releasing a replaced larger body frees its disk space")
    func letsGo() throws {
        let scene = try CacheDirectoryScene()
        let store = ResponseStore(memoryLimit: 0, disk: try scene.cache())
        for number in 0..<3 {
            let writer = try begin(store, count: 100_000, expected: 100_000)
            #expect(writer.append(SampleResponse.body(seed: 5, count: 100_000)))
            #expect(writer.commit(trailers: nil) != nil)
            #expect(try scene.entryFiles.count == 2)
            #expect(deletedFiles(in: scene) == (number == 0 ? 0 : 1))
            writer.releaseReplacedBody()
            #expect(deletedFiles(in: scene) == 0)
        }
    }

    /// Returns the number of files in the directory that this process has open after their removal.
    private func deletedFiles(in scene: CacheDirectoryScene) -> Int {
        let names = (try? LinuxFileSystem().names(inDirectory: "/proc/self/fd")) ?? []
        return names.count { name in
            let target =
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) ?? ""
            return target.hasPrefix(scene.path + "/") && target.hasSuffix(" (deleted)")
        }
    }
}
