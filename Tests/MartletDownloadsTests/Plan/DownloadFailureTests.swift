import Martlet
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("Failures of a download")
struct DownloadFailureTests {
    private func lost() -> SimulatedDownload.Reply { SimulatedDownload.Reply() }

    private func status(
        _ status: Int, _ fields: [(String, String)] = [], from url: String = "http://files.example/a.bin"
    ) throws -> SimulatedDownload.Reply {
        SimulatedDownload.Reply(
            responseHead: try DownloadResponseHead.sample(status, fields, byteCount: 0, from: url))
    }

    @Test(
        "The retry budget counts failures since the last byte, so progress resets it"
    )
    func budget() throws {
        let file = SimulatedFile(byteCount: 1_000_000)
        var ahead = try SimulatedDownload { rangeRequest, _ in
            var reply = try file.reply(rangeRequest)
            reply.cut = min(reply.byteCount, 20_000)
            return reply
        }
        ahead.run()
        #expect(ahead.isComplete && ahead.rangeRequests.count >= 50 && ahead.restarts.isEmpty)
        #expect(Set(ahead.waits) == [.milliseconds(250)])
        var stuck = try SimulatedDownload { _, _ in lost() }
        stuck.run()
        #expect(stuck.error?.code == .connectionLost && stuck.rangeRequests.count == 6)
        #expect(stuck.waits == [250, 500, 1_000, 2_000, 4_000].map { Duration.milliseconds($0) })
    }

    @Test("There are as many retries without a new byte as the options allow", arguments: [-1, 0, 1, 3])
    func retryCount(_ limit: Int) throws {
        var options = DownloadOptions()
        options.retry.maximumRetries = limit
        var download = try SimulatedDownload(options) { _, _ in lost() }
        download.run()
        #expect(download.error?.code == .connectionLost)
        #expect(download.waits.count == max(0, limit) && download.rangeRequests.count == max(0, limit) + 1)
    }

    @Test("A body without a byte is not progress")
    func emptyResponses() throws {
        let file = SimulatedFile(byteCount: 1_000_000)
        var download = try SimulatedDownload { rangeRequest, number in
            var reply = try file.reply(rangeRequest)
            reply.cut = number == 1 ? 1_000 : 0
            return reply
        }
        download.run()
        #expect(download.error?.code == .connectionLost && download.rangeRequests.count == 6)
        #expect(download.error?.resumableByteCount == 1_000)
        #expect(download.error?.message.contains("bytes are kept") == false)
        #expect(download.error?.description.contains("; 1000 bytes are kept") == true)
        // A body that ends normally does not change that.
        var short = try SimulatedDownload(record: file.record(RangeSet([0..<1_000]), total: 1_000_000)) {
            rangeRequest, _ in
            var reply = try file.reply(rangeRequest)
            reply.byteCount = 0
            return reply
        }
        short.run()
        #expect(short.error?.code == .truncated && short.rangeRequests.count == 6)
    }

    @Test("503 with Retry-After is retried after that delay, up to the limit")
    func unavailable() throws {
        let file = SimulatedFile(byteCount: 1_000)
        var download = try SimulatedDownload { rangeRequest, number in
            switch number {
            case 1: try status(503, [("Retry-After", "7")])
            case 2: try status(429, [("Retry-After", "1000000000")])
            case 3: try status(503, [("Retry-After", "garbage")])
            default: try file.reply(rangeRequest)
            }
        }
        download.run()
        #expect(download.isComplete && download.waits == [.seconds(7), .seconds(120), .seconds(1)])
    }

    @Test("503 for one connection too many reduces the connections and fails nothing")
    func tooMany() throws {
        let file = SimulatedFile(byteCount: 100 << 20)
        var most = 0
        let counter = Counter()
        var download = try SimulatedDownload { rangeRequest, number in
            guard counter.served.count < 2 else {
                counter.rejected += 1
                return try status(503)
            }
            counter.served.insert(rangeRequest.id)
            return try file.reply(rangeRequest)
        }
        while download.outcome == nil, download.seconds < 600 {
            download.run(seconds: 0.02)
            counter.served.formIntersection(download.machine.transfers.keys)
            most = max(most, download.machine.receiving.count)
        }
        #expect(download.isComplete && most == 2)
        #expect((1...6).contains(counter.rejected), "\(counter.rejected)")
    }

    @Test(
        "A server that allows one connection may reject the others with any response, and the first one completes",
        arguments: [400, 403, 404, 509])
    func oneAllowed(_ code: Int) throws {
        let file = SimulatedFile(byteCount: 100 << 20)
        let counter = Counter()
        var download = try SimulatedDownload { rangeRequest, _ in
            guard counter.served.isEmpty else {
                counter.rejected += 1
                return try status(code)
            }
            counter.served.insert(rangeRequest.id)
            return try file.reply(rangeRequest)
        }
        download.speed = { id, download in
            // After its last byte the connection is free for the next request.
            let rest = download.machine.plan?.claims[id]?.rest ?? 0
            if rest <= 200_000 { counter.served.remove(id) }
            return 5e6
        }
        while download.outcome == nil, download.seconds < 600 {
            download.run(seconds: 0.02)
            counter.served.formIntersection(download.machine.transfers.keys)
        }
        #expect(download.isComplete && download.restarts.isEmpty && download.waits.isEmpty)
        #expect(download.disk == RangeSet([0..<file.byteCount]))
        #expect((1...20).contains(counter.rejected), "\(counter.rejected)")
    }

