/// The header of a record in a file: 16 bytes that identify damaged files, foreign files, and files of a later version.
///
/// | offset | bytes | |
/// |---|---|---|
/// | 0 | 4 | the kind of record |
/// | 4 | 2 | version, 1 or more |
/// | 6 | 2 | 0 |
/// | 8 | 4 | length of the content, which ends the file |
/// | 12 | 4 | CRC-32 of the 12 bytes before and of the content |
///
/// Numbers are little endian. Every version keeps this layout.
package struct RecordEnvelope: Sendable {
    /// The reason why a file is not a readable record.
    package enum FormatError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The length differs from the one in the header, or exceeds the limit.
        case length
        /// The file does not start with the four bytes of this kind.
        case foreign
        /// The content does not match the checksum.
        case checksum
        /// The file was written by a later version of Martlet.
        case version(UInt16)
        /// A field of the content is invalid.
        case field(String, offset: Int)

        /// The reason as readable text.
        package var description: String {
            switch self {
            case .length: "the length does not match the header, or exceeds the limit"
            case .foreign: "not a record of this kind"
            case .checksum: "damaged: the checksum does not match"
            case .version(let version): "written by a later version of Martlet (format version \(version))"
            case .field(let field, let offset): "invalid \(field), \(offset) bytes after the header"
            }
        }
    }

    private static let byteCount = 16

    /// The magic that is written, and the one of earlier files.
    private let magics: [[UInt8]]
    /// The version that is written, and the latest that is read.
    package let version: UInt16
    /// The maximum length of a file.
    package let byteLimit: Int

    /// Creates the envelope of a kind of record.
    /// - Parameter former: The magic of earlier files, which are read, too. Each magic has four bytes.
    package init(magic: String, former: String? = nil, version: UInt16, byteLimit: Int) {
        magics = [magic, former].compactMap { $0.map { Array($0.utf8) } }
        (self.version, self.byteLimit) = (version, byteLimit)
    }

    /// Encodes a file.
    /// - Parameter write: Writes the content.
    /// - Throws: ``FormatError/length`` if the file exceeds the limit.
    package func encode(_ write: (inout RecordWriter) -> Void) throws(FormatError) -> [UInt8] {
        var writer = makeWriter()
        write(&writer)
        return try sealed(writer)
    }

    /// Returns a writer at the start of the content. ``sealed(_:)`` completes the file.
    package func makeWriter() -> RecordWriter {
        var writer = RecordWriter()
        writer.write(raw: magics[0])
        writer.write(version)
        writer.write(UInt16(0))
        writer.write(UInt64(0))
        return writer
    }

    /// Completes a file that ``makeWriter()`` started, and returns its bytes.
    /// - Throws: ``FormatError/length`` if the file exceeds the limit.
    package func sealed(_ written: RecordWriter) throws(FormatError) -> [UInt8] {
        var writer = written
        guard writer.bytes.count <= byteLimit else { throw .length }
        writer.overwrite(UInt32(truncatingIfNeeded: writer.bytes.count - RecordEnvelope.byteCount), at: 8)
        writer.overwrite(RecordEnvelope.checksum(of: writer.bytes), at: 12)
        return writer.bytes
    }

    /// Decodes the content of a file.
    /// - Parameter read: Reads the whole content. Receives a reader and the version.
    package func decode<Value>(
        _ bytes: [UInt8], _ read: (inout RecordReader, UInt16) throws(RecordReader.FieldError) -> Value
    ) throws(FormatError) -> Value {
        guard bytes.count >= RecordEnvelope.byteCount, bytes.count <= byteLimit else { throw .length }
        guard magics.contains(where: { bytes.starts(with: $0) }) else { throw .foreign }
        var head = RecordReader(bytes[4..<RecordEnvelope.byteCount])
        guard let version: UInt16 = try? head.number("version"), let flags: UInt16 = try? head.number("flags"),
            let count: UInt32 = try? head.number("length"), let checksum: UInt32 = try? head.number("checksum"),
            UInt64(count) == UInt64(bytes.count - RecordEnvelope.byteCount)
        else { throw .length }
        guard RecordEnvelope.checksum(of: bytes) == checksum else { throw .checksum }
        guard version <= self.version else { throw .version(version) }
        guard version > 0, flags == 0 else { throw .foreign }
        do throws(RecordReader.FieldError) {
            var reader = RecordReader(bytes[RecordEnvelope.byteCount...])
            let value = try read(&reader, version)
            guard reader.remainingCount == 0 else { throw reader.makeError("end") }
            return value
        } catch { throw .field(error.field, offset: error.offset) }
    }

    private static func checksum(of bytes: [UInt8]) -> UInt32 {
        var checksum = RecordChecksum()
        checksum.update(bytes.span.extracting(0..<12))
        checksum.update(bytes.span.extracting(byteCount..<bytes.count))
        return checksum.value
    }
}

