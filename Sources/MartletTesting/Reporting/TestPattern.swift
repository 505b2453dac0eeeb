/// Bytes that depend on nothing but their offset, so that a body of any length can be made without memory and
/// checked without a copy.
///
/// The pattern repeats after 65,521 bytes. That is a prime, so bytes that were lost, doubled or moved by a
/// power of two (a buffer, a page, a chunk) do not match.
public enum TestPattern {
    /// After how many bytes it repeats.
    public static let period = 65_521

    /// Five periods: any stretch of up to four can be taken from it in one piece.
    private static let block: [UInt8] = {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(5 * period)
        for index in 0..<period {
            // The upper bits of a multiplicative hash: neighbours differ, and no short stretch comes again.
            bytes.append(UInt8(truncatingIfNeeded: (UInt64(index) &* 0x9E37_79B9_7F4A_7C15) >> 40))
        }
        return bytes + bytes + bytes + bytes + bytes
    }()

    /// The most bytes that one call of ``bytes(from:count:)`` makes.
    static let stretchLimit = 4 * period

    /// The byte at an offset.
    public static func byte(at offset: UInt64) -> UInt8 {
        block[Int(offset % UInt64(period))]
    }

    /// So many bytes from an offset on; none for a count below 1.
    public static func bytes(from offset: UInt64, count: Int) -> [UInt8] {
        var result: [UInt8] = []
        var offset = offset
        var remaining = max(0, count)
        result.reserveCapacity(remaining)
        while remaining > 0 {
            let start = Int(offset % UInt64(period))
            let step = min(remaining, stretchLimit)
            result += block[start..<start + step]
            offset += UInt64(step)
            remaining -= step
        }
        return result
    }

    /// Where bytes differ from the pattern for the first time.
    /// - Parameters:
    ///   - bytes: What was received.
    ///   - offset: The offset of the first of them.
    /// - Returns: The index in `bytes`; `nil` when all are right.
    public static func firstMismatch(in bytes: [UInt8], at offset: UInt64) -> Int? {
        let start = Int(offset % UInt64(period))
        var index = 0
        while index < bytes.count {
            let from = (start + index) % period
            let step = min(bytes.count - index, stretchLimit)
            // Compared as wholes first: that is one call for each stretch where nothing is wrong.
            if bytes[index..<index + step] != block[from..<from + step] {
                return (index..<index + step).first { bytes[$0] != block[(start + $0) % period] }
            }
            index += step
        }
        return nil
    }
}
