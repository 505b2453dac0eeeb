/// How fast a range origin sends on each connection.
package struct RangePace: Hashable, Sendable {
    /// Bytes a second, at least 1.
    package var bytesPerSecond: Int
    /// How many bytes of an answer are sent at this pace before ``laterBytesPerSecond`` holds.
    package var changesAfter: UInt64?
    /// Bytes a second from then on, at least 1.
    package var laterBytesPerSecond: Int

    /// A pace, which may change once in each answer.
    package init(_ bytesPerSecond: Int, changingAfter count: UInt64? = nil, to later: Int? = nil) {
        self.bytesPerSecond = max(1, bytesPerSecond)
        changesAfter = count
        laterBytesPerSecond = max(1, later ?? bytesPerSecond)
    }

    /// The pause behind a piece that ends at an offset of the answer.
    package func pause(after count: Int, endingAt offset: UInt64) -> Duration {
        let isLater = changesAfter.map { offset > $0 } ?? false
        return .seconds(Double(count) / Double(isLater ? laterBytesPerSecond : bytesPerSecond))
    }

    /// How much is sent at once: a twentieth of a second's worth, and at most 64 KiB.
    package func pieceSize(at offset: UInt64) -> Int {
        let isLater = changesAfter.map { offset >= $0 } ?? false
        return min(64 << 10, max(1, (isLater ? laterBytesPerSecond : bytesPerSecond) / 20))
    }
}
