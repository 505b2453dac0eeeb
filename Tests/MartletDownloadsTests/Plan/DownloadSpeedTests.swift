import MartletCaching
import MartletCore
import MartletPool
import MartletDownloads
import MartletTestSupport
import MartletTransport
import Testing

@Suite("Speed of a download on a simulated line")
struct DownloadSpeedTests {
    private static let total: UInt64 = 200_000_000

    /// Downloads a file at 5 MB/s per connection, unless specified.
    private func run(
        segments: Int, speed: @escaping (UInt64, SimulatedDownload) -> Double = { _, _ in 5e6 }
    ) throws -> SimulatedDownload {
        let file = SimulatedFile(byteCount: DownloadSpeedTests.total)
        var options = DownloadOptions()
        options.segments = segments
        var download = try SimulatedDownload(options) { rangeRequest, _ in try file.reply(rangeRequest) }
        download.speed = speed
        download.run(seconds: 400)
        #expect(download.isComplete)
        #expect(download.disk == RangeSet([0..<DownloadSpeedTests.total]))
        return download
    }

    @Test("Four connections at 5 MB/s each are 3.5 times as fast as one")
    func fourConnections() throws {
        let one = try run(segments: 1)
        let four = try run(segments: 4)
        #expect(one.seconds / four.seconds >= 3.5, "\(one.seconds) s and \(four.seconds) s")
    }

    @Test("One connection that falls to 1 % halfway costs at most 30 %", arguments: [0.01, 0.001, 0])
    func throttled(_ factor: Double) throws {
        let free = try run(segments: 4)
        var victim: UInt64?
        let slow = try run(segments: 4) { id, download in
            if victim == nil,
                download.machine.plan.map({ $0.writtenCount > DownloadSpeedTests.total / 2 }) == true
            {
                victim = id
            }
            return id == victim ? 5e6 * factor : 5e6
        }
        #expect(victim != nil)
        #expect(slow.seconds <= 1.3 * free.seconds, "\(slow.seconds) s, and \(free.seconds) s without")
    }

    @Test(
        "Under a bandwidth limit no connection is added, and none takes over another's range"
    )
    func heldBack() throws {
        let file = SimulatedFile(byteCount: 40_000_000)
        func run(_ hold: @escaping (SimulatedDownload) -> BandwidthThrottling) throws -> SimulatedDownload {
            var options = DownloadOptions()
            options.segments = 4
            var download = try SimulatedDownload(options) { rangeRequest, _ in try file.reply(rangeRequest) }
            download.speed = { id, download in
                2e6 / Double(max(1, download.activeCount)) * (id % 2 == 0 ? 0.25 : 1.75)
            }
            download.hold = hold
            download.run()
            #expect(download.isComplete)
            return download
        }
        func askedByteCount(_ download: SimulatedDownload) -> UInt64 {
            download.rangeRequests.reduce(0) {
                $0 + min($1.range?.upperBound ?? 0, file.byteCount) - ($1.range?.lowerBound ?? 0)
            }
        }
        let held = try run { _ in .held }
        #expect(askedByteCount(held) == file.byteCount)
        let free = try run { _ in .free }
        #expect(askedByteCount(free) > file.byteCount)
    }

    @Test("One stalled connection of 64 does not delay the others")
    func manyConnections() throws {
        let free = try run(segments: 64)
        let slow = try run(segments: 64) { id, _ in id == 5 ? 0 : 5e6 }
        #expect(slow.seconds <= 1.3 * free.seconds + 1, "\(slow.seconds) s, and \(free.seconds) s without")
    }

    @Test("Only a small part of the file is received twice in races")
    func wasted() throws {
        let download = try run(segments: 4)
        let surplus = download.machine.receivedByteCount - DownloadSpeedTests.total
        #expect(surplus <= 2 << 20, "\(surplus) bytes")
    }
}
