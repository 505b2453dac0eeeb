import Martlet
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("Download machine")
struct DownloadMachineTests {
    private static let mebibyte: UInt64 = 1 << 20

    @Test("A small file arrives in one request for a range")
    func small() throws {
        let file = SimulatedFile(byteCount: 1_000)
        var download = try SimulatedDownload { rangeRequest, _ in try file.reply(rangeRequest) }
        download.run()
        #expect(download.isComplete && download.asked == ["bytes=0-8388607"])
        #expect(download.disk == RangeSet([0..<1_000]))
    }

    @Test("With one segment the whole file is requested")
    func oneSegment() throws {
        let file = SimulatedFile(byteCount: 30 * DownloadMachineTests.mebibyte)
        var download = try SimulatedDownload(DownloadOptions(segments: 1)) { rangeRequest, _ in
            try file.reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete && download.asked == ["-"])
    }

    @Test("A large file arrives in ranges that are bound to its first version")
    func large() throws {
        let file = SimulatedFile(byteCount: 60 * DownloadMachineTests.mebibyte)
        var download = try SimulatedDownload { rangeRequest, _ in try file.reply(rangeRequest) }
        download.run()
        #expect(download.isComplete && download.rangeRequests.count > 3)
        #expect(download.rangeRequests.dropFirst().allSatisfy { $0.condition == "\"one\"" })
        #expect(download.machine.generation == 1 && !download.machine.isUnproven)
        #expect(download.checkpoints > 0)
    }

    @Test("An empty file is found by a 416, and fetched without Range")
    func empty() throws {
        let file = SimulatedFile(byteCount: 0)
        var download = try SimulatedDownload { rangeRequest, _ in try file.reply(rangeRequest) }
        download.run()
        #expect(download.isComplete && download.asked == ["bytes=0-8388607", "-"])
        #expect(download.machine.plan?.total == 0)
    }

    @Test("With a checksum alone ranges are requested without a condition and are unproven")
    func checksumOnly() throws {
        var file = SimulatedFile(byteCount: 20 * DownloadMachineTests.mebibyte)
        file.tag = nil
        var choice = DownloadOptions()
        choice.checksum = Checksum(.md5, Array(repeating: 1, count: 16))
        var download = try SimulatedDownload(choice) { [file] rangeRequest, _ in try file.reply(rangeRequest) }
        download.run()
        #expect(download.isComplete && download.asked.count > 1)
        #expect(download.rangeRequests.allSatisfy { $0.condition == nil && $0.overlap == 0 })
        #expect(download.machine.isUnproven)
        // A mismatch may come from two mixed versions: the file is fetched again in one piece.
        let error = HTTPError(.checksumMismatch, phase: .processingResponse, message: "")
        var machine = download.machine
        var effects = machine.mismatched(error, now: download.now)
        guard case .emit(.restarted(.changed))? = effects.first, case .begin(let rangeRequest)? = effects.last
        else {
            Issue.record("\(effects)")
            return
        }
        #expect(rangeRequest.range == nil && machine.generation == 2 && !machine.isUnproven)
        machine.isUnproven = true
        _ = machine.stop()
        effects = machine.mismatched(error, now: download.now)
        #expect(machine.generation == 3)
        machine.isUnproven = true
        effects = machine.mismatched(error, now: download.now)
        guard case .fail? = effects.first else {
            Issue.record("\(effects)")
            return
        }
    }

    @Test("A checksum mismatch of a file in one proven version is final")
    func provenMismatch() throws {
        let file = SimulatedFile(byteCount: 1_000)
        var download = try SimulatedDownload { rangeRequest, _ in try file.reply(rangeRequest) }
        download.run()
        var machine = download.machine
        let effects = machine.mismatched(
            HTTPError(.checksumMismatch, phase: .processingResponse, message: "x"), now: download.now)
        guard case .fail(let error)? = effects.first else {
            Issue.record("\(effects)")
            return
        }
        #expect(error.code == .checksumMismatch && effects.count == 1)
    }

    @Test(
        "A file that changes during the download is fetched in its new version, without old bytes"
    )
    func changed() throws {
        let old = SimulatedFile(byteCount: 60 * DownloadMachineTests.mebibyte)
        let new = SimulatedFile(
            byteCount: 50 * DownloadMachineTests.mebibyte, tag: "\"two\"", version: 2)
        var download = try SimulatedDownload { rangeRequest, number in
            try (number < 4 ? old : new).reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete && download.version == 2 && download.mixedCount == 0)
        #expect(download.disk == RangeSet([0..<new.byteCount]))
        #expect(download.restarts == [.changed] && download.machine.generation == 2)
    }

    /// The responses of a server whose file changes each time and which ignores If-Range.
    private func everChanging(
        _ rangeRequest: DownloadRequest, _ number: Int
    ) throws -> SimulatedDownload.Reply {
        var rangeRequest = rangeRequest
        rangeRequest.condition = nil
        return try SimulatedFile(
            byteCount: 60 << 20, tag: "\"\(number)\"", version: number
        ).reply(rangeRequest)
    }

