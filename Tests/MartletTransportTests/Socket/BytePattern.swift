/// Bytes to send that show at the other end whether any was lost, doubled or moved.
enum BytePattern {
    /// So many bytes, which depend on the seed alone.
    ///
    /// Quick to make where debug code is slow: meanwhile a test has a thread of the few that all tests share.
    static func bytes(_ count: Int, seed: UInt8) -> [UInt8] {
        var value = UInt32(seed) &+ 1
        // A block of a length that no record or buffer has, repeated.
        let block = (0..<4093).map { _ in
            value = value &* 1_664_525 &+ 1_013_904_223
            return UInt8(truncatingIfNeeded: value >> 24)
        }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count { bytes += block.prefix(count - bytes.count) }
        return bytes
    }
}
