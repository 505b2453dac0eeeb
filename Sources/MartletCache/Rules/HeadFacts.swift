package import MartletWire

/// What the fields of a stored response say, read once: whoever keeps stored responses in memory keeps this with them.
package struct HeadFacts: Equatable, Sendable {
    /// Its directives.
    package let control: CacheControl
    /// Its dates and age.
    package let dates: MessageDates
    /// Its entity tag.
    package let entityTag: EntityTag?
    /// The codings that its body is stored in, by their names in lower case; most have none.
    let codings: [String]

    /// Reads a stored head.
    package init(_ head: StoredHead) {
        control = CacheControl(response: head.fields)
        dates = MessageDates(head.fields, received: head.responseTime)
        entityTag = EntityTag(of: head.fields)
        codings = CodingRule.codings(of: head.fields)
    }
}
