import Martlet
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("When checkpoints come")
struct CheckpointTests {
    @Test("At first checkpoints come more often: no more than a fraction of the time so far is ever lost")
    func firstCheckpoints() throws {
        let file = SimulatedFile(byteCount: 200 << 20)
        var download = try SimulatedDownload(DownloadOptions(segments: 1)) { question, _ in
            try file.reply(question)
        }
        var times: [Double] = []
        while download.seconds < 20 {
            let before = download.checkpoints
            download.run(seconds: 0.02)
            if download.checkpoints > before { times.append(download.seconds) }
        }
        // The simulation looks at the clock every 200 ms.
        #expect((0.25...0.5).contains(try #require(times.first)))
        for (time, next) in zip(times, times.dropFirst()) {
            let wanted = min(2, max(0.25, time / 8))
            #expect((wanted - 0.03...wanted + 0.25).contains(next - time), "\(time), \(next)")
        }
        #expect((12...40).contains(times.count))
    }
}