    @Test("A 206 of another version is discarded, and a file that always changes fails the download")
    func changedParts() throws {
        var download = try SimulatedDownload { rangeRequest, number in
            var reply = try everChanging(rangeRequest, number)
            // The response in one piece is cut, too, and the file changes after that.
            if rangeRequest.range == nil { reply.cut = 1 << 20 }
            return reply
        }
        download.run()
        #expect(download.error?.code == .representationChanged)
        #expect(download.machine.generation == 3 && download.mixedCount == 0)
        #expect(download.restarts == [.changed, .changed])
        #expect(download.error?.message.contains("requested bytes") == true)
    }

    @Test("A file that differs on each connection is fetched over the last one from its first byte")
    func tagOfEachConnection() throws {
        var deaf = try SimulatedDownload { rangeRequest, number in try everChanging(rangeRequest, number) }
        deaf.run()
        #expect(deaf.isComplete && deaf.mixedCount == 0)
        #expect(deaf.restarts == [.changed, .changed] && deaf.rangeRequests.last?.range == nil)
        // A server that supports If-Range responds with the whole file, each time in another version.
        var heeding = try SimulatedDownload { rangeRequest, number in
            try SimulatedFile(byteCount: 60 << 20, tag: "\"\(number)\"", version: number).reply(rangeRequest)
        }
        heeding.run()
        #expect(heeding.isComplete && heeding.mixedCount == 0 && heeding.restarts == [.changed, .changed])
        #expect(heeding.disk == RangeSet([0..<60 * DownloadMachineTests.mebibyte]))
    }

    @Test("If 200 replies to If-Range in the same version, ranges are requested without it and verified")
    func rangeIgnored() throws {
        let file = SimulatedFile(byteCount: 40 * DownloadMachineTests.mebibyte)
        var download = try SimulatedDownload { rangeRequest, _ in
            guard rangeRequest.condition != nil else { return try file.reply(rangeRequest) }
            var deaf = file
            deaf.hasRanges = false
            return try deaf.reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete && download.restarts.isEmpty && download.machine.generation == 1)
        // Each of several concurrent requests sees it, and no later one has a condition.
        #expect(download.rangeRequests.count { $0.condition != nil } <= 4)
        #expect(!download.machine.isUnproven)
    }

    @Test("If 200 replies even without If-Range, the whole file is received as it is")
    func unwillingForGood() throws {
        let file = SimulatedFile(byteCount: 40 * DownloadMachineTests.mebibyte)
        var download = try SimulatedDownload { rangeRequest, number in
            var deaf = file
            deaf.hasRanges = number == 1
            return try deaf.reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete && download.restarts == [.rangesRejected])
        #expect(download.disk == RangeSet([0..<file.byteCount]) && download.mixedCount == 0)
    }

    @Test("A wrong range is requested once more in one piece if no other connection is left")
    func wrongPart() throws {
        let file = SimulatedFile(byteCount: 40 * DownloadMachineTests.mebibyte)
        let record = file.record(RangeSet([0..<1_000]), total: file.byteCount)
        var download = try SimulatedDownload(record: record) { rangeRequest, number in
            guard number == 1 else { return try file.reply(rangeRequest) }
            return SimulatedDownload.Reply(
                responseHead: try DownloadResponseHead.sample(
                    206, [("ETag", "\"one\""), ("Content-Range", "bytes 0-9/41943040")], byteCount: 10),
                byteCount: 10, version: 9)
        }
        download.run()
        #expect(download.isComplete && download.restarts == [.rangesRejected] && download.mixedCount == 0)
        #expect(download.rangeRequests.last?.range == nil)
    }

    @Test("Ranges that were not requested are rejected in the end")
    func wrongForGood() throws {
        var download = try SimulatedDownload { _, _ in
            SimulatedDownload.Reply(
                responseHead: try DownloadResponseHead.sample(
                    206, [("Content-Range", "bytes 5-9/10")], byteCount: 5),
                byteCount: 5)
        }
        download.run()
        #expect(download.error?.code == .rangeRejected && download.asked == ["bytes=0-8388607", "-"])
        #expect(download.error?.message.contains("206 with Content-Range: bytes 5-9/10") == true)
        #expect(download.disk.isEmpty)
    }

    @Test("A file of unknown length ends with its stream, and resumes to the end after a cut")
    func unknownLength() throws {
        var file = SimulatedFile(byteCount: 3_000_000)
        file.sendsLength = false
        var download = try SimulatedDownload(DownloadOptions(segments: 1)) { [file] rangeRequest, number in
            var reply = try file.reply(rangeRequest)
            if number == 1 { reply.cut = 1_000_000 }
            return reply
        }
        download.run()
        #expect(download.isComplete && download.asked == ["-", "bytes=1000000- if"])
        #expect(download.machine.plan?.total == 3_000_000)
    }

