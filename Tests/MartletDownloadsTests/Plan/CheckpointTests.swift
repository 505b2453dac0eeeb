import Martlet
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("When checkpoints come")
struct CheckpointTests {
    /// When checkpoints come within so many seconds, each of which takes so long.
    private func times(of time: Duration, within seconds: Double) throws -> [Double] {
        let file = SimulatedFile(byteCount: 400 << 20)
        var download = try SimulatedDownload(DownloadOptions(segments: 1)) { question, _ in
            try file.reply(question)
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

    @Test("At first checkpoints come more often: no more than a fraction of the time so far is ever lost")
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
        "A disk that is slow to sync does so for no more than a 16th of the time, up to the interval that is asked for",
        arguments: [50, 100, 1_000])
    func slowSyncs(_ milliseconds: Int) throws {
        let cost = Double(milliseconds) / 1_000
        let times = try times(of: .milliseconds(milliseconds), within: 40)
        let wanted = cost + min(2, 16 * cost)
        // How long they take is not known before the first is done.
        for (time, next) in zip(times, times.dropFirst()) where time > 0.5 {
            #expect((wanted - 0.03...wanted + 0.15).contains(next - time), "\(time), \(next)")
        }
        #expect(times.count >= 10)
    }
}