/// A reader of the numbers and texts of a record, little endian, which never reads past the end.
package struct RecordReader: Sendable {
    /// An invalid field.
    package struct FieldError: Error, Hashable, Sendable {
        package var field: String
        /// The offset in the reader's bytes at which reading stopped.
        package var offset: Int
    }

    private let bytes: ArraySlice<UInt8>
    private var position: Int

    package init(_ bytes: ArraySlice<UInt8>) {
        self.bytes = bytes
        position = bytes.startIndex
    }

    package var remainingCount: Int { bytes.endIndex - position }

    /// The number of bytes that have been read.
    package var offset: Int { position - bytes.startIndex }

    /// Creates the error of a field, with the current offset.
    package func makeError(_ field: String) -> FieldError { FieldError(field: field, offset: offset) }

    /// Reads a number of as many bytes as its type has.
    @inlinable package mutating func number<Number: FixedWidthInteger>(_ field: String) throws(FieldError) -> Number {
        Number(truncatingIfNeeded: try number(Number.bitWidth / 8, field))
    }

    /// Reads a number of up to eight bytes.
    @usableFromInline package mutating func number(_ byteCount: Int, _ field: String) throws(FieldError) -> UInt64 {
        try raw(byteCount, field).reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads a flag: 1 or 0; another number is an error.
    package mutating func flag(_ field: String) throws(FieldError) -> Bool {
        let number: UInt8 = try number(field)
        guard number <= 1 else { throw makeError(field) }
        return number == 1
    }

    /// Reads that many bytes.
    package mutating func raw(_ count: Int, _ field: String) throws(FieldError) -> ArraySlice<UInt8> {
        guard count >= 0, count <= remainingCount else { throw makeError(field) }
        defer { position += count }
        return bytes[position..<(position + count)]
    }

    /// Reads a count, a `UInt32` of at most `limit`, and that many bytes.
    package mutating func counted(limit: Int, _ field: String) throws(FieldError) -> ArraySlice<UInt8> {
        let count: UInt32 = try number(field)
        guard count <= limit else { throw makeError(field) }
        return try raw(Int(count), field)
    }

    /// Reads the count of a text's bytes, and the text, which must be UTF-8.
    package mutating func text(limit: Int, _ field: String) throws(FieldError) -> String {
        guard let text = String(validating: try counted(limit: limit, field), as: UTF8.self) else {
            throw makeError(field)
        }
        return text
    }

    /// Reads a flag and, if it is 1, a value.
    package mutating func optional<Value>(_ field: String, _ read: (inout RecordReader) throws(FieldError) -> Value)
        throws(FieldError) -> Value?
    { try flag(field) ? try read(&self) : nil }

    /// Reads a flag and, if it is 1, a number.
    package mutating func optionalNumber<N: FixedWidthInteger>(_ field: String) throws(FieldError) -> N? {
        try flag(field) ? try number(field) : nil
    }

    /// Reads a flag and, if it is 1, a text.
    package mutating func optionalText(limit: Int, _ field: String) throws(FieldError) -> String? {
        try flag(field) ? try text(limit: limit, field) : nil
    }

    /// Reads a count of at most `limit`, a number of that type, and that many elements.
    package mutating func list<Count: FixedWidthInteger & UnsignedInteger, Element>(
        of count: Count.Type, limit: Count = .max, _ field: String,
        _ read: (inout RecordReader) throws(FieldError) -> Element
    ) throws(FieldError) -> [Element] {
        let count: Count = try number(field)
        guard count <= limit else { throw makeError(field) }
        var list: [Element] = []
        for _ in 0..<count { list.append(try read(&self)) }
        return list
    }
}

/// A writer of the numbers and texts of a record, little endian.
package struct RecordWriter: Sendable {
    /// The bytes written so far.
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Reserves capacity for that many bytes, which saves copying them later.
    package mutating func reserve(_ byteCount: Int) { bytes.reserveCapacity(byteCount) }

    /// Writes a number in as many bytes as its type has.
    @inlinable package mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        write(UInt64(truncatingIfNeeded: number), byteCount: Number.bitWidth / 8)
    }

    /// Writes the lowest bytes of a number.
    @usableFromInline package mutating func write(_ number: UInt64, byteCount: Int) {
        for place in 0..<byteCount { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * place))) }
    }

    /// Writes a flag as 1 or 0.
    package mutating func write(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

    /// Writes bytes without their count, which the reader must know.
    package mutating func write(raw more: some Sequence<UInt8>) { bytes.append(contentsOf: more) }

    /// Writes the count of bytes, a `UInt32`, and the bytes.
    package mutating func write(counted more: some Collection<UInt8>) {
        write(UInt32(truncatingIfNeeded: more.count))
        bytes.append(contentsOf: more)
    }

    /// Writes the count of a text's bytes, and the text.
    package mutating func write(text: String) { write(counted: text.utf8) }

    /// Writes a flag and, if there is one, a value.
    package mutating func write<Value>(optional value: Value?, _ write: (Value, inout RecordWriter) -> Void) {
        self.write(value != nil)
        if let value { write(value, &self) }
    }

    /// Writes a flag and, if there is one, a number.
    package mutating func write(optional number: (some FixedWidthInteger)?) { write(optional: number) { $1.write($0) } }

    /// Writes a flag and, if there is one, a text.
    package mutating func write(optional text: String?) { write(optional: text) { $1.write(text: $0) } }

    /// Replaces four bytes that were written before.
    package mutating func overwrite(_ number: UInt32, at offset: Int) {
        for place in 0..<4 where bytes.indices.contains(offset + place) {
            bytes[offset + place] = UInt8(truncatingIfNeeded: number >> UInt32(8 * place))
        }
    }
}
