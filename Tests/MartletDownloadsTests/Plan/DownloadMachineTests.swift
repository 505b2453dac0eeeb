import Martlet
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("What a download does")
struct DownloadMachineTests {
    private static let mebibyte: UInt64 = 1 << 20

    @Test("A small file comes in one request, which asks for a part")
    func small() throws {
        let file = SimulatedFile(byteCount: 1_000)
        var download = try SimulatedDownload { question, _ in try file.reply(question) }
        download.run()
        #expect(download.isComplete && download.asked == ["bytes=0-8388607"])
        #expect(download.disk == RangeSet([0..<1_000]))
    }

    @Test("With one segment the whole file is asked for")
    func oneSegment() throws {
        let file = SimulatedFile(byteCount: 30 * DownloadMachineTests.mebibyte)
        var download = try SimulatedDownload(DownloadOptions(segments: 1)) { question, _ in
            try file.reply(question)
        }
        download.run()
        #expect(download.isComplete && download.asked == ["-"])
    }

    @Test("A large file comes in parts that are bound to its first state")
    func large() throws {
        let file = SimulatedFile(byteCount: 60 * DownloadMachineTests.mebibyte)
        var download = try SimulatedDownload { question, _ in try file.reply(question) }
        download.run()
        #expect(download.isComplete && download.questions.count > 3)
        #expect(download.questions.dropFirst().allSatisfy { $0.condition == "\"one\"" })
        #expect(download.machine.generation == 1 && !download.machine.isUnproven)
        #expect(download.checkpoints > 0)
    }

    @Test("An empty file is found by the 416 to the first question, and fetched without Range")
    func empty() throws {
        let file = SimulatedFile(byteCount: 0)
        var download = try SimulatedDownload { question, _ in try file.reply(question) }
        download.run()
        #expect(download.isComplete && download.asked == ["bytes=0-8388607", "-"])
        #expect(download.machine.plan?.total == 0)
    }

