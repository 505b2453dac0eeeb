/// The checksum of stored bytes: CRC-32 as gzip and PNG have it (polynomial 0xEDB88320, reflected).
///
/// It tells a damaged file from a whole one, any single flipped bit for certain. It is no defence against somebody who
/// may write the file.
package struct RecordChecksum: Sendable {
    /// Eight tables of 256: what a byte does, followed by none to seven zero bytes.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var value = UInt32(byte)
            for _ in 0..<8 { value = value & 1 == 0 ? value >> 1 : value >> 1 ^ 0xEDB8_8320 }
            tables[byte] = value
        }
        for index in 256..<tables.count {
            let shorter = tables[index - 256]
            tables[index] = shorter >> 8 ^ tables[Int(shorter & 0xFF)]
        }
        return tables
    }()

    private var state: UInt32 = 0xFFFF_FFFF

    /// The checksum of no bytes, to be added to.
    package init() {}

    /// The checksum of bytes.
    package init(_ bytes: Span<UInt8>) {
        update(bytes)
    }

    /// The checksum of all that was added.
    package var value: UInt32 { ~state }

    /// Adds bytes.
    package mutating func update(_ bytes: Span<UInt8>) {
        let tables = Self.tables.span
        var crc = state
        var index = 0
        let count = bytes.count
        while index &+ 8 <= count {
            let low = crc ^ Self.word(bytes, index)
            let high = Self.word(bytes, index &+ 4)
            crc = tables[1792 &+ Int(low & 0xFF)] ^ tables[1536 &+ Int(low >> 8 & 0xFF)]
            crc ^= tables[1280 &+ Int(low >> 16 & 0xFF)] ^ tables[1024 &+ Int(low >> 24)]
            crc ^= tables[768 &+ Int(high & 0xFF)] ^ tables[512 &+ Int(high >> 8 & 0xFF)]
            crc ^= tables[256 &+ Int(high >> 16 & 0xFF)] ^ tables[Int(high >> 24)]
            index &+= 8
        }
        while index < count {
            crc = crc >> 8 ^ tables[Int((crc ^ UInt32(bytes[index])) & 0xFF)]
            index &+= 1
        }
        state = crc
    }

    @inline(__always)
    private static func word(_ bytes: Span<UInt8>, _ index: Int) -> UInt32 {
        let low = UInt32(bytes[index]) | UInt32(bytes[index &+ 1]) << 8
        return low | UInt32(bytes[index &+ 2]) << 16 | UInt32(bytes[index &+ 3]) << 24
    }
}
