/// What a document may have at most. Each bounds the memory that a hostile one can take.
public struct XMLLimits: Hashable, Sendable {
    /// How deep elements may nest; 256 by default. Stops piles of start tags.
    public var depth: Int
    /// How many attributes an element may have, namespace declarations among them; 512 by default.
    public var attributeCount: Int
    /// The most bytes, as UTF-8, of a name; 1,024 by default.
    public var nameByteCount: Int
    /// The most bytes, as UTF-8, of an attribute's value, a comment, an instruction, and of a document type; 1 MiB by
    /// default. Text is handed out in pieces and needs no limit.
    public var valueByteCount: Int
    /// The most bytes of a document; none by default, since memory does not grow with it when events are read.
    public var byteCount: Int
    /// The most elements, texts, comments and instructions of a tree; 1,000,000 by default. Stops four bytes of `<a/>` from
    /// becoming a hundred in memory without end.
    public var nodeCount: Int

    /// Limits; the defaults where nothing is said. Numbers below 1 count as 1.
    public init(
        depth: Int = 256, attributeCount: Int = 512, nameByteCount: Int = 1024,
        valueByteCount: Int = 1 << 20, byteCount: Int = .max, nodeCount: Int = 1_000_000
    ) {
        self.depth = depth
        self.attributeCount = attributeCount
        self.nameByteCount = nameByteCount
        self.valueByteCount = valueByteCount
        self.byteCount = byteCount
        self.nodeCount = nodeCount
    }

    /// The defaults.
    public static let `default` = XMLLimits()

    /// The same with nothing below 1.
    var sound: XMLLimits {
        XMLLimits(
            depth: max(1, depth), attributeCount: max(1, attributeCount),
            nameByteCount: max(1, nameByteCount),
            valueByteCount: max(1, valueByteCount), byteCount: max(1, byteCount), nodeCount: max(1, nodeCount)
        )
    }
}
