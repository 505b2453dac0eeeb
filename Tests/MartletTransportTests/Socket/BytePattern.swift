/// Test bytes that show whether any byte was lost, duplicated or moved.
enum BytePattern {
    /// Returns `count` bytes that depend only on the seed.
    ///
    /// The function is fast in debug builds, where all tests share a few threads.
    static func bytes(_ count: Int, seed: UInt8) -> [UInt8] {
        var value = UInt32(seed) &+ 1
        // A repeated block whose length differs from that of every record and buffer.
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
