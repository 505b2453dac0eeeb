import MartletURL
import Martlet
import SystemPackage
import Testing

@testable import MartletCLI

@Suite("Status of one download")
struct DownloadTrackerTests {
    private func progress(_ bytes: UInt64, of total: UInt64?, received: UInt64? = nil) -> DownloadProgress {
        var progress = DownloadProgress()
        progress.completedByteCount = bytes
        progress.totalByteCount = total
        progress.receivedByteCount = received ?? bytes
        return progress
    }

    private let error = HTTPError(.connectionLost, phase: .receivingBody, message: "broken")

    @Test("A download is starting before the first byte and receiving after it")
    func starting() {
        var tracker = DownloadTracker(name: "f", start: .seconds(1))
        #expect(tracker.row(at: .seconds(1)).phase == .starting)
        tracker.note(progress(1000, of: 10_000), at: .seconds(2))
        let row = tracker.row(at: .seconds(2))
        #expect(row.phase == .receiving)
        #expect(row.rate == 1000)
        #expect(row.timeLeft == .seconds(9))
    }

    @Test("A start without any bytes is a stall, too")
    func stalledStart() {
        var tracker = DownloadTracker(name: "f", start: .zero)
        tracker.note(DownloadProgress(), at: .seconds(7))
        let row = tracker.row(at: .seconds(7))
        #expect(row.isStalled)
        #expect(row.stall == .seconds(7))
    }

    @Test("Bytes from an earlier run do not count for the rate")
    func resumed() {
        var tracker = DownloadTracker(name: "f", start: .zero)
        tracker.take(.started(resumedByteCount: 1 << 30), at: .zero)
        #expect(tracker.row(at: .zero).bytes == 1 << 30)
        tracker.note(progress(1 << 30 + 100, of: 2 << 30, received: 100), at: .seconds(1))
        #expect(tracker.row(at: .seconds(1)).rate == 100)
    }

    @Test("Ten seconds without bytes bring the rate to zero and remove the remaining time")
    func stall() {
        var tracker = DownloadTracker(name: "f", start: .zero)
        tracker.note(progress(10_000, of: 20_000), at: .seconds(1))
        var last = tracker.row(at: .seconds(1)).rate
        for second in 2...12 {
            tracker.note(progress(10_000, of: 20_000), at: .seconds(second))
            let row = tracker.row(at: .seconds(second))
            #expect(row.rate <= last)
            if second >= 4 { #expect(row.isStalled && row.timeLeft == nil) }
            last = row.rate
        }
        #expect(last == 0)
    }

    @Test("After a failure the download waits until the next attempt or the next byte")
    func waiting() {
        var tracker = DownloadTracker(name: "f", start: .zero)
        tracker.note(progress(10, of: 20), at: .seconds(1))
        tracker.take(.retrying(error, after: .seconds(5), failures: 2), at: .seconds(1))
        #expect(tracker.row(at: .seconds(2)).phase == .waiting(.seconds(4), failures: 2))
        #expect(tracker.row(at: .seconds(6)).phase == .receiving)
        tracker.note(progress(11, of: 20), at: .seconds(3))
        #expect(tracker.row(at: .seconds(3)).phase == .receiving)
    }

    @Test("Verification is never a stall, and a complete file has its final name")
    func verifying() throws {
        var tracker = DownloadTracker(name: "download", start: .zero)
        tracker.note(progress(20, of: 20), at: .seconds(1))
        tracker.take(.verifying, at: .seconds(1))
        let row = tracker.row(at: .seconds(30))
        #expect(row.phase == .verifying && !row.isStalled)
        tracker.take(
            .finished(
                DownloadResult(
                    path: "d/name.zip", byteCount: 20, resumedByteCount: 5, receivedByteCount: 25,
                    url: try HTTPURL("http://h/"))), at: .seconds(31))
        #expect(tracker.name == "name.zip")
        #expect(tracker.progress.receivedByteCount == 25 && tracker.progress.resumedByteCount == 5)
    }
}
