/// Events to a tree.
struct TreeBuilder {
    private let nodeLimit: Int
    private var nodeCount = 0
    private var declaration: XMLDeclaration?
    private var doctype: XMLDoctype?
    private var prologue: [XMLTree.Node] = []
    private var epilogue: [XMLTree.Node] = []
    private var root: XMLTree.Element?
    /// The open elements, the innermost last.
    private var open: [XMLTree.Element] = []

    /// A builder of a tree of at most so many nodes.
    init(nodeLimit: Int) { self.nodeLimit = nodeLimit }

    /// Takes the next event of a document that is well-formed so far.
    mutating func take(_ event: XMLEvent, at position: XMLPosition) throws(XMLError) {
        switch event {
        case .declaration(let declaration): self.declaration = declaration
        case .doctype(let doctype): self.doctype = doctype
        case .start(let start):
            try count(1 + start.attributes.count + start.namespaces.count, at: position)
            open.append(
                XMLTree.Element(start.name, attributes: start.attributes, namespaces: start.namespaces))
        case .end:
            guard let element = open.popLast() else { return }
            if open.isEmpty { root = element } else { append(.element(element)) }
        case .text(let text):
            // A long text comes in pieces.
            if let last = open.indices.last, case .text(var whole) = open[last].children.last {
                // Taken out before it grows, so that it is not copied with each piece.
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

    /// The tree, when the document was complete.
    func tree(at position: XMLPosition) throws(XMLError) -> XMLTree {
        guard let root else { throw XMLError(.unexpectedEnd, at: position, "the document has no element") }
        return XMLTree(
            declaration: declaration, doctype: doctype, prologue: prologue, root: root, epilogue: epilogue)
    }

    private mutating func append(_ node: XMLTree.Node) {
        if let last = open.indices.last {
            open[last].children.append(node)
        } else if root == nil {
            prologue.append(node)
        } else {
            epilogue.append(node)
        }
    }

    private mutating func count(_ more: Int, at position: XMLPosition) throws(XMLError) {
        nodeCount += more
        guard nodeCount <= nodeLimit else {
            throw XMLError(.limitExceeded, at: position, "the tree has more than \(nodeLimit) nodes")
        }
    }
}