    @Test("A removed file ends the download when the last connection is rejected, and the bytes stay")
    func goneBesides() throws {
        let file = SimulatedFile(byteCount: 100 << 20)
        var download = try SimulatedDownload { rangeRequest, number in
            number == 1 ? try file.reply(rangeRequest) : try status(404)
        }
        download.run()
        #expect(download.error?.code == .unacceptableStatus && download.activeCount == 0)
        #expect(download.error?.resumableByteCount == DownloadMachine.probeByteCount)
    }

    /// The requests of a server and its reactions.
    private final class Counter {
        var served: Set<UInt64> = []
        var rejected = 0
    }

    @Test("A connection without a free slot is not made, and the first one waits for a slot")
    func crowded() throws {
        let file = SimulatedFile(byteCount: 60 << 20)
        var download = try SimulatedDownload { rangeRequest, number in
            number < 4 || number % 2 == 0
                ? try file.reply(rangeRequest)
                : SimulatedDownload.Reply(responseHead: nil, end: .crowded)
        }
        download.run()
        #expect(download.isComplete && download.waits.isEmpty)
        var alone = try SimulatedDownload { rangeRequest, number in
            number < 20 ? SimulatedDownload.Reply(responseHead: nil, end: .crowded) : try file.reply(rangeRequest)
        }
        alone.run()
        #expect(alone.isComplete && alone.rangeRequests.count > 19)
    }

    @Test(
        "A rejection by a redirect target requests the original URL again; a second one is final",
        arguments: [400, 403])
    func expired(_ code: Int) throws {
        let file = SimulatedFile(byteCount: 60 << 20)
        var download = try SimulatedDownload { rangeRequest, number in
            let isSigned = rangeRequest.url.absoluteForm.contains("signed")
            if isSigned, number < 5 { return try status(code, from: rangeRequest.url.absoluteForm) }
            return try file.reply(rangeRequest, from: "http://cdn.example/signed?\(number)")
        }
        download.run()
        #expect(download.isComplete && download.restarts.isEmpty)
        #expect(download.rangeRequests.contains { $0.url.absoluteForm.contains("signed") })
        var rejected = try SimulatedDownload { _, _ in try status(code, from: "http://cdn.example/signed") }
        rejected.run()
        #expect(rejected.error?.code == .unacceptableStatus)
        #expect(rejected.asked == ["bytes=0-8388607", "-"])
        #expect(rejected.error?.message.contains("\(code)") == true)
    }

    @Test("404 ends a download and keeps the stored bytes")
    func gone() throws {
        let file = SimulatedFile(byteCount: 3_000_000)
        var download = try SimulatedDownload(record: file.record(RangeSet([0..<1_000]), total: 3_000_000)) {
            _, _ in try status(404)
        }
        download.run()
        #expect(download.error?.code == .unacceptableStatus && download.error?.resumableByteCount == 1_000)
    }

    @Test("416 without a length restarts a download with missing bytes")
    func unsatisfiable() throws {
        let file = SimulatedFile(byteCount: 3_000_000)
        var download = try SimulatedDownload(record: file.record(RangeSet([0..<1_000]), total: 3_000_000)) {
            rangeRequest, number in number == 1 ? try status(416) : try file.reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete && download.restarts == [.changed])
    }

    @Test(
        "A file that cannot be written ends the download immediately, on any connection",
        arguments: [HTTPError.Code.fileFailed, .diskFull])
    func final(_ code: HTTPError.Code) throws {
        let file = SimulatedFile(byteCount: 60 << 20)
        var download = try SimulatedDownload { rangeRequest, number in
            guard number == 3 else { return try file.reply(rangeRequest) }
            let error = HTTPError(code, phase: .receivingBody, message: "no room")
            return SimulatedDownload.Reply(responseHead: nil, end: .failed(error))
        }
        download.run()
        #expect(download.error?.code == code && download.activeCount == 0)
        #expect(download.error?.resumableByteCount != nil)
    }

    @Test("A permanent error ends the download immediately if no other connection is left")
    func finalAlone() throws {
        var download = try SimulatedDownload { _, _ in
            let error = HTTPError(.tlsFailed, phase: .tlsHandshake, message: "certificate")
            return SimulatedDownload.Reply(responseHead: nil, end: .failed(error))
        }
        download.run()
        #expect(download.error?.code == .tlsFailed && download.rangeRequests.count == 1)
    }

    @Test("Events after a stop are ignored")
    func stopped() throws {
        let file = SimulatedFile(byteCount: 60 << 20)
        var download = try SimulatedDownload { rangeRequest, _ in try file.reply(rangeRequest) }
        download.run(seconds: 3)
        let alive = download.machine.transfers.keys.sorted()
        #expect(!alive.isEmpty)
        let written = download.machine.plan?.writtenCount
        download.stop()
        #expect(download.activeCount == 0)
        var machine = download.machine
        for id in alive + [0, .max] {
            #expect(machine.accept(id, 1_000, now: download.now) == nil)
            #expect(machine.wrote(id, 0..<1_000).isEmpty)
            let (action, _, effects) = machine.responseReceived(
                id, try DownloadResponseHead.sample(200, byteCount: 5), now: download.now)
            guard case .leave = action, effects.isEmpty else {
                Issue.record("\(action)")
                return
            }
            #expect(machine.ended(id, .finished, now: download.now, random: 0).isEmpty)
        }
        #expect(machine.tick(.distantFuture).isEmpty)
        #expect(machine.plan?.writtenCount == written && machine.isResumable)
    }
}
