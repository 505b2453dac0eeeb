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

    @Test("The file that arrives without Range can be resumed with it", arguments: [400, 403, 500, 503])
    func resumed(_ code: Int) throws {
        let file = SimulatedFile(byteCount: 3_000_000)
        var options = DownloadOptions()
        // No range is split further.
        options.takeoverThreshold = .seconds(60)
        func answer(_ rangeRequest: DownloadRequest, _ number: Int) throws -> SimulatedDownload.Reply {
            guard number > 1 else { return try status(code) }
            var reply = try file.reply(rangeRequest)
            if number == 2 { reply.cut = 1_000_000 }
            return reply
        }
        var download = try SimulatedDownload(options, reply: answer)
        download.run()
        #expect(download.isComplete && download.restarts.isEmpty)
        #expect(download.asked == ["bytes=0-8388607", "-", "bytes=1000000-2999999 if"])
        // The next run resumes from the bytes that are left when the retries are used up.
        options.retry.maximumRetries = 0
        var broken = try SimulatedDownload(options, reply: answer)
        broken.run()
        #expect(broken.error?.code == .connectionLost && broken.error?.resumableByteCount == 1_000_000)
    }

    @Test(
        "A server that rejects every range sends the whole file again, in the same run and in a later one",
        arguments: [403, 503])
    func rejectedAgain(_ code: Int) throws {
        let file = SimulatedFile(byteCount: 3_000_000)
        var download = try SimulatedDownload { rangeRequest, number in
            guard rangeRequest.range == nil else { return try status(code) }
            var reply = try file.reply(rangeRequest)
            if number == 2 { reply.cut = 1_000_000 }
            return reply
        }
        download.run()
        #expect(download.isComplete && download.restarts == [.rangesRejected] && download.asked.last == "-")
        let record = file.record(RangeSet([0..<1_000_000]), total: file.byteCount)
        var later = try SimulatedDownload(record: record) { rangeRequest, _ in
            rangeRequest.range == nil ? try file.reply(rangeRequest) : try status(code)
        }
        later.run()
        #expect(later.isComplete && later.restarts == [.rangesRejected] && later.asked.last == "-")
        #expect(later.disk == RangeSet([0..<file.byteCount]))
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
