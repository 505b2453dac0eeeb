import MartletStorage
import Testing

@Suite("Record envelopes")
struct RecordEnvelopeTests {
    private static let envelope = RecordEnvelope(magic: "MRTt", version: 3, byteLimit: 100)

    private static func read(_ bytes: [UInt8]) throws(RecordEnvelope.FormatError) -> (UInt32, UInt16) {
        try envelope.decode(bytes) { reader, version throws(RecordReader.FieldError) in
            (try reader.number("number"), version)
        }
    }

    @Test("The bytes match the documented format")
    func bytes() throws {
        let bytes = try Self.envelope.encode { $0.write(UInt32(0x0403_0201)) }
        #expect(bytes.prefix(12) == [77, 82, 84, 116, 3, 0, 0, 0, 4, 0, 0, 0])
        #expect(bytes.suffix(4) == [1, 2, 3, 4])
        let (number, version) = try Self.read(bytes)
        #expect(number == 0x0403_0201)
        #expect(version == 3)
    }

    @Test("Errors have distinct codes and the offset of the problem")
    func faults() throws {
        let bytes = try Self.envelope.encode { $0.write(UInt32(7)) }
        for count in 0..<bytes.count {
            #expect(throws: RecordEnvelope.FormatError.length, "\(count)") { try Self.read(Array(bytes[..<count])) }
        }
        #expect(throws: RecordEnvelope.FormatError.length) { try Self.read(bytes + [0]) }
        #expect(throws: RecordEnvelope.FormatError.foreign) { try Self.read([0] + bytes.dropFirst()) }
        var damaged = bytes
        damaged[17] ^= 1
        #expect(throws: RecordEnvelope.FormatError.checksum) { try Self.read(damaged) }
        let later = try RecordEnvelope(magic: "MRTt", version: 4, byteLimit: 100).encode {
            $0.write(UInt32(7))
        }
        #expect(throws: RecordEnvelope.FormatError.version(4)) { try Self.read(later) }
        let short = try Self.envelope.encode { $0.write(UInt16(7)) }
        #expect(throws: RecordEnvelope.FormatError.field("number", offset: 0)) { try Self.read(short) }
        let long = try Self.envelope.encode { $0.write(UInt64(7)) }
        #expect(throws: RecordEnvelope.FormatError.field("end", offset: 4)) { try Self.read(long) }
        #expect(throws: RecordEnvelope.FormatError.length) {
            try Self.envelope.encode { $0.write(raw: [UInt8](repeating: 0, count: 85)) }
        }
    }

    @Test("An earlier version is read, and the reader receives its number")
    func earlier() throws {
        let bytes = try RecordEnvelope(magic: "MRTt", version: 1, byteLimit: 100).encode {
            $0.write(UInt32(7))
        }
        #expect(try Self.read(bytes).1 == 1)
    }
}
