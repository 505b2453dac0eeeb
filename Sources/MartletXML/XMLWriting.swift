/// An error of ``XMLTree/serialized()``: no document can contain the tree.
public struct XMLWritingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error.
    public enum Code: String, Hashable, Sendable {
        /// A text that is not a name, such as one with a space or a colon.
        case invalidName
        /// A character that no document can contain, not even by reference.
        case invalidCharacter
        /// A comment with `--`, an instruction with `?>`, an identifier with both kinds of quotes.
        case invalidContent
        /// A prefix with two namespaces, or an attribute with a namespace and no prefix.
        case invalidNamespace
        /// Two attributes of one name.
        case duplicateAttribute
        /// Elements that nest deeper than ``XMLTree/depthLimit``.
        case tooDeep
    }

    /// The kind of the error.
    public var code: Code
    /// The names of the elements from the root to the one with the error.
    public var path: [String]
    /// The description of the error.
    public var message: String

    /// The path, the message and the code.
    public var description: String { "/\(path.joined(separator: "/")): \(message) (\(code.rawValue))" }
}

extension XMLTree {
    /// Returns the document as text, to be sent as UTF-8. Parsing the text gives the same tree.
    ///
    /// The declaration always names UTF-8. Undeclared namespaces of names are declared where they are needed. No white
    /// space is added within the root element.
    /// - Throws: An ``XMLWritingError`` if no document can contain the tree; never for a tree that was read.
    public func serialized() throws(XMLWritingError) -> String {
        var writer = XMLWriter()
        try writer.write(self)
        return writer.output
    }
}

private struct XMLWriter {
    var output = ""
    private var path: [String] = []
    /// The namespaces of each prefix, the innermost last. The empty prefix is the default namespace.
    private var bindings: [String: [String]] = [:]
    /// The texts that were checked, and whether they are names.
    private var names: [[UInt8]: Bool] = [:]

    mutating func write(_ tree: XMLTree) throws(XMLWritingError) {
        if let declaration = tree.declaration {
            output += "<?xml version=\"1.0\" encoding=\"UTF-8\""
            if let isStandalone = declaration.isStandalone {
                output += " standalone=\"\(isStandalone ? "yes" : "no")\""
            }
            output += "?>\n"
        }
        if let doctype = tree.doctype { try write(doctype) }
        for node in tree.prologue { try writeOutside(node) }
        try write(tree.root)
        output += "\n"
        for node in tree.epilogue { try writeOutside(node) }
    }

    private mutating func write(_ doctype: XMLDoctype) throws(XMLWritingError) {
        var written = doctype
        var text = "<!DOCTYPE \(doctype.name)"
        func quoted(_ text: String) -> String { text.utf8.contains(0x22) ? "'\(text)'" : "\"\(text)\"" }
        if let publicID = doctype.publicID {
            written.systemID = doctype.systemID ?? ""
            text += " PUBLIC \(quoted(publicID)) \(quoted(written.systemID ?? ""))"
        } else if let systemID = doctype.systemID {
            text += " SYSTEM \(quoted(systemID))"
        }
        text += ">\n"
        guard XMLWriter.events(of: "\(text)<a/>").first == .doctype(written) else {
            throw makeError(.invalidContent, "\(doctype) cannot be written")
        }
        output += text
    }

    private mutating func writeOutside(_ node: XMLTree.Node) throws(XMLWritingError) {
        switch node {
        case .comment, .instruction:
            try write(node)
            output += "\n"
        case .text(let text) where text.unicodeScalars.allSatisfy(\.isSpaceInXML): break
        case .text, .element: throw makeError(.invalidContent, "text or an element outside of the root element")
        }
    }

    private mutating func write(_ node: XMLTree.Node) throws(XMLWritingError) {
        switch node {
        case .element(let element): try write(element)
        case .text(let text): try writeEscaped(text, inValue: false)
        case .comment(let text):
            try check(text)
            guard !text.contains("--"), text.utf8.last != 0x2D, !text.utf8.contains(0x0D) else {
                throw makeError(.invalidContent, "a comment contains -- or a CR, or ends with -")
            }
            output += "<!--\(text)-->"
        case .instruction(let target, let data):
            guard isName(target), target.lowercased() != "xml" else {
                throw makeError(.invalidName, "\(target.debugDescription) is not a target of an instruction")
            }
            try check(data)
            let first = data.unicodeScalars.first?.isSpaceInXML
            guard !data.contains("?>"), first != true, !data.utf8.contains(0x0D) else {
                throw makeError(.invalidContent, "an instruction contains ?> or a CR, or begins with white space")
            }
            output += data.isEmpty ? "<?\(target)?>" : "<?\(target) \(data)?>"
        }
    }

