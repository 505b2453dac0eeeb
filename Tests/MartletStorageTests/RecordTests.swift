@testable import MartletStorage
import Testing

@Suite("Records")
struct RecordTests {
    @Test("Written values are read back in little-endian order")
    func roundTrip() throws {
        var writer = RecordWriter()
        writer.write(UInt16(0x0102))
        writer.write(Int64(-2))
        writer.write(true)
        writer.write(counted: "é".utf8)
        #expect(writer.bytes.prefix(3) == [0x02, 0x01, 0xFE])
        var reader = RecordReader(writer.bytes[...])
        #expect(try reader.number("a") as UInt16 == 0x0102)
        #expect(try reader.number("b") as Int64 == -2)
        #expect(try reader.flag("c"))
        #expect(try reader.text(limit: 2, "d") == "é")
        #expect(reader.remainingCount == 0)
    }

    @Test("The error for a field beyond the end has its name and offset")
    func truncated() {
        var reader = RecordReader([1, 2, 3][...])
        #expect(throws: RecordReader.FieldError(field: "a", offset: 0)) { try reader.number("a") as UInt32 }
    }

    @Test("A length above the limit, an invalid Boolean and invalid UTF-8 are errors")
    func faults() {
        #expect(throws: RecordReader.FieldError.self) {
            var reader = RecordReader([2, 0, 0, 0, 65, 66][...])
            return try reader.text(limit: 1, "a")
        }
        #expect(throws: RecordReader.FieldError.self) {
            var reader = RecordReader([2][...])
            return try reader.flag("a")
        }
        #expect(throws: RecordReader.FieldError.self) {
            var reader = RecordReader([1, 0, 0, 0, 0xFF][...])
            return try reader.text(limit: 1, "a")
        }
        #expect(throws: RecordReader.FieldError.self) {
            var reader = RecordReader([0xFF, 0xFF, 0xFF, 0xFF][...])
            return try reader.counted(limit: .max, "a")
        }
    }
}
