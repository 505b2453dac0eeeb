import Martlet
import Testing

@testable import MartletDownloads

@Suite("Downloads without ranges or validators")
struct UnprovenDownloadTests {
    private static let mebibyte: UInt64 = 1 << 20

    @Test("A server without ranges sends the file in one piece")
    func noRanges() throws {
        var file = SimulatedFile(byteCount: 20 * UnprovenDownloadTests.mebibyte)
        file.hasRanges = false
        var download = try SimulatedDownload { [file] rangeRequest, _ in try file.reply(rangeRequest) }
        download.run()
        #expect(download.isComplete && download.asked.count == 1)
        #expect(!download.machine.isResumable || download.machine.plan?.isComplete == true)
    }

    @Test(
        "A cut stream without ranges restarts for each retry, and fails with the last"
    )
    func noRangesCut() throws {
        var file = SimulatedFile(byteCount: 20 * UnprovenDownloadTests.mebibyte)
        file.hasRanges = false
        var download = try SimulatedDownload { [file] rangeRequest, _ in
            var reply = try file.reply(rangeRequest)
            reply.cut = 5 << 20
            return reply
        }
        download.run()
        // The same bytes arrive again, which is not progress.
        #expect(download.error?.code == .connectionLost && download.asked.count == 6)
        #expect(download.restarts == Array(repeating: .rangesRejected, count: 5))
        #expect(download.error?.resumableByteCount == nil)
    }

    @Test("A stream without ranges that gets further each time may be cut any number of times")
    func noRangesFurther() throws {
        var file = SimulatedFile(byteCount: 20 * UnprovenDownloadTests.mebibyte)
        file.hasRanges = false
        var download = try SimulatedDownload { [file] rangeRequest, number in
            var reply = try file.reply(rangeRequest)
            reply.cut = UInt64(number) * 2 << 20
            return reply
        }
        download.run()
        #expect(download.isComplete && download.asked.count == 10 && download.mixedCount == 0)
        #expect(Set(download.waits) == [.milliseconds(250)])
        // Fewer bytes than in an earlier attempt are not progress, even if they are more than last time.
        var wavering = try SimulatedDownload { [file] rangeRequest, number in
            var reply = try file.reply(rangeRequest)
            reply.cut = number == 1 ? 8 << 20 : UInt64(number) << 20
            return reply
        }
        wavering.run()
        #expect(wavering.error?.code == .connectionLost && wavering.asked.count == 6)
    }

    @Test("A checksum does not make a server without ranges and validators look like one whose file changes")
    func noRangesChecksum() throws {
        var file = SimulatedFile(byteCount: 20 * UnprovenDownloadTests.mebibyte)
        (file.tag, file.hasRanges) = (nil, false)
        var choice = DownloadOptions(segments: 1)
        choice.checksum = Checksum(.md5, Array(repeating: 1, count: 16))
        var download = try SimulatedDownload(choice) { [file] rangeRequest, number in
            var reply = try file.reply(rangeRequest)
            reply.cut = UInt64(number) * 2 << 20
            return reply
        }
        download.run()
        #expect(download.isComplete && download.restarts.allSatisfy { $0 == .rangesRejected })
        #expect(download.asked.count == 10 && download.asked.count { $0 != "-" } == 1)
    }

    @Test("A changed file is a new one, so its first bytes are progress")
    func changedWithoutRanges() throws {
        let old = SimulatedFile(byteCount: 20 * UnprovenDownloadTests.mebibyte)
        let new = SimulatedFile(
            byteCount: 20 * UnprovenDownloadTests.mebibyte, tag: "\"two\"", version: 2, hasRanges: false)
        var choice = DownloadOptions(segments: 1)
        choice.retry.maximumRetries = 3
        var download = try SimulatedDownload(choice) { rangeRequest, number in
            var reply = try (number <= 2 ? old : new).reply(rangeRequest)
            reply.cut = number < 3 ? 8 << 20 : number < 6 ? 1 << 20 : nil
            return reply
        }
        download.run()
        #expect(download.isComplete && download.version == 2 && download.asked.count == 6)
    }