    private mutating func write(_ element: XMLTree.Element) throws(XMLWritingError) {
        path.append(element.name.qualified)
        guard path.count <= XMLTree.depthLimit else {
            throw makeError(.tooDeep, "elements nest more than \(XMLTree.depthLimit) deep")
        }
        try checkName(element.name)
        let declared = try declarations(of: element)
        for namespace in declared { bindings[namespace.prefix ?? "", default: []].append(namespace.name) }
        output += "<\(element.name.qualified)"
        for namespace in declared {
            output += namespace.prefix.map { " xmlns:\($0)=\"" } ?? " xmlns=\""
            try writeEscaped(namespace.name, inValue: true)
            output += "\""
        }
        for attribute in element.attributes {
            output += " \(attribute.name.qualified)=\""
            try writeEscaped(attribute.value, inValue: true)
            output += "\""
        }
        if element.children.isEmpty {
            output += "/>"
        } else {
            output += ">"
            for child in element.children { try write(child) }
            output += "</\(element.name.qualified)>"
        }
        for namespace in declared { bindings[namespace.prefix ?? ""]?.removeLast() }
        path.removeLast()
    }

    /// The declarations of the element, and those that its names need in addition.
    private mutating func declarations(of element: XMLTree.Element) throws(XMLWritingError) -> [XMLNamespace] {
        var declared: [String: String] = [:]
        var result: [XMLNamespace] = []
        for namespace in element.namespaces {
            let prefix = namespace.prefix ?? ""
            let isSound = namespace.prefix.map { isName($0) && !namespace.name.isEmpty } ?? true
            guard isSound, prefix != "xmlns", declared.updateValue(namespace.name, forKey: prefix) == nil,
                (prefix == "xml") == (namespace.name == XMLNamespace.xml), namespace.name != XMLNamespace.declarations
            else { throw makeError(.invalidNamespace, "the declaration of the prefix \(prefix) is not allowed") }
            result.append(namespace)
        }
        var seen: Set<String> = []
        var expanded: Set<XMLName> = []
        for (place, name) in ([element.name] + element.attributes.map(\.name)).enumerated() {
            let isAttribute = place > 0
            if isAttribute {
                try checkName(name)
                guard seen.insert(name.qualified).inserted, expanded.insert(name).inserted else {
                    throw makeError(.duplicateAttribute, "two attributes \(name)")
                }
                guard name.prefix != nil || name.namespace == nil, name.qualified != "xmlns" else {
                    throw makeError(.invalidNamespace, "the attribute \(name) lacks a prefix or is named xmlns")
                }
                if name.prefix == nil { continue }
            }
            let (prefix, namespace) = (name.prefix ?? "", name.namespace ?? "")
            guard prefix.isEmpty || !namespace.isEmpty, prefix != "xmlns" else {
                throw makeError(.invalidNamespace, "the prefix \(prefix) has no namespace")
            }
            let current = declared[prefix] ?? (prefix == "xml" ? XMLNamespace.xml : bindings[prefix]?.last ?? "")
            if current.utf8.elementsEqual(namespace.utf8) { continue }
            guard declared[prefix] == nil, prefix != "xml", namespace != XMLNamespace.xml,
                namespace != XMLNamespace.declarations
            else { throw makeError(.invalidNamespace, "the prefix \(prefix) has two namespaces") }
            declared[prefix] = namespace
            result.append(XMLNamespace(namespace, prefix: name.prefix))
        }
        return result
    }

    private mutating func checkName(_ name: XMLName) throws(XMLWritingError) {
        guard isName(name.local), name.prefix.map({ isName($0) }) != false else {
            throw makeError(.invalidName, "\(name.qualified.debugDescription) is not a name")
        }
    }

    /// Whether the parser reads the text as a name without a colon.
    private mutating func isName(_ text: String) -> Bool {
        // By bytes: of two equal strings with different bytes, only one may be a valid name.
        let key = Array(text.utf8)
        if let known = names[key] { return known }
        let events = XMLWriter.events(of: "<\(text)/>")
        let isName = events == [.start(XMLElementStart(XMLName(text))), .end(XMLName(text))]
        names[key] = isName
        return isName
    }

    /// The events of a document; empty if it is not well-formed.
    private static func events(of text: String) -> [XMLEvent] {
        var parser = XMLEventParser(charset: "UTF-8", limits: XMLLimits(nameByteCount: .max, valueByteCount: .max))
        parser.feed(text.utf8)
        parser.finish()
        var events: [XMLEvent] = []
        do throws(XMLError) { while let event = try parser.next() { events.append(event) } } catch { return [] }
        return events
    }

    private func check(_ text: String) throws(XMLWritingError) {
        for scalar in text.unicodeScalars where !scalar.isAllowedInXML {
            throw makeError(.invalidCharacter, "\(String(scalar).debugDescription) is not allowed in a document")
        }
    }

    private mutating func writeEscaped(_ text: String, inValue: Bool) throws(XMLWritingError) {
        try check(text)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": output += "&amp;"
            case "<": output += "&lt;"
            case ">": output += "&gt;"
            // A parser converts a CR to a line feed.
            case "\r": output += "&#13;"
            case "\"" where inValue: output += "&quot;"
            // In a value, a parser converts these to spaces.
            case "\n" where inValue: output += "&#10;"
            case "\t" where inValue: output += "&#9;"
            default: output.unicodeScalars.append(scalar)
            }
        }
    }

    private func makeError(_ code: XMLWritingError.Code, _ message: String) -> XMLWritingError {
        XMLWritingError(code: code, path: path, message: message)
    }
}
