import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletDownloads

@Suite("Progress and metrics of a download", .timeLimit(.minutes(10)))
struct ReceivedProgressTests {
    @Test("Bytes count as they arrive, before a block of them is written")
    func received() async throws {
        try await RangeScene.with(RangeBehavior(RangeVersion(4_000_000, entityTag: "\"one\""))) { scene in
            let options = RangeScene.options { $0.bandwidth = .bytesPerSecond(200_000) }
            let download = try scene.session.startDownload(scene.url, to: .file(scene.path), options: options)
            var last = DownloadProgress()
            for await progress in download.progress {
                #expect(progress.completedByteCount >= last.completedByteCount)
                #expect(progress.completedByteCount >= progress.writtenByteCount)
                last = progress
                if progress.completedByteCount > 0, progress.writtenByteCount == 0, progress.bytesPerSecond > 0 {
                    break
                }
            }
            #expect(last.completedByteCount > 0 && last.completedByteCount < 512 << 10)
            #expect(last.receivedByteCount >= last.completedByteCount)
            // After the run, the stored bytes count.
            await download.pause()
            let kept = download.progress.current
            #expect(kept.isFinished && kept.completedByteCount == kept.writtenByteCount)
            await download.cancel()
        }
    }

    @Test("Bytes in memory count once, and only within the range of their transfer")
    func waiting() {
        var plan = SegmentPlan(total: 100)
        let now = MonotonicTime(nanoseconds: 0)
        plan.claim(1, 0..<60, now: now)
        plan.claim(2, 60..<100, now: now)
        _ = plan.accept(1, 30, now: now)
        _ = plan.wrote(1, 0..<20)
        #expect(plan.receivedCount(waiting: [:]) == 30)
        #expect(plan.receivedCount(waiting: [1: 10, 2: 5, 7: 9]) == 45)
        #expect(plan.receivedCount(waiting: [1: .max, 2: .max]) == 100)
        // A second transfer races for the same bytes.
        plan.claim(3, 30..<60, rival: 1, now: now)
        #expect(plan.receivedCount(waiting: [1: 10, 3: 20]) == 50)
    }

    @Test("A result has the metrics of its run")
    func metrics() async throws {
        try await RangeScene.with(Samples.cutOnce()) { scene in
            let result = try await scene.session.download(
                scene.url, to: scene.path, options: RangeScene.options { $0.segments = 1 })
            let metrics = try #require(result.metrics)
            #expect(metrics.duration > .zero && metrics.requestCount == 2 && metrics.retryCount == 1)
            #expect(metrics.restartCount == 0 && metrics.connectionCount == 1)
        }
    }

    @Test("An existing file is an error, or the result without a request", arguments: [true, false])
    func existing(isFile: Bool) async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            try await scene.session.download(scene.url, to: scene.path, options: RangeScene.options)
            let count = scene.ranges.requests.count
            let error = await #expect(throws: HTTPError.self) {
                try await scene.session.download(scene.url, to: scene.path, options: RangeScene.options)
            }
            #expect(error?.code == .fileExists && error?.url?.path == "/\(RangeScene.name)")
            let options = RangeScene.options { $0.collision = .skip }
            let target: DownloadTarget = isFile ? .file(scene.path) : .directory(scene.directory.path)
            var last = DownloadProgress()
            let result = try await scene.session.download(scene.url, to: target, options: options) { last = $0 }
            #expect(last.fractionCompleted == 1 && last.isFinished)
            #expect(result.path == scene.path && result.byteCount == UInt64(Samples.one.byteCount))
            #expect(result.receivedByteCount == 0 && result.metrics == nil)
            if isFile { #expect(scene.ranges.requests.count == count) }
        }
    }

    @Test("A checksum of invalid digits fails the download before its first request", arguments: ["", "zz", "é", "00"])
    func invalidDigits(_ digits: String) async throws {
        try await RangeScene.with(RangeBehavior(Samples.one)) { scene in
            for checksum in [Checksum.sha256(digits), .sha512(digits), .sha1(digits), .md5(digits)] {
                let error = await #expect(throws: HTTPError.self) {
                    try await scene.session.download(scene.url, to: scene.path, options: .init(checksum: checksum))
                }
                #expect(error?.code == .invalidRequest && error?.message.contains("hexadecimal digits") == true)
            }
            #expect(scene.ranges.requests.isEmpty)
        }
    }
}