    @Test("Without a validator no ranges are requested, and a cut restarts the download for each retry")
    func noValidator() throws {
        var file = SimulatedFile(byteCount: 20 * UnprovenDownloadTests.mebibyte)
        file.tag = nil
        var whole = try SimulatedDownload { [file] rangeRequest, _ in try file.reply(rangeRequest) }
        whole.run()
        #expect(whole.isComplete && whole.asked == ["bytes=0-8388607", "-"])
        #expect(whole.rangeRequests.allSatisfy { $0.condition == nil })
        var broken = try SimulatedDownload(DownloadOptions(segments: 1)) { [file] rangeRequest, _ in
            var reply = try file.reply(rangeRequest)
            reply.cut = 5 << 20
            return reply
        }
        broken.run()
        #expect(broken.error?.code == .connectionLost && broken.asked == Array(repeating: "-", count: 6))
        #expect(broken.restarts == Array(repeating: .notResumable, count: 5))
    }

    @Test(
        "Unverified resumption requests a file of several segments whole, and can resume it"
    )
    func unverifiedLarge() throws {
        var file = SimulatedFile(byteCount: 20 * UnprovenDownloadTests.mebibyte)
        file.tag = nil
        var choice = DownloadOptions()
        choice.resumption = .unverified
        var download = try SimulatedDownload(choice) { [file] rangeRequest, number in
            var reply = try file.reply(rangeRequest)
            if number == 2 { reply.cut = 5 << 20 }
            return reply
        }
        download.run(seconds: 1)
        #expect(download.machine.isResumable && download.asked == ["bytes=0-8388607", "-"])
        download.run()
        #expect(download.isComplete && download.asked.last == "bytes=5177344-20971519")
        #expect(download.rangeRequests.count == 3 && download.restarts.isEmpty && download.machine.isUnproven)
        // The next run resumes from the bytes that are left when the retries are used up.
        choice.retry.maximumRetries = 0
        var broken = try SimulatedDownload(choice) { [file] rangeRequest, _ in
            var reply = try file.reply(rangeRequest)
            reply.cut = 5 << 20
            return reply
        }
        broken.run()
        #expect(broken.error?.resumableByteCount == 5 << 20)
    }

    @Test("Unverified resumption fetches the last 64 KiB again and compares them")
    func unverified() throws {
        var file = SimulatedFile(byteCount: 2 * UnprovenDownloadTests.mebibyte)
        file.tag = nil
        var choice = DownloadOptions()
        choice.resumption = .unverified
        let record = file.record(RangeSet([0..<1_000_000]), total: file.byteCount, isUnproven: false)
        var same = try SimulatedDownload(choice, record: record) { [file] rangeRequest, _ in
            try file.reply(rangeRequest)
        }
        same.run()
        #expect(same.isComplete && same.asked == ["bytes=934464-2097151"])
        #expect(same.machine.isUnproven && same.machine.resumedByteCount == 1_000_000)
        file.version = 2
        var other = try SimulatedDownload(choice, record: record) { [file] rangeRequest, _ in
            try file.reply(rangeRequest)
        }
        other.run()
        #expect(other.isComplete && other.restarts == [.overlapDiffers] && other.version == 2)
        #expect(other.mixedCount == 0)
    }

    @Test("The stored bytes before each gap are compared, and no more than exist")
    func overlapBehindGap() throws {
        var file = SimulatedFile(byteCount: 3_000_000)
        file.tag = nil
        var choice = DownloadOptions()
        choice.resumption = .unverified
        let record = file.record(RangeSet([0..<100_000, 200_000..<210_000]), total: file.byteCount)
        var download = try SimulatedDownload(choice, record: record) { [file] rangeRequest, _ in
            try file.reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete && download.restarts.isEmpty)
        #expect(download.rangeRequests.map(\.overlap) == [65_536, 65_536])
    }

    @Test("A complete file of unknown length is compared and complete")
    func overlapOnly() throws {
        var file = SimulatedFile(byteCount: 100_000)
        file.tag = nil
        var choice = DownloadOptions()
        choice.resumption = .unverified
        let record = file.record(RangeSet([0..<100_000]), total: nil)
        var download = try SimulatedDownload(choice, record: record) { [file] rangeRequest, _ in
            try file.reply(rangeRequest)
        }
        download.run()
        #expect(download.isComplete && download.asked == ["bytes=34464-"])
    }
}
