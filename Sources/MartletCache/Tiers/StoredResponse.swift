/// A stored response as it was found, in memory or on disk.
///
/// It stays whole to its end, also when what is stored is replaced, evicted or removed meanwhile.
package final class StoredResponse: Sendable {
    /// Where its body is.
    package enum Body: Sendable {
        /// Here.
        case bytes([UInt8])
        /// In a file, to be read by calls that block.
        case file(EntryReader)
    }

    /// What is decided by: the head, the body's length, and what the fields say.
    package let variant: StoredVariant
    /// Which body it is. The number stays the same while heads are replaced by those of 304s, and from tier to tier and run
    /// to run; each body that is stored has another.
    package let representation: UInt64
    /// The body, as it came over the wire.
    package let body: Body
    /// Where in memory it was found; `nil` where on disk.
    let entry: MemoryEntry?
    /// At which place of memory it was found; `nil` where that was not noted.
    let place: Int?
    /// Where on disk it was found; `nil` where in memory.
    let reader: EntryReader?
    /// When it was looked up, by the changes of what is stored; `nil` where nobody may take it for what is stored now.
    let seen: InvalidationLedger.Epoch?
    /// Whether the disk had no other variant of its key that memory did not have.
    let isLastOnDisk: Bool

    /// All but the body.
    package var head: StoredHead { variant.head }

    /// Whether fields stand behind its body; for those who need no more of the head, which is large to be copied.
    package var hasTrailers: Bool { variant.head.trailers != nil }

    /// Whether memory answered.
    package var isInMemory: Bool { entry != nil }

    /// One in memory.
    init(_ entry: MemoryEntry, at place: Int? = nil) {
        self.place = place
        variant = entry.variant
        representation = entry.representation
        body = .bytes(entry.body)
        self.entry = entry
        reader = nil
        seen = nil
        isLastOnDisk = true
    }

    /// One on disk.
    init(_ reader: EntryReader, seen: InvalidationLedger.Epoch?, isLastOnDisk: Bool = false) {
        self.isLastOnDisk = isLastOnDisk
        variant = StoredVariant(head: reader.head, bodyLength: reader.byteCount)
        representation = reader.entry.generation
        body = reader.inlineBody.map { .bytes($0) } ?? .file(reader)
        entry = nil
        place = nil
        self.reader = reader
        self.seen = seen
    }

    /// The body of another, under a head that is not stored.
    package init(_ other: StoredResponse, head: StoredHead) {
        variant = StoredVariant(head: head, bodyLength: other.variant.bodyLength)
        representation = other.representation
        body = other.body
        entry = other.entry
        place = other.place
        reader = other.reader
        seen = nil
        isLastOnDisk = false
    }
}
