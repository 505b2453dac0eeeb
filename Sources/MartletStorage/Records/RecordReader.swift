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
    package func fault(_ field: String) -> Fault {
        Fault(field: field, offset: offset)
    }

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
}
