/// One version of the file that a range origin serves: a stretch of ``TestPattern``, so that a file of any length takes no
/// memory, and two versions differ from their first byte on.
package struct RangeVersion: Hashable, Sendable {
    /// Its length in bytes.
    package var byteCount: UInt64
    /// Where in the pattern it begins; other versions begin elsewhere.
    package var place: UInt64
    /// Its entity tag as sent, weak or strong; `nil` for none.
    package var entityTag: String?
    /// When it was made, in seconds since 1970; `nil` for no Last-Modified.
    package var lastModified: Int64?

    /// A version.
    package init(
        _ byteCount: UInt64, place: UInt64 = 0, entityTag: String? = nil, lastModified: Int64? = nil
    ) {
        self.byteCount = byteCount
        self.place = place
        self.entityTag = entityTag
        self.lastModified = lastModified
    }

    /// Some of its bytes.
    package func bytes(from offset: UInt64, count: Int) -> [UInt8] {
        TestPattern.bytes(from: place + offset, count: count)
    }

    /// All of its bytes.
    package var contents: [UInt8] { bytes(from: 0, count: Int(byteCount)) }

    /// Where bytes that were received from an offset on are not its own; `nil` where all are right.
    package func firstMismatch(in bytes: [UInt8], at offset: UInt64 = 0) -> UInt64? {
        guard offset <= byteCount, UInt64(bytes.count) <= byteCount - offset else { return byteCount }
        return TestPattern.firstMismatch(in: bytes, at: place + offset).map { offset + UInt64($0) }
    }
}
