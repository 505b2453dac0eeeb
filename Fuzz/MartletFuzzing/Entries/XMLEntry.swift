import MartletXML

extension FuzzEntry {
    /// XML documents.
    ///
    /// Control 0: bit 0 sets small limits, bit 1 sets ISO-8859-1 as the transport's charset, and bit 2 rejects document
    /// types. The following controls are the sizes of pieces.
    ///
    /// The events and the error do not depend on how the bytes arrive. Elements are balanced. An error's offset is in
    /// the document. Events are within the limits and contain no character that XML forbids. A tree survives writing
    /// and parsing.
    static let xml = FuzzEntry("xml") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let limits =
            input.isSet(0, at: 0)
            ? XMLLimits(
                depth: 4, attributeCount: 3, nameByteCount: 8, valueByteCount: 16, byteCount: 200,
                nodeCount: 9)
            : XMLLimits.default
        let charset = input.isSet(1, at: 0) ? "ISO-8859-1" : nil
        let doctype: XMLDoctypePolicy = input.isSet(2, at: 0) ? .reject : .ignore
        let arrivals = input.arrivals(from: 1)
        let whole = XMLReading(input.payload, arrivals[0], charset, limits, doctype)
        for other in arrivals.dropFirst() {
            let pieces = XMLReading(input.payload, other, charset, limits, doctype)
            try require(pieces == whole, "\(pieces) when \(other), and \(whole) at once")
        }
        try whole.check(limits, count: input.payload.count)
        let tree: XMLTree
        do throws(XMLError) {
            tree = try XMLTree(input.payload, charset: charset, limits: limits, doctype: doctype)
        } catch {
            return try require(
                whole.error?.code == error.code || error.code == .limitExceeded,
                "\(error) for a tree, and \(String(describing: whole.error)) for events")
        }
        try require(whole.error == nil, "a tree of a document with \(String(describing: whole.error))")
        try checkRoundTrip(tree)
    }

    private static func checkRoundTrip(_ tree: XMLTree) throws(FuzzFinding) {
        let text: String
        do throws(XMLWritingError) { text = try tree.serialized() } catch {
            throw FuzzFinding("what was read is not written: \(error)")
        }
        do throws(XMLError) {
            let again = try XMLTree(text: text)
            guard again.root == tree.root, again.prologue == tree.prologue, again.epilogue == tree.epilogue
            else {
                throw XMLError(.malformedMarkup, at: XMLPosition(), "it reads back as another")
            }
        } catch {
            throw FuzzFinding("what was written is not read: \(error): \(text)")
        }
    }
}

/// The result of the event parser for an input.
private struct XMLReading: Equatable {
    var events: [XMLEvent] = []
    var error: XMLError?

    init(
        _ bytes: [UInt8], _ arrivals: Arrivals, _ charset: String?, _ limits: XMLLimits,
        _ doctype: XMLDoctypePolicy
    ) {
        var parser = XMLEventParser(charset: charset, limits: limits, doctype: doctype)
        var fed = 0
        do throws(XMLError) {
            for end in arrivals {
                parser.feed(bytes[fed..<end])
                fed = end
                while let event = try parser.next() { events.append(event) }
            }
            parser.finish()
            while let event = try parser.next() { events.append(event) }
        } catch {
            self.error = error
        }
    }

    func check(_ limits: XMLLimits, count: Int) throws(FuzzFinding) {
        var open: [XMLName] = []
        for event in events {
            switch event {
            case .start(let start):
                open.append(start.name)
                try require(open.count <= limits.depth, "\(open.count) elements are open")
                try require(
                    start.attributes.count + start.namespaces.count <= limits.attributeCount, "\(start)")
                try require(Set(start.attributes.map(\.name)).count == start.attributes.count, "\(start)")
            case .end(let name): try require(open.popLast() == name, "\(name) ends another one")
            case .text(let text):
                try require(!text.isEmpty && !open.isEmpty, "text where none is")
                try require(text.utf8.count <= 64 * 1024, "\(text.utf8.count) bytes of text")
                try require(!text.unicodeScalars.contains("\0"), "a NUL")
            default: break
            }
        }
        if let error {
            try require((0...count).contains(error.position.byteOffset), "\(error) of \(count) bytes")
        } else {
            try require(open.isEmpty, "\(open) are open at the end")
        }
    }
}