    @Test("With a checksum alone there are parts, without a condition, and nothing proves them")
    func checksumOnly() throws {
        var file = SimulatedFile(byteCount: 20 * DownloadMachineTests.mebibyte)
        file.tag = nil
        var choice = DownloadOptions()
        choice.checksum = Checksum(.md5, Array(repeating: 1, count: 16))
        var download = try SimulatedDownload(choice) { [file] question, _ in try file.reply(question) }
        download.run()
        #expect(download.isComplete && download.asked.count > 1)
        #expect(download.questions.allSatisfy { $0.condition == nil && $0.overlap == 0 })
        #expect(download.machine.isUnproven)
        // A mismatch may come of two states that were mixed: once more, in one piece.
        let error = HTTPError(.checksumMismatch, phase: .processingResponse, message: "")
        var machine = download.machine
        var effects = machine.mismatched(error, now: download.now)
        guard case .tell(.restarted(.changed))? = effects.first, case .begin(let question)? = effects.last
        else {
            Issue.record("\(effects)")
            return
        }
        #expect(question.range == nil && machine.generation == 2 && !machine.isUnproven)
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

    @Test("A mismatch of a file in one proven state is final")
    func provenMismatch() throws {
        let file = SimulatedFile(byteCount: 1_000)
        var download = try SimulatedDownload { question, _ in try file.reply(question) }
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
        "Check 1, N5: A file that changes while it comes is fetched in its new state, and no byte of the old is left"
    )
    func changed() throws {
        let old = SimulatedFile(byteCount: 60 * DownloadMachineTests.mebibyte)
        let new = SimulatedFile(
            byteCount: 50 * DownloadMachineTests.mebibyte, tag: "\"two\"", version: 2)
        var download = try SimulatedDownload { question, number in
            try (number < 4 ? old : new).reply(question)
        }
        download.run()
        #expect(download.isComplete && download.version == 2 && download.mixedCount == 0)
        #expect(download.disk == RangeSet([0..<new.byteCount]))
        #expect(download.restarts == [.changed] && download.machine.generation == 2)
    }

    /// What a server says whose file is another one with each answer, and which is deaf to If-Range.
    private func everChanging(
        _ question: DownloadRequest, _ number: Int
    ) throws -> SimulatedDownload.Reply {
        var question = question
        question.condition = nil
        return try SimulatedFile(
            byteCount: 60 << 20, tag: "\"\(number)\"", version: number
        ).reply(question)
    }

    @Test("A 206 of another state is of no use, and a file that changes for ever is given up")
    func changedParts() throws {
        var download = try SimulatedDownload { question, number in
            var reply = try everChanging(question, number)
            // Also what comes in one piece breaks, and changes behind that.
            if question.range == nil { reply.cut = 1 << 20 }
            return reply
        }
        download.run()
        #expect(download.error?.code == .representationChanged)
        #expect(download.machine.generation == 3 && download.mixedCount == 0)
        #expect(download.restarts == [.changed, .changed])
        #expect(download.error?.message.contains("asked for bytes") == true)
    }

    @Test("What is another file on each connection comes over one, with the last beginning")
    func tagOfEachConnection() throws {
        var deaf = try SimulatedDownload { question, number in try everChanging(question, number) }
        deaf.run()
        #expect(deaf.isComplete && deaf.mixedCount == 0)
        #expect(deaf.restarts == [.changed, .changed] && deaf.questions.last?.range == nil)
        // One that heeds If-Range answers with the whole file, each time in another state.
        var heeding = try SimulatedDownload { question, number in
            try SimulatedFile(byteCount: 60 << 20, tag: "\"\(number)\"", version: number).reply(question)
        }
        heeding.run()
        #expect(heeding.isComplete && heeding.mixedCount == 0 && heeding.restarts == [.changed, .changed])
        #expect(heeding.disk == RangeSet([0..<60 * DownloadMachineTests.mebibyte]))
    }

    @Test("200 to If-Range in the same state: without it the parts come, which have to prove themselves")
    func unwilling() throws {
        let file = SimulatedFile(byteCount: 40 * DownloadMachineTests.mebibyte)
        var download = try SimulatedDownload { question, _ in
            guard question.condition != nil else { return try file.reply(question) }
            var deaf = file
            deaf.hasRanges = false
            return try deaf.reply(question)
        }
        download.run()
        #expect(download.isComplete && download.restarts.isEmpty && download.machine.generation == 1)
        // Of several at once each learns it for itself, and none asks so again.
        #expect(download.questions.count { $0.condition != nil } <= 4)
        #expect(!download.machine.isUnproven)
    }

    @Test("200 to If-Range in the same state, and again without it: the file is taken as it comes")
    func unwillingForGood() throws {
        let file = SimulatedFile(byteCount: 40 * DownloadMachineTests.mebibyte)
        var download = try SimulatedDownload { question, number in
            var deaf = file
            deaf.hasRanges = number == 1
            return try deaf.reply(question)
        }
        download.run()
        #expect(download.isComplete && download.restarts == [.rangesRefused])
        #expect(download.disk == RangeSet([0..<file.byteCount]) && download.mixedCount == 0)
    }

    @Test("A part that is wrong is asked for once more, in one piece, where no other connection is left")
    func wrongPart() throws {
        let file = SimulatedFile(byteCount: 40 * DownloadMachineTests.mebibyte)
        let record = file.record(RangeSet([0..<1_000]), total: file.byteCount)
        var download = try SimulatedDownload(record: record) { question, number in
            guard number == 1 else { return try file.reply(question) }
            return SimulatedDownload.Reply(
                facts: try DownloadResponseHead.sample(
                    206, [("ETag", "\"one\""), ("Content-Range", "bytes 0-9/41943040")], byteCount: 10),
                byteCount: 10, version: 9)
        }
        download.run()
        #expect(download.isComplete && download.restarts == [.rangesRefused] && download.mixedCount == 0)
        #expect(download.questions.last?.range == nil)
    }

    @Test("Parts that were not asked for are refused in the end")
    func wrongForGood() throws {
        var download = try SimulatedDownload { _, _ in
            SimulatedDownload.Reply(
                facts: try DownloadResponseHead.sample(
                    206, [("Content-Range", "bytes 5-9/10")], byteCount: 5),
                byteCount: 5)
        }
        download.run()
        #expect(download.error?.code == .rangeRefused && download.asked == ["bytes=0-8388607", "-"])
        #expect(download.error?.message.contains("206 with Content-Range: bytes 5-9/10") == true)
        #expect(download.disk.isEmpty)
    }

    @Test("A length that nobody told is that of the stream; where it breaks, it goes on to its end")
    func unknownLength() throws {
        var file = SimulatedFile(byteCount: 3_000_000)
        file.tellsLength = false
        var download = try SimulatedDownload(DownloadOptions(segments: 1)) { [file] question, number in
            var reply = try file.reply(question)
            if number == 1 { reply.cut = 1_000_000 }
            return reply
        }
        download.run()
        #expect(download.isComplete && download.asked == ["-", "bytes=1000000- if"])
        #expect(download.machine.plan?.total == 3_000_000)
    }

    @Test(
        "416 with as many bytes as are there is the end of a file of unknown length; in another state it is not"
    )
    func unknownLengthComplete() throws {
        var file = SimulatedFile(byteCount: 3_000_000)
        var resumed = try SimulatedDownload(record: file.record(RangeSet([0..<3_000_000]), total: nil)) {
            [file] question, _ in try file.reply(question)
        }
        resumed.run()
        #expect(resumed.isComplete && resumed.asked == ["bytes=3000000- if"] && resumed.restarts.isEmpty)
        let record = file.record(RangeSet([0..<3_000_000]), total: nil)
        (file.tag, file.version) = ("\"two\"", 2)
        var changed = try SimulatedDownload(record: record) { [file] question, _ in
            var question = question
            if question.range?.lowerBound == 3_000_000 { question.condition = nil }
            return try file.reply(question)
        }
        changed.run()
        #expect(changed.isComplete && changed.restarts == [.changed] && changed.version == 2)
    }

    @Test("A file of unknown length that changed, and comes in pieces of unknown length, is one transfer's")
    func unknownLengthChanged() throws {
        let old = SimulatedFile(byteCount: 3_000_000)
        var new = SimulatedFile(byteCount: 30_000_000, tag: "\"two\"", version: 2)
        new.tellsLength = false
        var download = try SimulatedDownload(record: old.record(RangeSet([0..<1_000_000]), total: nil)) {
            [new] question, _ in try new.reply(question)
        }
        download.run()
        #expect(download.isComplete && download.version == 2 && download.asked.count == 1)
        #expect(download.disk == RangeSet([0..<30_000_000]))
    }

    @Test("A complete record needs no request")
    func completeRecord() throws {
        let file = SimulatedFile(byteCount: 1_000)
        let download = try SimulatedDownload(record: file.record(RangeSet([0..<1_000]), total: 1_000)) {
            question, _ in try file.reply(question)
        }
        #expect(download.isComplete && download.questions.isEmpty)
        #expect(download.machine.resumedByteCount == 1_000 && download.machine.receivedByteCount == 0)
    }

    @Test("Check 6: Only what a record does not have is asked for")
    func resumed() throws {
        let file = SimulatedFile(byteCount: 3_000_000)
        let record = file.record(RangeSet([0..<1_000_000, 2_000_000..<2_500_000]), total: 3_000_000)
        var options = DownloadOptions()
        // No rest is parted further.
        options.patience = .seconds(60)
        var download = try SimulatedDownload(options, record: record) { question, _ in
            try file.reply(question)
        }
        download.run()
        #expect(download.isComplete)
        #expect(download.asked == ["bytes=1000000-1999999 if", "bytes=2500000-2999999 if"])
        #expect(download.machine.receivedByteCount == 1_500_000)
        var anew = DownloadOptions()
        anew.resumption = .restart
        let fresh = try SimulatedDownload(anew, record: record) { question, _ in try file.reply(question) }
        #expect(fresh.asked == ["bytes=0-8388607"] && fresh.machine.resumedByteCount == 0)
    }

    @Test("A record that nothing could prove is not gone on with, and that is told")
    func unresumableRecord() throws {
        var file = SimulatedFile(byteCount: 3_000_000)
        file.tag = nil
        let record = file.record(RangeSet([0..<1_000_000]), total: 3_000_000)
        var download = try SimulatedDownload(record: record) { [file] question, _ in try file.reply(question)
        }
        guard case .started(resumedByteCount: 0)? = download.events.first else {
            Issue.record("\(download.events)")
            return
        }
        #expect(download.restarts == [.notResumable])
        download.run()
        #expect(download.isComplete && download.disk == RangeSet([0..<3_000_000]))
    }

    @Test("A file above the limit is refused by its length, or where it becomes too long")
    func byteLimit() throws {
        var file = SimulatedFile(byteCount: 2_000_000)
        var choice = DownloadOptions()
        choice.byteLimit = 1_000_000
        for segments in [1, 4] {
            choice.segments = segments
            var told = try SimulatedDownload(choice) { [file] question, _ in try file.reply(question) }
            told.run()
            #expect(told.error?.code == .bodyTooLarge && told.disk.isEmpty)
        }
        file.tellsLength = false
        choice.segments = 1
        var untold = try SimulatedDownload(choice) { [file] question, _ in try file.reply(question) }
        untold.run()
        #expect(untold.error?.code == .bodyTooLarge)
        #expect(untold.disk.ranges.last.map { $0.upperBound <= 1_000_000 } != false)
        choice.byteLimit = 2_000_000
        var fits = try SimulatedDownload(choice) { [file] question, _ in try file.reply(question) }
        fits.run()
        #expect(fits.isComplete)
    }
}
