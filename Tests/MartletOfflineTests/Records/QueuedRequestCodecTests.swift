import MartletURL
import Martlet
import MartletStorage
import Testing

@testable import MartletOffline

@Suite("File format of a queued request")
struct QueuedRequestCodecTests {
    private static func sample(_ stage: QueuedRequest.Stage = .waiting) throws -> QueuedRequest {
        var request = QueuedRequest(
            id: OfflineID(7), lane: "notes", method: "POST",
            url: try HTTPURL("https://example.com:8443/a/../b%20c?q=ü&x", pathAsIs: true),
            fields: [.accept: "text/plain", .contentLanguage: "de"], submitted: 1_700_000_000_123,
            expires: 1_700_600_000_000)
        request.tag = "note ✓"
        request.secretFields = ["Authorization", "X-Secret"]
        request.idempotencyKey = "\"0123\""
        request.contentType = "application/json"
        request.body = .inline(Array("{}".utf8))
        request.attempts = 3
        request.stage = stage
        // Not valid UTF-8.
        request.fields.append(HTTPField(name: .userAgent, value: [0x61, 0xE4, 0x62]))
        return request
    }

    static let letter = OfflineDeadLetter(
        .refused, message: "no", statusCode: 422, fields: [.contentType: "text/plain"], body: [1, 2, 3])

    @Test("Records are read as they were written, in each state and with each kind of body")
    func roundTrip() throws {
        let mark = QueuedBody.FileIdentity(byteCount: 12, digest: Array(repeating: 7, count: 32))
        for stage in [
            QueuedRequest.Stage.waiting, .sending, .dead(Self.letter), .uncertain(Self.letter),
        ] {
            for body in [
                QueuedBody.none, .inline([]), .inline([0, 255]), .own(mark), .file("/tmp/file", mark),
            ] {
                var request = try Self.sample(stage)
                request.body = body
                request.tag = body == .none ? nil : request.tag
                request.bootDeadline = body == .none ? nil : BootDeadline(boot: "a-b", milliseconds: 77)
                request.renewed = body == .none ? nil : 1_700_000_500_000
                #expect(try QueuedRequestCodec.decode(QueuedRequestCodec.encode(request)) == request)
            }
        }
    }

    @Test("A file that is cut anywhere or has trailing bytes is rejected")
    func truncated() throws {
        let bytes = try QueuedRequestCodec.encode(try Self.sample(.dead(Self.letter)))
        for count in 0..<bytes.count {
            #expect(throws: RecordEnvelope.FormatError.self) {
                try QueuedRequestCodec.decode(Array(bytes[..<count]))
            }
        }
        #expect(throws: RecordEnvelope.FormatError.length) { try QueuedRequestCodec.decode(bytes + [0]) }
    }

    @Test("A file with any changed byte is rejected")
    func flipped() throws {
        let bytes = try QueuedRequestCodec.encode(try Self.sample())
        for place in bytes.indices {
            var damaged = bytes
            damaged[place] ^= 0x20
            #expect(throws: RecordEnvelope.FormatError.self, "byte \(place)") {
                try QueuedRequestCodec.decode(damaged)
            }
        }
    }

    @Test("A file of a later version is distinguished from a damaged one")
    func later() throws {
        let later = RecordEnvelope(magic: "MRTo", version: 5, byteLimit: 1000)
        let bytes = try later.encode { $0.write(UInt64(1)) }
        #expect(throws: RecordEnvelope.FormatError.version(5)) { try QueuedRequestCodec.decode(bytes) }
    }

    @Test(
        "A file of an earlier version, which lacks the fields of later ones, is read", arguments: [1, 2, 3] as [UInt16])
    func earlier(version: UInt16) throws {
        var request = try Self.sample(.dead(Self.letter))
        if version >= 2 { request.bootDeadline = BootDeadline(boot: "a-b", milliseconds: 77) }
        let bytes = try RecordEnvelope(magic: "MRTo", version: version, byteLimit: 1 << 20).encode { writer in
            QueuedRequestCodec.write(request, to: &writer, version: version)
        }
        #expect(try QueuedRequestCodec.decode(bytes) == request)
    }

    @Test("A file of another kind is foreign")
    func foreign() throws {
        let other = RecordEnvelope(magic: "MRTx", version: 1, byteLimit: 1000)
        let bytes = try other.encode { $0.write(UInt64(1)) }
        #expect(throws: RecordEnvelope.FormatError.foreign) { try QueuedRequestCodec.decode(bytes) }
    }
}
