import CMartletLinux
import CMartletZlib

/// The checksum of bodies: CRC-32C (polynomial 0x82F63B78, reflected; RFC 3720 §12.1), computed at the speed of memory
/// by the processor's instruction if it has one, and by tables otherwise. Like ``RecordChecksum``, it detects every
/// single flipped bit, and does not protect against attackers who can write the file.
package struct CastagnoliChecksum: Sendable {
    /// The checksum of all bytes added so far.
    package private(set) var value: UInt32 = 0

    private static let polynomial: UInt32 = 0x82F6_3B78
    private static let hasInstruction = martlet_has_crc32c() != 0
    /// The quarters of blocks that are processed together: their size, and the power of x that moves a remainder.
    private static let strides: [(quarter: Int, power: UInt32)] = [14, 10].map { (1 << $0, power(bytes: $0)) }
    /// The remainders of each byte followed by zero to seven zero bytes.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 8 * 256)
        for byte in 0..<256 {
            var remainder = UInt32(byte)
            for _ in 0..<8 { remainder = remainder & 1 == 0 ? remainder >> 1 : remainder >> 1 ^ polynomial }
            tables[byte] = remainder
        }
        for place in 256..<(8 * 256) {
            let before = tables[place - 256]
            tables[place] = tables[Int(before & 0xFF)] ^ before >> 8
        }
        return tables
    }()

    package init() {}

    package init(_ bytes: Span<UInt8>) { update(bytes) }

    package mutating func update(_ bytes: Span<UInt8>) {
        value = Self.hasInstruction ? Self.byInstruction(~value, bytes) : Self.byTables(~value, bytes)
        value = ~value
    }

    // MARK: By the instruction

    private static func byInstruction(_ start: UInt32, _ bytes: Span<UInt8>) -> UInt32 {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            guard let address = bytes.baseAddress else { return start }
            var (remainder, offset) = (start, 0)
            for stride in strides {
                while bytes.count - offset >= 4 * stride.quarter {
                    var parts: (UInt32, UInt32, UInt32, UInt32) = (0, 0, 0, 0)
                    unsafe martlet_crc32c_quarters(
                        remainder, address + offset, UInt(stride.quarter), &parts.0, &parts.1, &parts.2, &parts.3)
                    remainder = product(parts.0, stride.power) ^ parts.1
                    remainder = product(remainder, stride.power) ^ parts.2
                    remainder = product(remainder, stride.power) ^ parts.3
                    offset += 4 * stride.quarter
                }
            }
            let words = (bytes.count - offset) & ~7
            remainder = unsafe martlet_crc32c(remainder, address + offset, UInt(words))
            offset += words
            while offset < bytes.count {
                remainder = unsafe single(remainder, bytes[offset])
                offset += 1
            }
            return remainder
        }
    }

    /// The product of two polynomials modulo the polynomial of the checksum.
    private static func product(_ left: UInt32, _ right: UInt32) -> UInt32 {
        var (product, shifted): (UInt32, UInt32) = (0, right)
        var bit: UInt32 = 1 << 31
        while bit != 0 {
            if left & bit != 0 { product ^= shifted }
            shifted = shifted & 1 == 0 ? shifted >> 1 : shifted >> 1 ^ polynomial
            bit >>= 1
        }
        return product
    }

    /// x to the power of the number of bits in 2ⁿ bytes.
    private static func power(bytes exponent: Int) -> UInt32 {
        var power: UInt32 = 1 << 30
        for _ in 0..<(exponent + 3) { power = product(power, power) }
        return power
    }

    // MARK: By tables

    /// Adds bytes by tables, like ``update(_:)`` on a processor without the instruction.
    package mutating func updateByTables(_ bytes: Span<UInt8>) { value = ~Self.byTables(~value, bytes) }

    private static func byTables(_ start: UInt32, _ bytes: Span<UInt8>) -> UInt32 {
        var (remainder, offset) = (start, 0)
        let tables = tables.span
        while bytes.count - offset >= 8 {
            var word = UInt64(0)
            for place in 0..<8 { word |= UInt64(bytes[offset + place]) << UInt64(8 * place) }
            word ^= UInt64(remainder)
            remainder = 0
            for place in 0..<8 {
                remainder ^= tables[(7 - place) * 256 + Int(truncatingIfNeeded: word >> UInt64(8 * place) & 0xFF)]
            }
            offset += 8
        }
        while offset < bytes.count {
            remainder = single(remainder, bytes[offset])
            offset += 1
        }
        return remainder
    }

    private static func single(_ remainder: UInt32, _ byte: UInt8) -> UInt32 {
        tables[Int(truncatingIfNeeded: (remainder ^ UInt32(byte)) & 0xFF)] ^ remainder >> 8
    }
}

/// The checksum of stored bytes: the CRC-32 of gzip and PNG (polynomial 0xEDB88320, reflected), computed by zlib. It
/// detects damage, and every single flipped bit. It does not protect against attackers who can write the file.
package struct RecordChecksum: Hashable, Sendable {
    /// The checksum of all bytes added so far.
    package private(set) var value: UInt32 = 0

    package init() {}

    package init(_ bytes: Span<UInt8>) { update(bytes) }

    package mutating func update(_ bytes: Span<UInt8>) {
        unsafe bytes.withUnsafeBufferPointer { bytes in
            // Without an address zlib would restart the checksum.
            guard let start = bytes.baseAddress, !bytes.isEmpty else { return }
            value = UInt32(truncatingIfNeeded: unsafe crc32_z(UInt(value), start, z_size_t(bytes.count)))
        }
    }
}
