/// A document in memory: its root element, and the comments and instructions around it.
///
/// ```swift
/// let feed = try XMLTree(bytes)
/// for item in feed.root.all("channel/item") {
///     print(item.first("title")?.text ?? "", item.first("enclosure")?["url"] ?? "")
/// }
/// ```
public struct XMLTree: Hashable, Sendable {
    /// The XML declaration; `nil` if absent.
    public var declaration: XMLDeclaration?
    /// The document type; `nil` if absent.
    public var doctype: XMLDoctype?
    /// The comments and instructions before the root element.
    public var prologue: [Node] = []
    /// The root element.
    public var root: Element
    /// The comments and instructions after the root element.
    public var epilogue: [Node] = []
    /// The maximum depth of the elements of a tree, since its functions are recursive. It also limits
    /// ``XMLLimits/depth``.
    public static let depthLimit = 512

    /// Creates a document with only a root element and a declaration.
    public init(root: Element, declaration: XMLDeclaration? = XMLDeclaration(encoding: "UTF-8")) {
        (self.root, self.declaration) = (root, declaration)
    }

    /// Reads a whole document.
    /// - Parameters:
    ///   - bytes: The document.
    ///   - charset: The encoding from the transport; see ``XMLEventParser/init(charset:limits:doctype:)``.
    ///   - limits: The limits of depth, sizes and counts.
    ///   - doctype: The treatment of a document type; by default it is skipped.
    public init(
        _ bytes: some Sequence<UInt8>, charset: String? = nil, limits: XMLLimits = .default,
        doctype: XMLDoctypePolicy = .ignore
    ) throws(XMLError) {
        var bounded = limits
        bounded.depth = min(limits.depth, XMLTree.depthLimit)
        var parser = XMLEventParser(charset: charset, limits: bounded, doctype: doctype)
        parser.feed(bytes)
        parser.finish()
        var builder = TreeBuilder(nodeLimit: bounded.sound.nodeCount)
        while let event = try parser.next() { try builder.append(event, at: parser.position) }
        self = try builder.tree(at: parser.position)
    }

    /// Reads a whole document from text. The encoding that it declares is ignored.
    public init(text: String, limits: XMLLimits = .default, doctype: XMLDoctypePolicy = .ignore) throws(XMLError) {
        try self.init(text.utf8, charset: "UTF-8", limits: limits, doctype: doctype)
    }

    /// A part of an element's content.
    public enum Node: Hashable, Sendable {
        /// An element with its content.
        case element(Element)
        /// Text, CDATA sections included. In a parsed tree, two texts are never adjacent.
        case text(String)
        /// A comment, without its delimiters.
        case comment(String)
        /// A processing instruction.
        case instruction(target: String, data: String)
    }

    /// An element with its attributes and its content.
    public struct Element: Hashable, Sendable {
        /// The name of the element.
        public var name: XMLName
        /// The attributes in document order, without namespace declarations.
        public var attributes: [XMLAttribute]
        /// The namespace declarations of the element.
        public var namespaces: [XMLNamespace]
        /// The content in document order.
        public var children: [Node]

        /// Creates an element.
        public init(
            _ name: XMLName, attributes: [XMLAttribute] = [], namespaces: [XMLNamespace] = [], children: [Node] = []
        ) { (self.name, self.attributes, self.namespaces, self.children) = (name, attributes, namespaces, children) }

        /// Creates an element in no namespace that contains text.
        public init(_ local: String, text: String) {
            self.init(XMLName(local), children: text.isEmpty ? [] : [.text(text)])
        }

        /// The value of the attribute with a local name, in no namespace or in the one given; `nil` if absent.
        public subscript(_ local: String, namespace namespace: String? = nil) -> String? {
            attributes.first { $0.name == XMLName(local, namespace: namespace) }?.value
        }

        /// The text of the element and of all elements in it, in document order.
        public var text: String {
            var result = ""
            appendText(to: &result)
            return result
        }

        /// The child elements.
        public var elements: [Element] {
            children.compactMap { if case .element(let element) = $0 { element } else { nil } }
        }

