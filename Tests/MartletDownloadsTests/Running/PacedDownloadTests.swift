import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletDownloads

@Suite("Downloads under a bandwidth limit")
struct PacedDownloadTests {
    @Test("Each byte of a file is requested once, however many connections are allowed", arguments: [true, false])
    func onceOnly(_ isOwnLimit: Bool) async throws {
        let version = RangeVersion(300_000, entityTag: "\"one\"")
        let rate = BandwidthRate.bytesPerSecond(300_000)
        try await RangeScene.with(
            RangeBehavior(version), configure: { if !isOwnLimit { $0.bandwidth.total.download = rate } }
        ) { scene in
            var options = RangeScene.options
            options.segments = 4
            options.takeoverThreshold = .milliseconds(100)
            if isOwnLimit { options.bandwidth = rate }
            let run = try await scene.run(options)
            #expect(run.requests.count == 1 && run.sentByteCount == 300_000, "\(run.log)")
            try await scene.expectOrder(after: run, versions: [version])
        }
    }
}
