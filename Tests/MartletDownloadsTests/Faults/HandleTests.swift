import Foundation
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Downloads that are paused, resumed and cancelled through their handle at any moment.
@Suite("Handles of downloads")
struct HandleTests {
    private static let rounds = 100
    private static let version = RangeVersion(200_000, entityTag: "\"handled\"")

    /// Waits for a number of stored bytes, or the end of the download.
    private static func wait(for byteCount: UInt64, of download: Download) async {
        for await progress in download.progress {
            if progress.completedByteCount >= byteCount || progress.isFinished || download.state.hasEnded {
                return
            }
        }
    }

    /// Runs one download with random moments.
    private static func play(
        _ scene: RangeScene, _ name: String, _ generator: inout SeededGenerator
    ) async throws {
        var options = RangeScene.options
        options.retry.maximumRetries = 1_000
        let download = try scene.session.startDownload(
            scene.url, to: .file(scene.directory.file(name)), options: options)
        func own() throws -> [String] { try scene.directory.names().filter { $0.contains(name) } }
        func openFiles() -> [String] { scene.directory.openFiles().filter { $0.contains(name) } }
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let moment = UInt64.random(in: 0...version.byteCount, using: &generator)
            if Bool.random(using: &generator) { await wait(for: moment, of: download) }
            await download.pause()
            #expect(openFiles().isEmpty)
            if case .finished = download.state { break }
            guard case .paused = download.state else {
                Issue.record("paused, and \(download.state)")
                return
            }
            #expect(try !own().contains(name))
            try await download.resume()
        }
        if Int.random(in: 0..<3, using: &generator) == 0 {
            let moment = UInt64.random(in: 0...version.byteCount, using: &generator)
            if Bool.random(using: &generator) { await wait(for: moment, of: download) }
            await download.cancel()
            #expect(openFiles().isEmpty)
            if case .finished = download.state {} else { #expect(try own().isEmpty) }
        } else {
            let result = try await download.value
            #expect(result.byteCount == version.byteCount)
        }
        if case .finished = download.state {
            #expect(try scene.directory.version(of: name, among: [version]) == 0)
            #expect(try own() == [name])
        }
    }

    @Test("A file paused, resumed and cancelled at random moments is complete or absent")
    func randomMoments() async throws {
        let seed = UInt64.random(in: 0 ... .max)
        let conduct = RangeBehavior(
            HandleTests.version,
            acts: [
                RangeResponseOverride(on: { $0.number % 3 == 0 }) { answer in
                    answer.fault = OriginFault(.close, afterBodyBytes: UInt64(answer.body.count) / 2)
                }
            ]
        ).with { $0.pace = RangePace(2_000_000) }
        try await RangeScene.with(conduct) { scene async throws in
            await withTaskGroup(of: Void.self) { group in
                for worker in 0..<4 as Range<UInt64> {
                    group.addTask {
                        var generator = SeededGenerator(seed: seed, stream: worker)
                        for round in 0..<HandleTests.rounds / 4 {
                            do {
                                try await HandleTests.play(scene, "\(worker)-\(round).bin", &generator)
                            } catch {
                                Issue.record("round \(round) of \(worker), seed \(seed): \(error)")
                            }
                        }
                    }
                }
            }
            #expect(try scene.directory.parts().isEmpty, "seed \(seed)")
        }
    }

