/// Bytes in the formats of gzip and zlib, stored rather than compressed: valid for every decoder, and longer
/// than what they hold.
public enum StoredCoding {
    /// The most bytes of one stored block (RFC 1951 §3.2.4).
    private static let blockLimit = 65_535

    /// One member of a gzip file (RFC 1952).
    public static func gzip(_ bytes: [UInt8]) -> [UInt8] {
        let header: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255]
        return header + deflated(bytes) + littleEndian(CRC32(bytes).value)
            + littleEndian(UInt32(truncatingIfNeeded: bytes.count))
    }

    /// A zlib stream (RFC 1950): what HTTP calls `deflate`.
    public static func zlib(_ bytes: [UInt8]) -> [UInt8] {
        [0x78, 0x01] + deflated(bytes) + littleEndian(adler32(bytes)).reversed()
    }

    /// A bare deflate stream (RFC 1951): what some servers call `deflate`.
    public static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var start = 0
        repeat {
            let end = min(bytes.count, start + blockLimit)
            let length = UInt16(end - start)
            result.append(end == bytes.count ? 1 : 0)
            result += [UInt8(length & 0xFF), UInt8(length >> 8), UInt8(~length & 0xFF), UInt8(~length >> 8)]
            result += bytes[start..<end]
            start = end
        } while start < bytes.count
        return result
    }

    private static func littleEndian(_ number: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> UInt32(8 * $0)) }
    }

    private static func adler32(_ bytes: [UInt8]) -> UInt32 {
        var (low, high): (UInt32, UInt32) = (1, 0)
        for byte in bytes {
            low = (low + UInt32(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return high << 16 | low
    }
}
