/// A complete stored response, as far as deciding needs it.
package struct StoredVariant: Equatable, Sendable {
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
}
