/// What stands around a record that is a file: 16 bytes by which a damaged file is told from a foreign one, and from one of a
/// later version.
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | what kind of record it is |
/// | 4 | 2 | version, 1 or more |
/// | 6 | 2 | 0 |
/// | 8 | 4 | length of what follows, which ends the file |
/// | 12 | 4 | CRC-32 of the 12 bytes before and of what follows |
///
/// Numbers are little endian. Every version keeps this.
package struct RecordEnvelope: Sendable {
    /// Why a file is no record that can be read.
    package enum Fault: Error, Hashable, Sendable, CustomStringConvertible {
        /// It is shorter or longer than it says, or than records are.
        case length
        /// It does not begin as records of this kind do.
        case foreign
        /// What it holds does not come to its checksum.
        case checksum
        /// It was written by a later version of Martlet.
        case version(UInt16)
        /// A part of it makes no sense.
        case field(String, offset: Int)

        /// A part of a record's content that makes no sense.
        package init(_ fault: RecordReader.Fault) { self = .field(fault.field, offset: fault.offset) }

        /// What is wrong, in words.
        package var description: String {
            switch self {
            case .length: "it is cut short, or longer than it says"
            case .foreign: "it is no record of this kind"
            case .checksum: "it is damaged: its checksum is wrong"
            case .version(let version): "it was written by a later version of Martlet (version \(version))"
            case .field(let field, let offset): "its \(field) makes no sense, \(offset) bytes behind its head"
            }
        }
    }

    private static let byteCount = 16

    private let magic: [UInt8]
    /// The version that is written, and the latest that is read.
    package let version: UInt16
    /// The longest file.
    package let byteLimit: Int

    /// An envelope.
    /// - Parameter magic: Four bytes.
    package init(magic: String, version: UInt16, byteLimit: Int) {
        self.magic = Array(magic.utf8)
        self.version = version
        self.byteLimit = byteLimit
    }

    /// The bytes of a file.
    /// - Parameter write: Writes what is in it.
    /// - Throws: ``Fault/length`` where that is too much.
    package func encode(_ write: (inout RecordWriter) -> Void) throws(Fault) -> [UInt8] {
        var writer = begun()
        write(&writer)
        return try sealed(writer)
    }

    /// The beginning of a file, behind which stands what is in it; ``sealed(_:)`` ends it.
    package func begun() -> RecordWriter {
        var writer = RecordWriter()
        writer.write(raw: magic)
        writer.write(version)
        writer.write(UInt16(0))
        writer.write(UInt32(0))
        writer.write(UInt32(0))
        return writer
    }

    /// The bytes of a file that was ``begun()``.
    /// - Throws: ``Fault/length`` where that is too much.
    package func sealed(_ written: RecordWriter) throws(Fault) -> [UInt8] {
        var writer = written
        guard writer.bytes.count <= byteLimit else { throw .length }
        writer.overwrite(UInt32(truncatingIfNeeded: writer.bytes.count - RecordEnvelope.byteCount), at: 8)
        writer.overwrite(RecordEnvelope.checksum(of: writer.bytes), at: 12)
        return writer.bytes
    }

    /// What is in the bytes of a file.
    /// - Parameter read: Reads all of it, and is told the version.
    package func decode<Value>(
        _ bytes: [UInt8], _ read: (inout RecordReader, UInt16) throws(RecordReader.Fault) -> Value
    ) throws(Fault) -> Value {
        guard bytes.count >= RecordEnvelope.byteCount, bytes.count <= byteLimit else { throw .length }
        guard bytes.starts(with: magic) else { throw .foreign }
        typealias Head = (version: UInt16, flags: UInt16, count: UInt32, checksum: UInt32)
        let head = try RecordEnvelope.reading { () throws(RecordReader.Fault) -> Head in
            var reader = RecordReader(bytes[4..<RecordEnvelope.byteCount])
            return (
                try reader.number("version"), try reader.number("flags"), try reader.number("length"),
                try reader.number("checksum")
            )
        }
        guard UInt64(head.count) == UInt64(bytes.count - RecordEnvelope.byteCount) else { throw .length }
        guard RecordEnvelope.checksum(of: bytes) == head.checksum else { throw .checksum }
        guard head.version <= version else { throw .version(head.version) }
        guard head.version > 0, head.flags == 0 else { throw .foreign }
        return try RecordEnvelope.reading { () throws(RecordReader.Fault) in
            var reader = RecordReader(bytes[RecordEnvelope.byteCount...])
            let value = try read(&reader, head.version)
            guard reader.remainingCount == 0 else { throw reader.fault("end") }
            return value
        }
    }

    private static func reading<Value>(
        _ read: () throws(RecordReader.Fault) -> Value
    ) throws(Fault) -> Value {
        do throws(RecordReader.Fault) {
            return try read()
        } catch {
            throw Fault(error)
        }
    }

    private static func checksum(of bytes: [UInt8]) -> UInt32 {
        var checksum = RecordChecksum()
        checksum.update(bytes.span.extracting(0..<12))
        checksum.update(bytes.span.extracting(byteCount..<bytes.count))
        return checksum.value
    }
}