    @Test("Pausing keeps the received bytes, and resuming requests only the others")
    func pauseAndResume() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.hold(request: 1, after: Samples.cut, "middle")])
        try await RangeScene.with(conduct) { scene in
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: RangeScene.options)
            try await scene.ranges.signals.wait(for: "middle")
            await HandleTests.wait(for: Samples.cut, of: download)
            await download.pause()
            #expect(scene.directory.openFiles().isEmpty)
            #expect(scene.session.poolStatus.leased == 0)
            try await download.resume()
            let result = try await download.value
            #expect(result.resumedByteCount == Samples.cut)
            #expect(scene.ranges.requests.last?.start == Samples.cut)
            #expect(scene.ranges.requests.last?.ifRange == "\"one\"")
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
        }
    }

    @Test("Cancelling removes all files, except a complete one")
    func cancelled() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.hold(request: 1, after: Samples.cut, "middle")])
        try await RangeScene.with(conduct) { scene in
            let first = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: RangeScene.options)
            try await scene.ranges.signals.wait(for: "middle")
            await first.cancel()
            #expect(try scene.directory.names().isEmpty)
            #expect(scene.directory.openFiles().isEmpty)
            await #expect(throws: CancellationError.self) { try await first.value }
            await #expect(throws: HTTPError.self) { try await first.resume() }
            let second = try scene.session.startDownload(scene.url, to: .file(scene.path))
            _ = try await second.value
            await second.cancel()
            #expect(try scene.directory.names() == [RangeScene.name])
        }
    }

    @Test("Cancelling a listed call of a download ends the download and keeps the bytes for the next one")
    func cancelledCall() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.hold(request: 1, after: Samples.cut, "middle")])
        try await RangeScene.with(conduct) { scene in
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: RangeScene.options)
            try await scene.ranges.signals.wait(for: "middle")
            await HandleTests.wait(for: Samples.cut, of: download)
            let count = scene.ranges.requests.count
            for call in await scene.session.tasks { call.cancel() }
            await #expect(throws: CancellationError.self) { try await download.value }
            #expect(scene.ranges.requests.count == count)
            #expect(scene.session.runningCallCount == 0)
            #expect(try !scene.directory.names().contains(RangeScene.name))
            #expect(try scene.directory.names().contains { $0.hasSuffix(PartNames.partSuffix) })
        }
    }

    @Test("Cancelling a listed call of a managed download fails the download, which can be resumed")
    func cancelledManagedCall() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.hold(request: 1, after: Samples.cut, "middle")])
        try await RangeScene.with(conduct) { scene in
            let manager = try await DownloadManager(session: scene.session, directory: scene.directory.file("queue"))
            let id = try await manager.add(scene.url, to: scene.path, options: RangeScene.options)
            let download = try #require(manager.download(id))
            try await scene.ranges.signals.wait(for: "middle")
            await HandleTests.wait(for: Samples.cut, of: download)
            for call in await scene.session.tasks { call.cancel() }
            let error = await #expect(throws: HTTPError.self) { try await download.value }
            #expect(error?.code == .systemFailed)
            #expect(error?.message.contains("was cancelled") == true)
            #expect(error?.message.hasSuffix("; resume it") == true)
            #expect(try scene.directory.names().contains { $0.hasSuffix(PartNames.partSuffix) })
            try await download.resume()
            #expect(try await download.value.resumedByteCount == Samples.cut)
            #expect(try scene.directory.version(of: RangeScene.name, among: [Samples.one]) == 0)
            await manager.close()
        }
    }

    @Test("A cancelled task ends its download, closes all files, and keeps the bytes for the next one")
    func cancelledTask() async throws {
        let conduct = RangeBehavior(Samples.one, acts: [.hold(request: 1, after: Samples.cut, "middle")])
        try await RangeScene.with(conduct) { scene in
            let task = Task {
                try await scene.session.download(
                    scene.url, to: scene.path, options: RangeScene.options)
            }
            try await scene.ranges.signals.wait(for: "middle")
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(await eventually { scene.directory.openFiles().isEmpty })
            #expect(try !scene.directory.names().contains(RangeScene.name))
            scene.ranges.play(RangeBehavior(Samples.one))
            let run = try await scene.run()
            #expect((run.value?.resumedByteCount ?? .max) <= Samples.cut, "\(run.log)")
            try await scene.expectOrder(after: run, versions: [Samples.one])
        }
    }

    @Test("A progress consumer that never returns does not slow a download")
    func slowConsumer() async throws {
        try await RangeScene.with(RangeBehavior(RangeVersion(3_000_000, entityTag: "\"p\""))) { scene in
            let download = try scene.session.startDownload(
                scene.url, to: .file(scene.path), options: RangeScene.options)
            var progress = download.progress.makeAsyncIterator()
            _ = await progress.next()
            let result = try await download.value
            #expect(result.byteCount == 3_000_000)
            let last = await progress.next()
            #expect(last?.completedByteCount == 3_000_000)
            #expect(last?.isFinished == true)
            #expect(last?.fractionCompleted == 1)
        }
    }
}
