import Dispatch
import Foundation
import MartletCacheChild
import MartletStorage
import MartletTestSupport
import MartletWire
import Synchronization
import Testing

@testable import MartletCache

@Suite("Concurrent use of both tiers")
struct ResponseStoreRaceTests {
    /// The oldest valid version per URL, written before the invalidation ends and read before a lookup begins.
    private final class Versions: Sendable {
        private let state = Mutex((last: UInt64(0), floors: [Int: UInt64]()))

        /// Returns a version that is newer than all others.
        func next() -> UInt64 {
            state.withLock { state in
                state.last += 1
                return state.last
            }
        }

        /// Returns the version that every response to a URL must exceed.
        func floor(of number: Int) -> UInt64 { state.withLock { $0.floors[number] ?? 0 } }

        /// Records that all versions so far are invalidated.
        func raise(_ number: Int, to version: UInt64) {
            state.withLock { $0.floors[number] = max($0.floors[number] ?? 0, version) }
        }
    }

    @Test(
        "Eight concurrent users of the same URLs see no wrong body and none from before an invalidation",
        arguments: [true, false])
    func race(_ hasDisk: Bool) async throws {
        let scene = try CacheDirectoryScene()
        let disk = hasDisk ? try scene.cache(limit: 2 << 20) : nil
        let store = ResponseStore(memoryLimit: 200_000, disk: disk)
        let versions = Versions()
        let faults: [String] = await withTaskGroup(of: [String].self) { group in
            for worker in 0..<8 {
                group.addTask {
                    var faults: [String] = []
                    var state = UInt64(worker) * 7919 + 1
                    for _ in 0..<150 {
                        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                        let number = Int((state >> 33) % 20)
                        step(Int((state >> 45) % 8), number, store, versions, &faults)
                        await Task.yield()
                    }
                    return faults
                }
            }
            return await group.reduce(into: []) { $0 += $1 }
        }
        #expect(faults == [])
        for number in 0..<20 { store.invalidate(CacheKey(url: "u\(number)")) }
        store.flush()
        #expect(store.statistics.memory.entryCount == 0 && store.statistics.memory.byteCount == 0)
        if let disk {
            disk.load()
            #expect(try scene.entryFiles.isEmpty)
            #expect(try disk.statistics.byteCount == scene.allocated)
        }
    }

    /// The change that removes a response.
    enum Change: CaseIterable {
        case invalidate, remove, removeAll, replaceInMemory
    }

    @Test(
        "An entry that is found on disk during its removal is not promoted to memory",
        arguments: Change.allCases)
    func movingUp(_ change: Change) throws {
        let scene = try CacheDirectoryScene()
        let files = FaultyFileSystem()
        let store = ResponseStore(memoryLimit: 1 << 20, disk: try scene.cache(files: files))
        let key = CacheKey(url: "a")
        store.put("a", seed: 1)
        store.trim(to: 0)
        let old = try #require(store.all(key).first)
        let found = Mutex<[StoredResponse]>([])
        // The last moment at which the response can still be found.
        files.interrupt(.remove) {
            let isDone = DispatchSemaphore(value: 0)
            Thread.detachNewThread {
                found.withLock { $0 = store.all(key) }
                isDone.signal()
            }
            isDone.wait()
        }
        switch change {
        case .invalidate: store.invalidate(key)
        case .remove: store.remove(old)
        case .removeAll: store.removeAll()
        case .replaceInMemory:
            // Disk and memory differ, because one of the two is full.
            files.fill(after: 0)
            store.put("a", seed: 2, time: 2000)
        }
        let late = try #require(found.withLock { $0.first { $0.seed == 1 } })
        store.promote(late)
        #expect(store.seed(of: "a") == (change == .replaceInMemory ? 2 : 0))
    }

    private func step(
        _ kind: Int, _ number: Int, _ store: ResponseStore, _ versions: Versions, _ faults: inout [String]
    ) {
        let url = "u\(number)"
        switch kind {
        case 0, 1, 2:
            // The order of a request: first the epoch, and then the server's response.
            let epoch = store.epoch
            let version = versions.next()
            let count = Int(version % 3 == 0 ? 40_000 + version : 10 + version)
            let stored = store.put(url, seed: version, count: count, time: Int64(version), epoch: epoch)
            if let stored, stored.seed != version {
                faults.append("\(url) stored as another than \(version)")
            }
        case 3:
            let version = versions.next()
            store.invalidate(CacheKey(url: url))
            versions.raise(number, to: version)
        case 4:
            let epoch = store.epoch
            guard let found = store.find(url) else { return }
            var head = found.head
            head.fields.append(name: "X-News", value: "1")
            let updated = store.freshen(found, to: head, epoch: epoch)
            if let updated, updated.seed == nil { faults.append("\(url): a wrong body after a 304") }
        case 5 where number == 0: store.trim(to: 50_000)
        default:
            let floor = versions.floor(of: number)
            guard let found = store.find(url) else { return }
            guard let seed = found.seed else {
                faults.append("\(url): a wrong body")
                return
            }
            if seed < floor { faults.append("\(url): \(seed), which was invalidated by \(floor)") }
        }
    }
}
