/// A document in memory: its root element, and what stands around it.
///
/// ```swift
/// let feed = try XMLTree(bytes)
/// for item in feed.root.all("channel/item") {
///     print(item.first("title")?.text ?? "", item.first("enclosure")?["url"] ?? "")
/// }
/// ```
public struct XMLTree: Hashable, Sendable {
    /// The XML declaration; nil when there is none.
    public var declaration: XMLDeclaration?
    /// The document type; nil when there is none.
    public var doctype: XMLDoctype?
    /// Comments and instructions before the root element.
    public var prologue: [Node]
    /// The root element.
    public var root: Element
    /// Comments and instructions behind the root element.
    public var epilogue: [Node]

    /// The deepest that elements of a tree may nest, whatever ``XMLLimits/depth`` says: a tree is walked by recursion.
    public static let depthLimit = 512

    /// A document with a root element and nothing around it but the declaration.
    public init(root: Element, declaration: XMLDeclaration? = XMLDeclaration(encoding: "UTF-8")) {
        self.root = root
        self.declaration = declaration
        prologue = []
        epilogue = []
    }

    /// Reads a whole document.
    ///
    /// - Parameters:
    ///   - bytes: The document.
    ///   - charset: The encoding that the transport names; see ``XMLEventParser/init(charset:limits:doctype:)``.
    ///   - limits: What it may have at most.
    ///   - doctype: What becomes of a document type.
    public init(
        _ bytes: some Sequence<UInt8>, charset: String? = nil, limits: XMLLimits = .default,
        doctype: XMLDoctypeRule = .skip
    ) throws(XMLError) {
        var bounded = limits
        bounded.depth = min(limits.depth, XMLTree.depthLimit)
        var parser = XMLEventParser(charset: charset, limits: bounded, doctype: doctype)
        parser.feed(bytes)
        parser.finish()
        var builder = TreeBuilder(nodeLimit: bounded.sound.nodeCount)
        while let event = try parser.next() {
            try builder.take(event, at: parser.position)
        }
        self = try builder.tree(at: parser.position)
    }

    /// Reads a whole document that is text already; what it declares as its encoding is not looked at.
    public init(
        text: String, limits: XMLLimits = .default, doctype: XMLDoctypeRule = .skip
    ) throws(XMLError) {
        try self.init(text.utf8, charset: "UTF-8", limits: limits, doctype: doctype)
    }

    init(
        declaration: XMLDeclaration?, doctype: XMLDoctype?, prologue: [Node], root: Element, epilogue: [Node]
    ) {
        self.declaration = declaration
        self.doctype = doctype
        self.prologue = prologue
        self.root = root
        self.epilogue = epilogue
    }
}