        /// Finds the first element at a path.
        /// - Parameters:
        ///   - path: Local names, separated by slashes: `channel/item/title`. `*` is any name.
        ///   - namespace: The namespace of each name; `nil`, the default, for any or none.
        public func first(_ path: String, in namespace: String? = nil) -> Element? {
            var found: Element?
            walk(XMLTree.steps(path)[...], namespace) { element in
                found = element
                return false
            }
            return found
        }

        /// Finds all elements at a path, in document order. See ``first(_:in:)``.
        public func all(_ path: String, in namespace: String? = nil) -> [Element] {
            var found: [Element] = []
            walk(XMLTree.steps(path)[...], namespace) { element in
                found.append(element)
                return true
            }
            return found
        }

        private func appendText(to result: inout String) {
            for child in children {
                switch child {
                case .text(let text): result += text
                case .element(let element): element.appendText(to: &result)
                case .comment, .instruction: break
                }
            }
        }

        /// Visits the elements at the end of a path until the closure returns `false`; `false` if it did.
        @discardableResult private func walk(
            _ steps: ArraySlice<String>, _ namespace: String?, _ visit: (Element) -> Bool
        ) -> Bool {
            guard let step = steps.first else { return visit(self) }
            for case .element(let element) in children {
                let isNamed = step == "*" || element.name.local.utf8.elementsEqual(step.utf8)
                guard isNamed, namespace == nil || element.name.namespace == namespace else { continue }
                guard element.walk(steps.dropFirst(), namespace, visit) else { return false }
            }
            return true
        }
    }

    private static func steps(_ path: String) -> [String] { path.split(separator: "/").map(String.init) }
}

private struct TreeBuilder {
    private let nodeLimit: Int
    private var nodeCount = 0
    /// The document; its root element is empty until ``hasRoot``.
    private var tree = XMLTree(root: XMLTree.Element(XMLName("")), declaration: nil)
    private var hasRoot = false
    /// The open elements, the innermost last.
    private var open: [XMLTree.Element] = []

    init(nodeLimit: Int) { self.nodeLimit = nodeLimit }

    /// Adds the next event of a document that is well-formed so far.
    mutating func append(_ event: XMLEvent, at position: XMLPosition) throws(XMLError) {
        switch event {
        case .declaration(let declaration): tree.declaration = declaration
        case .doctype(let doctype): tree.doctype = doctype
        case .start(let start):
            try count(1 + start.attributes.count + start.namespaces.count, at: position)
            open.append(XMLTree.Element(start.name, attributes: start.attributes, namespaces: start.namespaces))
        case .end:
            guard let element = open.popLast() else { return }
            if open.isEmpty { (tree.root, hasRoot) = (element, true) } else { append(.element(element)) }
        case .text(let text):
            // A long text is delivered in pieces.
            if let last = open.indices.last, case .text(var whole) = open[last].children.last {
                // The text is removed before it grows, so that it is not copied for each piece.
                open[last].children.removeLast()
                whole += text
                open[last].children.append(.text(whole))
            } else {
                try count(1, at: position)
                append(.text(text))
            }
        case .comment(let text):
            try count(1, at: position)
            append(.comment(text))
        case .instruction(let target, let data):
            try count(1, at: position)
            append(.instruction(target: target, data: data))
        }
    }

    func tree(at position: XMLPosition) throws(XMLError) -> XMLTree {
        guard hasRoot else { throw XMLError(.unexpectedEnd, at: position, "the document has no element") }
        return tree
    }

    private mutating func append(_ node: XMLTree.Node) {
        if let last = open.indices.last {
            open[last].children.append(node)
        } else if hasRoot {
            tree.epilogue.append(node)
        } else {
            tree.prologue.append(node)
        }
    }

    private mutating func count(_ more: Int, at position: XMLPosition) throws(XMLError) {
        nodeCount += more
        guard nodeCount <= nodeLimit else {
            throw XMLError(.limitExceeded, at: position, "the tree has more than \(nodeLimit) nodes")
        }
    }
}
