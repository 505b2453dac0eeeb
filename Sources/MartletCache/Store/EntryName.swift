/// Which stored response: a key's digest, and which of its variants.
package struct EntryName: Hashable, Sendable {
    /// How many variants of one URL are kept (RFC 9111 §4.1). A server that varies without end costs no more than these.
    static let slotLimit = 8

    let digest: CacheDigest
    /// 0 up to and not including ``slotLimit``.
    let slot: Int

    /// The names of all variants of a key.
    static func all(of digest: CacheDigest) -> [EntryName] {
        (0..<slotLimit).map { EntryName(digest: digest, slot: $0) }
    }
}
