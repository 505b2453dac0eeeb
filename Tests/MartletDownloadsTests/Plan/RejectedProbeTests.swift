import MartletCaching
import MartletCore
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("A server that rejects requests with Range")
struct RejectedProbeTests {
    private func status(_ status: Int) throws -> SimulatedDownload.Reply {
        SimulatedDownload.Reply(responseHead: try DownloadResponseHead.sample(status, byteCount: 0))
    }

    @Test(
        "The file is requested once more without Range",
        arguments: [400, 403, 405, 406, 412, 500, 501, 503], [0, 5])
    func rejected(_ code: Int, _ attempts: Int) throws {
        let file = SimulatedFile(byteCount: 20 << 20)
        var options = DownloadOptions()
        options.retry.maximumRetries = attempts
        var download = try SimulatedDownload(options) { rangeRequest, _ in
            rangeRequest.range == nil ? try file.reply(rangeRequest) : try status(code)
        }
        download.run()
        #expect(download.isComplete, "\(String(describing: download.outcome))")
        #expect(download.asked == ["bytes=0-8388607", "-"])
        #expect(download.disk == RangeSet([0..<file.byteCount]))
    }

    @Test("A transient status delays the request without Range")
    func waits() throws {
        let file = SimulatedFile(byteCount: 1_000)
        var download = try SimulatedDownload { rangeRequest, number in
            guard number == 1 else { return try file.reply(rangeRequest) }
            return SimulatedDownload.Reply(
                responseHead: try DownloadResponseHead.sample(503, [("Retry-After", "7")], byteCount: 0))
        }
        download.run()
        #expect(download.isComplete && download.waits == [.seconds(7)])
    }

    @Test("If the request without Range also fails, its status is final or transient as usual")
    func failsToo() throws {
        var final = try SimulatedDownload { _, _ in try status(403) }
        final.run()
        #expect(final.error?.code == .unacceptableStatus && final.asked == ["bytes=0-8388607", "-"])
        let file = SimulatedFile(byteCount: 60 << 20)
        var passing = try SimulatedDownload { rangeRequest, number in
            number < 4 ? try status(503) : try file.reply(rangeRequest)
        }
        passing.run()
        #expect(passing.isComplete && passing.waits.count == 3)
        // The rejection had another reason: ranges are requested again.
        #expect(passing.asked.prefix(4) == ["bytes=0-8388607", "-", "bytes=0-8388607", "bytes=0-8388607"])
        #expect(passing.rangeRequests.count > 5)
    }

    @Test("Any other status is not retried without Range", arguments: [401, 404, 410, 451])
    func other(_ code: Int) throws {
        var download = try SimulatedDownload { _, _ in try status(code) }
        download.run()
        #expect(download.error?.code == .unacceptableStatus && download.rangeRequests.count == 1)
    }

    @Test("The error of the first request is the status with its reason, and does not mention bytes")
    func words() async throws {
        for (code, words) in [(404, "404 Not Found"), (403, "403 Forbidden")] {
            let conduct = RangeBehavior(
                Samples.one, acts: [.answer(from: 1, .text("no\n", status: code))])
            try await RangeScene.with(conduct) { scene in
                let run = try await scene.run()
                #expect(run.error?.message == words, "\(run.log)")
            }
        }
    }
}