    @Test(
        "416 with the stored length completes a file of unknown length, but not in another version"
    )
    func unknownLengthComplete() throws {
        var file = SimulatedFile(byteCount: 3_000_000)
        var resumed = try SimulatedDownload(record: file.record(RangeSet([0..<3_000_000]), total: nil)) {
            [file] rangeRequest, _ in try file.reply(rangeRequest)
        }
        resumed.run()
        #expect(resumed.isComplete && resumed.asked == ["bytes=3000000- if"] && resumed.restarts.isEmpty)
        let record = file.record(RangeSet([0..<3_000_000]), total: nil)
        (file.tag, file.version) = ("\"two\"", 2)
        var changed = try SimulatedDownload(record: record) { [file] rangeRequest, _ in
            var rangeRequest = rangeRequest
            if rangeRequest.range?.lowerBound == 3_000_000 { rangeRequest.condition = nil }
            return try file.reply(rangeRequest)
        }
        changed.run()
        #expect(changed.isComplete && changed.restarts == [.changed] && changed.version == 2)
    }

    @Test("A changed file of unknown length, in ranges of unknown length, uses one transfer")
    func unknownLengthChanged() throws {
        let old = SimulatedFile(byteCount: 3_000_000)
        var new = SimulatedFile(byteCount: 30_000_000, tag: "\"two\"", version: 2)
        new.sendsLength = false
        var download = try SimulatedDownload(record: old.record(RangeSet([0..<1_000_000]), total: nil)) {
            [new] rangeRequest, _ in try new.reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete && download.version == 2 && download.asked.count == 1)
        #expect(download.disk == RangeSet([0..<30_000_000]))
    }

    @Test("A complete record needs no request")
    func completeRecord() throws {
        let file = SimulatedFile(byteCount: 1_000)
        let download = try SimulatedDownload(record: file.record(RangeSet([0..<1_000]), total: 1_000)) {
            rangeRequest, _ in try file.reply(rangeRequest)
        }
        #expect(download.isComplete && download.rangeRequests.isEmpty)
        #expect(download.machine.resumedByteCount == 1_000 && download.machine.receivedByteCount == 0)
    }

    @Test("Only bytes that a record does not have are requested")
    func resumed() throws {
        let file = SimulatedFile(byteCount: 3_000_000)
        let record = file.record(RangeSet([0..<1_000_000, 2_000_000..<2_500_000]), total: 3_000_000)
        var options = DownloadOptions()
        // No range is split further.
        options.takeoverThreshold = .seconds(60)
        var download = try SimulatedDownload(options, record: record) { rangeRequest, _ in
            try file.reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete)
        #expect(download.asked == ["bytes=1000000-1999999 if", "bytes=2500000-2999999 if"])
        #expect(download.machine.receivedByteCount == 1_500_000)
        var anew = DownloadOptions()
        anew.resumption = .restart
        let fresh = try SimulatedDownload(anew, record: record) { rangeRequest, _ in try file.reply(rangeRequest) }
        #expect(fresh.asked == ["bytes=0-8388607"] && fresh.machine.resumedByteCount == 0)
    }

    @Test("An unproven record is not resumed, and an event says so")
    func unresumableRecord() throws {
        var file = SimulatedFile(byteCount: 3_000_000)
        file.tag = nil
        let record = file.record(RangeSet([0..<1_000_000]), total: 3_000_000)
        var download = try SimulatedDownload(record: record) { [file] rangeRequest, _ in try file.reply(rangeRequest)
        }
        guard case .started(resumedByteCount: 0)? = download.events.first else {
            Issue.record("\(download.events)")
            return
        }
        #expect(download.restarts == [.notResumable])
        download.run()
        #expect(download.isComplete && download.disk == RangeSet([0..<3_000_000]))
    }

    @Test("A file above the limit is rejected by its length, or when it exceeds the limit")
    func byteLimit() throws {
        var file = SimulatedFile(byteCount: 2_000_000)
        var choice = DownloadOptions()
        choice.byteLimit = 1_000_000
        for segments in [1, 4] {
            choice.segments = segments
            var told = try SimulatedDownload(choice) { [file] rangeRequest, _ in try file.reply(rangeRequest) }
            told.run()
            #expect(told.error?.code == .bodyTooLarge && told.disk.isEmpty)
        }
        file.sendsLength = false
        choice.segments = 1
        var untold = try SimulatedDownload(choice) { [file] rangeRequest, _ in try file.reply(rangeRequest) }
        untold.run()
        #expect(untold.error?.code == .bodyTooLarge)
        #expect(untold.disk.ranges.last.map { $0.upperBound <= 1_000_000 } != false)
        choice.byteLimit = 2_000_000
        var fits = try SimulatedDownload(choice) { [file] rangeRequest, _ in try file.reply(rangeRequest) }
        fits.run()
        #expect(fits.isComplete)
    }
}
