/// A complete stored response, as far as deciding needs it. It never changes, and is one reference: a hit hands it on a
/// dozen times.
package final class StoredVariant: Equatable, Sendable {
    /// Its head.
    package let head: StoredHead
    /// The bytes of its body, as they came over the wire.
    package let bodyLength: UInt64
    /// What its fields say.
    package let facts: HeadFacts

    /// A stored response; its fields are read here, once.
    package init(head: StoredHead, bodyLength: UInt64) {
        self.head = head
        self.bodyLength = bodyLength
        facts = HeadFacts(head)
    }

    /// Whether two are of the same head and length.
    package static func == (left: StoredVariant, right: StoredVariant) -> Bool {
        left === right || left.head == right.head && left.bodyLength == right.bodyLength
    }
}
