/// Writes the numbers and texts of a record, little endian.
package struct RecordWriter: Sendable {
    /// What was written.
    package private(set) var bytes: [UInt8] = []

    /// A record of nothing.
    package init() {}

    /// Makes room for so many bytes, which saves copying them later.
    package mutating func reserve(_ byteCount: Int) {
        bytes.reserveCapacity(byteCount)
    }

    /// Writes a number in as many bytes as its type has.
    package mutating func write<Number: FixedWidthInteger>(_ number: Number) {
        for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
            bytes.append(UInt8(truncatingIfNeeded: number >> Number(truncatingIfNeeded: shift)))
        }
    }

    /// Writes 1 or 0.
    package mutating func write(_ flag: Bool) {
        bytes.append(flag ? 1 : 0)
    }

    /// Writes bytes as they are; their number is known to the reader.
    package mutating func write(raw more: some Sequence<UInt8>) {
        bytes.append(contentsOf: more)
    }

    /// Writes bytes behind their number, a `UInt32`.
    package mutating func write(counted more: some Collection<UInt8>) {
        write(UInt32(truncatingIfNeeded: more.count))
        bytes.append(contentsOf: more)
    }

    /// Writes over four bytes that were written before.
    package mutating func overwrite(_ number: UInt32, at offset: Int) {
        for place in 0..<4 where bytes.indices.contains(offset + place) {
            bytes[offset + place] = UInt8(truncatingIfNeeded: number >> UInt32(8 * place))
        }
    }
}