/// Reads the numbers and texts of a record, little endian, and never beyond its end.
package struct RecordReader: Sendable {
    /// A record that is not what it should be.
    package struct Fault: Error, Hashable, Sendable {
        /// What was read.
        package var field: String
        /// Where in the record.
        package var offset: Int

        /// A fault of a field, at a place.
        package init(field: String, offset: Int) {
            self.field = field
            self.offset = offset
        }
    }

    private let bytes: ArraySlice<UInt8>
    private var position: Int

    /// A reader of bytes, at their start.
    package init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    /// How many bytes were not read yet.
    package var remainingCount: Int { bytes.endIndex - position }

    /// How many bytes were read.
    package var offset: Int { position - bytes.startIndex }

    /// A fault of a field that ends here.
    package func fault(_ field: String) -> Fault { Fault(field: field, offset: offset) }

    /// Reads a number of as many bytes as its type has.
    package mutating func number<Number: FixedWidthInteger>(_ field: String) throws(Fault) -> Number {
        var number: Number = 0
        for (place, byte) in try raw(Number.bitWidth / 8, field).enumerated() {
            number |= Number(truncatingIfNeeded: byte) << Number(truncatingIfNeeded: place * 8)
        }
        return number
    }

    /// Reads 1 or 0; another number is a fault.
    package mutating func flag(_ field: String) throws(Fault) -> Bool {
        let number: UInt8 = try number(field)
        guard number <= 1 else { throw fault(field) }
        return number == 1
    }

    /// Reads so many bytes as they are.
    package mutating func raw(_ count: Int, _ field: String) throws(Fault) -> ArraySlice<UInt8> {
        guard count >= 0, count <= remainingCount else { throw fault(field) }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

    /// Reads bytes behind their number, a `UInt32`, of which there may be so many at most.
    package mutating func counted(limit: Int, _ field: String) throws(Fault) -> ArraySlice<UInt8> {
        let count: UInt32 = try number(field)
        guard count <= limit else { throw fault(field) }
        return try raw(Int(count), field)
    }

    /// Reads text behind the number of its bytes, which must be UTF-8.
    package mutating func text(limit: Int, _ field: String) throws(Fault) -> String {
        guard let text = String(validating: try counted(limit: limit, field), as: UTF8.self) else {
            throw fault(field)
        }
        return text
    }

    /// Reads what stands behind a flag that is 1; nothing behind 0.
    package mutating func optional<Value>(
        _ field: String, _ read: (inout RecordReader) throws(Fault) -> Value
    ) throws(Fault) -> Value? { try flag(field) ? try read(&self) : nil }

    /// Reads a number behind a flag.
    package mutating func optionalNumber<Number: FixedWidthInteger>(
        _ field: String
    ) throws(Fault) -> Number? {
        try flag(field) ? try number(field) : nil
    }

    /// Reads text behind a flag.
    package mutating func optionalText(limit: Int, _ field: String) throws(Fault) -> String? {
        try flag(field) ? try text(limit: limit, field) : nil
    }
}

/// Writes the numbers and texts of a record, little endian.
package struct RecordWriter: Sendable {
    /// What was written.
    package private(set) var bytes: [UInt8] = []

    /// A record of nothing.
    package init() {}

    /// Makes room for so many bytes, which saves copying them later.
    package mutating func reserve(_ byteCount: Int) { bytes.reserveCapacity(byteCount) }

    /// Writes a number in as many bytes as its type has.
    package mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> Number(truncatingIfNeeded: shift)))
        }
    }

    /// Writes 1 or 0.
    package mutating func write(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

    /// Writes bytes as they are; their number is known to the reader.
    package mutating func write(raw more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

    /// Writes bytes behind their number, a `UInt32`.
    package mutating func write(counted more: some Collection<UInt8>) {
        write(UInt32(truncatingIfNeeded: more.count))
        bytes.append(contentsOf: more)
    }

    /// Writes text behind the number of its bytes.
    package mutating func write(text: String) { write(counted: text.utf8) }

    /// Writes a flag, and what is there behind it.
    package mutating func write<Value>(optional value: Value?, _ write: (Value, inout RecordWriter) -> Void) {
        self.write(value != nil)
        if let value { write(value, &self) }
    }

    /// Writes a number behind a flag.
    package mutating func write(optional number: (some FixedWidthInteger)?) {
        write(optional: number) { $1.write($0) }
    }

    /// Writes text behind a flag.
    package mutating func write(optional text: String?) { write(optional: text) { $1.write(text: $0) } }

    /// Writes over four bytes that were written before.
    package mutating func overwrite(_ number: UInt32, at offset: Int) {
        for place in 0..<4 where bytes.indices.contains(offset + place) {
            bytes[offset + place] = UInt8(truncatingIfNeeded: number >> UInt32(8 * place))
        }
    }
}
