/// Limits on a document. Each limits the memory that a hostile document can use.
public struct XMLLimits: Hashable, Sendable {
    /// The maximum depth of nested elements; 256 by default.
    public var depth: Int
    /// The maximum number of attributes of an element, namespace declarations included; 512 by default.
    public var attributeCount: Int
    /// The maximum length of a name with its prefix, and of the name of a namespace, in bytes of UTF-8; 1,024 by
    /// default.
    public var nameByteCount: Int
    /// The maximum length of an attribute's value, a comment, an instruction or a document type, in bytes of UTF-8; 1
    /// MiB by default.
    ///
    /// A tag with all its attributes may have twice as many bytes, and 64 KiB more. The same limit applies to white
    /// space and declarations outside of the root element. Text is delivered in pieces and needs no limit.
    public var valueByteCount: Int
    /// The maximum length of a document in bytes; none by default, since events do not accumulate.
    public var byteCount: Int
    /// The maximum number of elements, attributes, texts, comments and instructions of a tree; 1,000,000 by default.
    /// It limits the memory: the four bytes of `<a/>` need about a hundred bytes.
    public var nodeCount: Int
    /// The maximum size of all different names of a document together, in bytes of UTF-8 plus 64 for each name; 8 MiB
    /// by default. The parser stores each name once, so endless new names would otherwise fill the memory.
    public var vocabularyByteCount: Int

    /// Creates limits. Numbers below 1 count as 1.
    public init(
        depth: Int = 256, attributeCount: Int = 512, nameByteCount: Int = 1024, valueByteCount: Int = 1 << 20,
        byteCount: Int = .max, nodeCount: Int = 1_000_000, vocabularyByteCount: Int = 8 << 20
    ) {
        (self.depth, self.attributeCount, self.nameByteCount) = (depth, attributeCount, nameByteCount)
        (self.valueByteCount, self.byteCount, self.nodeCount) = (valueByteCount, byteCount, nodeCount)
        self.vocabularyByteCount = vocabularyByteCount
    }

    /// The default limits.
    public static let `default` = XMLLimits()

    /// The same limits with nothing below 1.
    var sound: XMLLimits {
        XMLLimits(
            depth: max(1, depth), attributeCount: max(1, attributeCount), nameByteCount: max(1, nameByteCount),
            valueByteCount: max(1, valueByteCount), byteCount: max(1, byteCount), nodeCount: max(1, nodeCount),
            vocabularyByteCount: max(1, vocabularyByteCount))
    }

    /// The maximum number of bytes that expat holds: a tag, or everything between two events outside of the root.
    var tokenByteCount: Int { 2 * min(valueByteCount, .max / 4) + (64 << 10) }
}

/// The treatment of a document type declaration (XML 1.0 §2.8).
///
/// With either policy, nothing outside of the document is read, and no entity can be declared. So a document cannot
/// make the parser fetch or expand anything.
public enum XMLDoctypePolicy: String, Hashable, Sendable {
    /// A document type is an error.
    case reject
    /// The name and the identifiers are reported; the rest is skipped. Anything that cannot be skipped without changing
    /// the meaning of the document is an error: declarations of entities, default values of attributes, references to
    /// parameter entities. Declarations of elements, attributes and notations have no effect.
    case ignore
}
