import Martlet
@testable import MartletDownloads
import MartletStorage
import MartletTesting
import MartletTestSupport
import Testing

@Suite("File format of a stored download")
struct DownloadItemCodecTests {
    static func item(
        _ number: UInt64 = 7, _ stage: DownloadItem.Stage = .waiting
    ) throws -> DownloadItem {
        var item = DownloadItem(
            id: DownloadID(number), order: number + 3,
            url: try HTTPURL("https://u:secret@a.example/ä/f.bin?sig=1"),
            target: .directory("/data/new"))
        item.priority = .high
        item.stage = stage
        item.move(to: try HTTPURL("https://u:secret@b.example/f.bin?sig=2"))
        item.path = "/data/new/f.bin"
        item.completedByteCount = 12
        item.totalByteCount = 400
        item.options = DownloadOptions(
            segments: 9, checksum: .md5("d41d8cd98f00b204e9800998ecf8427e"), collision: .rename,
            resumption: .unverified, retry: DownloadRetry(maximumRetries: 2),
            stallTimeout: .milliseconds(1500),
            checkpointInterval: .seconds(7), bandwidth: .bytesPerSecond(1000),
            sequentialWindow: .mebibytes(3),
            byteLimit: .gibibytes(1), preservesModificationTime: true, durability: .unsynced,
            headers: [
                .authorization: "Bearer secret", .proxyAuthorization: "Basic secret", .cookie: "s=secret",
                .accept: "image/*",
            ],
            request: RequestOptions(timeouts: Timeouts(connect: .seconds(3))))
        item.publication = PublicationRecord(
            result: DownloadResult(
                path: "/data/new/f.bin", byteCount: 400, receivedByteCount: 400,
                url: try HTTPURL("https://u:secret@c.example/x")),
            part: FileIdentity(number: .max, device: 9, modificationTime: -1),
            copy: FileIdentity(number: 3, device: 9, modificationTime: .max))
        return item
    }

    private func bytes(_ stage: DownloadItem.Stage = .waiting) throws -> [UInt8] {
        try DownloadItemCodec.encode(DownloadItemCodecTests.item(7, stage))
    }

