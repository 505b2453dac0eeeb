import Martlet
import MartletDownloads
import MartletStorage
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

@Suite("Concurrent operations on downloads", .timeLimit(.minutes(20)))
struct DownloadManagerRaceTests {
    /// The current manager, which may be closed and reopened.
    private final class Present: Sendable {
        private let manager: Mutex<DownloadManager>

        init(_ manager: DownloadManager) {
            self.manager = Mutex(manager)
        }

        var value: DownloadManager { manager.withLock { $0 } }

        func change(to next: DownloadManager) {
            let old = manager.withLock { manager in
                defer { manager = next }
                return manager
            }
            _ = consume old
        }
    }

    @Test(
        "Each of 1,000 random operations, four at a time, leaves every download in one valid state",
        arguments: [1, 2] as [UInt64])
    func random(_ seed: UInt64) async throws {
        let scene = QueueScene()
        var random = SeededGenerator(seed: seed)
        let present = Present(try await scene.manager())
        var names: [String] = []
        for round in 0..<125 {
            if round % 40 == 39 {
                await present.value.close()
                present.change(to: try await scene.manager())
            }
            let fresh = "\(round)"
            names.append(fresh)
            let recent = Array(names.suffix(12))
            let numbers = (0..<8).map { _ in random.next() }
            await withTaskGroup(of: Void.self) { group in
                for (place, number) in numbers.enumerated() {
                    if place >= 4 { await group.next() }
                    group.addTask {
                        var random = SeededGenerator(seed: number)
                        if place == 0 {
                            _ = try? await scene.add(
                                fresh, to: present.value, host: "h\(number % 3).example")
                        } else {
                            await Self.act(scene, present.value, recent, &random)
                        }
                    }
                }
            }
        }
        let manager = present.value
        await manager.setLimits(DownloadLimits(concurrentFiles: 9, perHost: 9))
        scene.downloads.endAll(.finish)
        await manager.resumeAll()
        for id in manager.ids { try? await manager.resume(id) }
        _ = try await manager.allFinished
        #expect(scene.downloads.faults == [], "seed \(seed)")
        #expect(scene.downloads.most.running <= 4 || scene.downloads.most.running <= 9, "seed \(seed)")
        let files = Set(manager.ids.map { "\($0).item" })
        #expect(Set(try scene.names) == files, "seed \(seed)")
        for id in manager.ids { #expect(manager.word(id) == "finished", "seed \(seed), \(id)") }
        for name in names {
            let record = scene.downloads.record(name)
            #expect(!record.isRunning, "seed \(seed), \(name)")
            // A finished file is never removed.
            #expect(!(record.isFinished && record.kept == 0), "seed \(seed), \(name)")
        }
        await manager.close()
        let next = try await scene.manager()
        _ = try await next.allFinished
        #expect(next.ids == manager.ids, "seed \(seed)")
        await next.close()
    }

    private static func act(
        _ scene: QueueScene, _ manager: DownloadManager, _ names: [String], _ random: inout SeededGenerator
    ) async {
        guard let id = manager.ids.suffix(12).randomElement(using: &random),
            let name = names.randomElement(using: &random)
        else { return }
        switch Int.random(in: 0..<16, using: &random) {
        case 0, 1: await manager.pause(id)
        case 2, 3, 4: try? await manager.resume(id)
        case 5: await manager.download(id)?.cancel()
        case 6: try? await manager.setPriority(.allCases.randomElement(using: &random) ?? .low, of: id)
        case 7:
            await manager.setLimits(
                DownloadLimits(
                    concurrentFiles: .random(in: 1...4, using: &random),
                    perHost: .random(in: 1...2, using: &random)))
        case 8: scene.downloads.end(name, .fail(.connectionLost))
        case 9: await manager.pauseAll()
        case 10: await manager.resumeAll()
        case 11: try? await manager.resume(id, from: "https://new.example/moved")
        case 12:
            let task = Task { await manager.pause(id) }
            task.cancel()
            await task.value
        default: scene.downloads.end(name, .finish)
        }
    }

    @Test("A concurrent pause, cancellation and end leave the whole file or no file", arguments: 0..<40)
    func oneMoment(_ round: Int) async throws {
        let scene = QueueScene()
        let manager = try await scene.manager()
        let id = try await scene.add("1", to: manager)
        await scene.downloads.run("1")
        await withTaskGroup(of: Void.self) { group in
            let acts: [@Sendable () async -> Void] = [
                { scene.downloads.end("1", round % 2 == 0 ? .finish : .fail(.connectionLost)) },
                { await manager.pause(id) }, { await manager.cancel(id) }, { await manager.pause(id) },
            ]
            for index in 0..<4 { group.addTask { await acts[(index + round / 2) % 4]() } }
        }
        _ = try await manager.allFinished
        let record = scene.downloads.record("1")
        if record.isFinished {
            #expect(manager.word(id) == "finished" && record.discards == 0)
        } else {
            #expect(manager.word(id) == "unknown" && record.discards == 1)
            #expect(try scene.names.isEmpty)
        }
        await manager.close()
    }

    @Test(
        "Closing, releasing and adding concurrently never trap, and lose no added download",
        arguments: 0..<20)
    func closing(_ round: Int) async throws {
        let scene = QueueScene()
        var manager: DownloadManager? = try await scene.manager()
        let added = Shared<[DownloadID]>([])
        await withTaskGroup(of: Void.self) { [manager] group in
            guard let manager else { return }
            for name in 0..<6 {
                group.addTask {
                    guard let id = try? await scene.add("\(name)", to: manager) else { return }
                    added.withLock { $0.append(id) }
                }
            }
            if round % 2 == 0 { group.addTask { await manager.close() } }
        }
        manager = nil
        let next = try await scene.nextManager()
        #expect(added.withLock { $0.sorted() } == next.ids)
        await next.close()
        #expect(scene.downloads.faults == [])
    }
}
