import Martlet
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("Schedule of checkpoints")
struct CheckpointTests {
    /// The times of checkpoints within a number of seconds, if each checkpoint takes the given time.
    private func times(of time: Duration, within seconds: Double) throws -> [Double] {
        let file = SimulatedFile(byteCount: 400 << 20)
        var download = try SimulatedDownload(DownloadOptions(segments: 1)) { rangeRequest, _ in
            try file.reply(rangeRequest)
        }
        download.checkpointTime = time
        download.tickInterval = .milliseconds(50)
        var times: [Double] = []
        while download.seconds < seconds {
            let before = download.checkpoints
            download.run(seconds: 0.01, step: .milliseconds(10))
            if download.checkpoints > before { times.append(download.seconds) }
        }
        return times
    }

    @Test("Early checkpoints are more frequent, so that at most a fraction of the elapsed time is lost")
    func firstCheckpoints() throws {
        let times = try times(of: .zero, within: 40)
        #expect((0.1...0.25).contains(try #require(times.first)))
        for (time, next) in zip(times, times.dropFirst()) {
            let wanted = min(2, max(0.1, time / 64))
            #expect((wanted - 0.03...wanted + 0.1).contains(next - time), "\(time), \(next)")
        }
        #expect((100...200).contains(times.count))
    }

    @Test(
        "Checkpoints on a slow disk take at most a 16th of the time, up to the requested interval",
        arguments: [50, 100, 1_000])
    func slowSyncs(_ milliseconds: Int) throws {
        let cost = Double(milliseconds) / 1_000
        let times = try times(of: .milliseconds(milliseconds), within: 40)
        let wanted = cost + min(2, 16 * cost)
        // The duration is not known before the first one is done.
        for (time, next) in zip(times, times.dropFirst()) where time > 0.5 {
            #expect((wanted - 0.03...wanted + 0.15).contains(next - time), "\(time), \(next)")
        }
        #expect(times.count >= 10)
    }
}