    @Test("Every field is read back, except credentials")
    func roundTrip() throws {
        let item = try DownloadItemCodec.decode(try bytes())
        #expect(item.id == DownloadID(7) && item.order == 10 && item.priority == .high)
        #expect(try item.url == HTTPURL("https://a.example/ä/f.bin?sig=1"))
        #expect(try item.movedURLs == [HTTPURL("https://b.example/f.bin?sig=2")])
        #expect(item.target == .directory("/data/new") && item.path == "/data/new/f.bin")
        #expect(item.completedByteCount == 12 && item.totalByteCount == 400)
        let options = item.options
        #expect(options.segments == 9 && options.collision == .rename && options.resumption == .unverified)
        #expect(options.checksum == .md5("d41d8cd98f00b204e9800998ecf8427e"))
        #expect(
            options.retry == DownloadRetry(maximumRetries: 2) && options.stallTimeout == .milliseconds(1500))
        #expect(options.checkpointInterval == .seconds(7) && options.bandwidth == .bytesPerSecond(1000))
        #expect(options.sequentialWindow == .mebibytes(3) && options.byteLimit == .gibibytes(1))
        #expect(options.preservesModificationTime && options.durability == .unsynced)
        #expect(options.headers == [.accept: "image/*"])
        #expect(options.request.timeouts.connect == .seconds(3))
        let publication = try #require(item.publication)
        #expect(publication.result.path == "/data/new/f.bin" && publication.result.byteCount == 400)
        #expect(try publication.result.url == HTTPURL("https://c.example/x"))
        #expect(publication.part == FileIdentity(number: .max, device: 9, modificationTime: -1))
        #expect(publication.copy == FileIdentity(number: 3, device: 9, modificationTime: .max))
        guard case .waiting = item.stage else {
            Issue.record("\(item.stage)")
            return
        }
    }

    @Test("A download is compared with the checksum of its options, and a finished one with those of its result")
    func verified() throws {
        let given = Checksum.md5("d41d8cd98f00b204e9800998ecf8427e")
        let other = Checksum.sha1(String(repeating: "0", count: 40))
        var item = try DownloadItemCodecTests.item()
        #expect(item.verifies(given) && !item.verifies(other))
        let result = DownloadResult(
            path: "/data/f", byteCount: 1, receivedByteCount: 1, verified: [other], url: item.url)
        #expect("\(result)" == "/data/f: 1 bytes, 0 resumed, verified \(other)")
        item.stage = .finished(result)
        #expect(item.verifies(given) && item.verifies(other))
    }

    @Test("No secret is in the bytes")
    func secrets() throws {
        let text = String(decoding: try bytes(), as: UTF8.self)
        #expect(!text.contains("secret"))
        #expect(text.contains("image") && text.contains("sig=1"))
    }

    @Test("The number of retries keeps its stored name, so that older records can be read")
    func storedNames() throws {
        #expect(String(decoding: try bytes(), as: UTF8.self).contains("\"maximumAttempts\":2"))
    }

    @Test("The state of a download is read back")
    func stages() throws {
        let result = DownloadResult(
            path: "/data/new/f (1).bin", byteCount: 400, resumedByteCount: 12, receivedByteCount: 388,
            verified: [.md5("d41d8cd98f00b204e9800998ecf8427e")], url: try HTTPURL("https://c.example/x"))
        guard case .finished(let read) = try DownloadItemCodec.decode(bytes(.finished(result))).stage else {
            Issue.record("not finished")
            return
        }
        #expect(read == result)
        var error = HTTPError(
            .checksumMismatch, phase: .processingResponse, message: String(repeating: "ä€", count: 4000),
            wasSent: true, url: try HTTPURL("https://a.example/f?sig=1"))
        error.resumableByteCount = 17
        guard case .failed(let failure) = try DownloadItemCodec.decode(bytes(.failed(error))).stage else {
            Issue.record("not failed")
            return
        }
        #expect(failure.code == .checksumMismatch && failure.phase == .processingResponse && failure.wasSent)
        #expect(try failure.url == HTTPURL("https://a.example/f?sig=***") && failure.method == .get)
        #expect(failure.resumableByteCount == 17)
        #expect(failure.message.hasPrefix("ä€ä€") && failure.message.utf8.count <= 4096)
        guard case .paused = try DownloadItemCodec.decode(bytes(.paused)).stage,
            case .cancelled = try DownloadItemCodec.decode(bytes(.cancelled)).stage
        else {
            Issue.record("neither paused nor cancelled")
            return
        }
    }

    @Test("A flipped byte at any position makes it invalid")
    func flips() throws {
        let bytes = try bytes()
        for index in bytes.indices {
            for flip in [0x01, 0x80, 0xFF] as [UInt8] {
                var damaged = bytes
                damaged[index] ^= flip
                let fault = #expect(throws: RecordEnvelope.FormatError.self, "byte \(index)") {
                    try DownloadItemCodec.decode(damaged)
                }
                // A damaged record is not taken for one of a later version.
                if case .version = fault { Issue.record("byte \(index)") }
            }
        }
    }

    @Test("A record that is cut at any length or has trailing bytes is invalid")
    func cuts() throws {
        let bytes = try bytes()
        for count in 0..<bytes.count {
            #expect(throws: RecordEnvelope.FormatError.self, "\(count) bytes") {
                try DownloadItemCodec.decode(Array(bytes[..<count]))
            }
        }
        #expect(throws: RecordEnvelope.FormatError.length) { try DownloadItemCodec.decode(bytes + [0]) }
        #expect(throws: RecordEnvelope.FormatError.length) {
            try DownloadItemCodec.decode(Array(repeating: 0, count: DownloadItemCodec.byteLimit + 1))
        }
    }

    @Test("An intact record of a later version reports its version, and another file is foreign")
    func versions() throws {
        #expect(throws: RecordEnvelope.FormatError.version(3)) {
            try DownloadItemCodec.decode(DownloadItemCodecTests.later(try bytes()))
        }
        #expect(throws: RecordEnvelope.FormatError.foreign) {
            try DownloadItemCodec.decode(Array("GIF89a, which is no download".utf8))
        }
    }

    @Test("Neither the record of a download nor that of its received bytes is read as the other")
    func kinds() throws {
        #expect(throws: RecordEnvelope.FormatError.foreign) { try ResumeRecord.decode(try bytes()) }
        #expect(throws: RecordEnvelope.FormatError.self) {
            try DownloadItemCodec.decode(PartDirectory.record([0..<10], total: 100, owner: 7).bytes)
        }
    }

    @Test("A record with the magic of earlier files is read")
    func formerMagic() throws {
        var bytes = try bytes()
        #expect(bytes.starts(with: "MRTq".utf8))
        bytes[3] = UInt8(ascii: "d")
        #expect(try DownloadItemCodec.decode(DownloadItemCodecTests.sealed(bytes)).id == DownloadID(7))
    }

    @Test("A record of the previous version is read, and has no publication")
    func earlierVersion() throws {
        var item = try DownloadItemCodecTests.item()
        item.publication = nil
        var bytes = try DownloadItemCodec.encode(item)
        // In that version the state came last.
        #expect(bytes.removeLast() == 0)
        bytes[4] = 1
        let count = UInt32(bytes.count - 16)
        for place in 0..<4 { bytes[8 + place] = UInt8(truncatingIfNeeded: count >> (8 * UInt32(place))) }
        let read = try DownloadItemCodec.decode(DownloadItemCodecTests.sealed(bytes))
        #expect(read.id == item.id && read.order == item.order && read.publication == nil)
    }

    @Test("A damaged record with a valid checksum is rejected, or can be encoded again", arguments: 0..<200)
    func fields(_ seed: Int) throws {
        var random = SeededGenerator(seed: UInt64(seed))
        var bytes = try bytes()
        for _ in 0..<3 {
            let index = Int.random(in: 16..<bytes.count, using: &random)
            bytes[index] = UInt8.random(in: 0...255, using: &random)
        }
        // A decoded download can be encoded again; any other input is a typed error.
        if let item = try? DownloadItemCodec.decode(DownloadItemCodecTests.sealed(bytes)) {
            _ = try DownloadItemCodec.encode(item)
        }
    }

    @Test("Options with a closure cannot be stored and are rejected")
    func closures() throws {
        var item = try DownloadItemCodecTests.item()
        item.options.request.proxy = .selector { _ in nil }
        let error = #expect(throws: HTTPError.self) { try DownloadItemCodec.encode(item) }
        #expect(error?.code == .invalidRequest)
    }

    /// Makes the bytes of a later format version.
    static func later(_ bytes: [UInt8]) -> [UInt8] {
        var later = bytes
        later[4] = 3
        return sealed(later)
    }

    /// The bytes with a corrected checksum.
    static func sealed(_ bytes: [UInt8]) -> [UInt8] {
        var sealed = bytes
        var checksum = RecordChecksum()
        checksum.update(bytes.span.extracting(0..<12))
        checksum.update(bytes.span.extracting(16..<bytes.count))
        for place in 0..<4 {
            sealed[12 + place] = UInt8(truncatingIfNeeded: checksum.value >> (8 * UInt32(place)))
        }
        return sealed
    }
}
