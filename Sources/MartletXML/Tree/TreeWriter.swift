/// A tree to text.
struct TreeWriter {
    private var output = ""
    private var path: [String] = []
    /// What prefixes stand for, the innermost last; the empty one is the default.
    private var bindings: [String: [String]] = [:]

    /// The text of a document.
    static func text(of tree: XMLTree) throws(XMLWritingError) -> String {
        var writer = TreeWriter()
        try writer.write(tree)
        return writer.output
    }

    private mutating func write(_ tree: XMLTree) throws(XMLWritingError) {
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
        let parts = doctype.name.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 2, parts.allSatisfy(XMLCharacter.isPlainName) else {
            throw fault(.invalidName, "\(doctype.name.debugDescription) is no name")
        }
        output += "<!DOCTYPE \(doctype.name)"
        if let publicID = doctype.publicID {
            guard publicID.unicodeScalars.allSatisfy({ XMLCharacter.isPublicIdentifier($0.value) }) else {
                throw fault(.invalidContent, "\(publicID.debugDescription) is no public identifier")
            }
            output += " PUBLIC \"\(publicID)\" \(try literal(doctype.systemID ?? ""))"
        } else if let systemID = doctype.systemID {
            output += " SYSTEM \(try literal(systemID))"
        }
        output += ">\n"
    }

    private func literal(_ text: String) throws(XMLWritingError) -> String {
        try check(text)
        if !text.utf8.contains(0x22) { return "\"\(text)\"" }
        guard !text.utf8.contains(0x27) else {
            throw fault(.invalidContent, "an identifier has both kinds of quotes")
        }
        return "'\(text)'"
    }

    private mutating func writeOutside(_ node: XMLTree.Node) throws(XMLWritingError) {
        switch node {
        case .comment, .instruction:
            try write(node)
            output += "\n"
        case .text(let text) where text.unicodeScalars.allSatisfy({ XMLCharacter.isSpace($0.value) }): break
        case .text, .element:
            throw fault(.invalidContent, "text or an element stands beside the root element")
        }
    }

    private mutating func write(_ node: XMLTree.Node) throws(XMLWritingError) {
        switch node {
        case .element(let element): try write(element)
        case .text(let text): try writeEscaped(text, inValue: false)
        case .comment(let text):
            try check(text)
            guard !text.contains("--"), text.utf8.last != 0x2D, !text.utf8.contains(0x0D) else {
                throw fault(.invalidContent, "a comment has --, or a CR, or ends with -")
            }
            output += "<!--\(text)-->"
        case .instruction(let target, let data):
            guard XMLCharacter.isPlainName(target), target.lowercased() != "xml" else {
                throw fault(.invalidName, "\(target.debugDescription) is no target of an instruction")
            }
            try check(data)
            let first = data.unicodeScalars.first.map { XMLCharacter.isSpace($0.value) }
            guard !data.contains("?>"), first != true, !data.utf8.contains(0x0D) else {
                throw fault(.invalidContent, "an instruction has ?>, or a CR, or begins with space")
            }
            output += data.isEmpty ? "<?\(target)?>" : "<?\(target) \(data)?>"
        }
    }

    private mutating func write(_ element: XMLTree.Element) throws(XMLWritingError) {
        path.append(element.name.qualified)
        guard path.count <= XMLTree.depthLimit else {
            throw fault(.tooDeep, "elements nest more than \(XMLTree.depthLimit) deep")
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

    /// What the element declares, and what its names need besides.
    private func declarations(of element: XMLTree.Element) throws(XMLWritingError) -> [XMLNamespace] {
        var declared: [String: String] = [:]
        var result: [XMLNamespace] = []
        for namespace in element.namespaces {
            let prefix = namespace.prefix ?? ""
            let isSound =
                namespace.prefix.map { XMLCharacter.isPlainName($0) && !namespace.name.isEmpty } ?? true
            guard isSound, prefix != "xmlns", declared.updateValue(namespace.name, forKey: prefix) == nil,
                (prefix == "xml") == (namespace.name == XMLNamespace.xml),
                namespace.name != XMLNamespace.declarations
            else { throw fault(.invalidNamespace, "the declaration of the prefix \(prefix) is not allowed") }
            result.append(namespace)
        }
        var seen: Set<String> = []
        var expanded: Set<XMLName> = []
        for (place, name) in ([element.name] + element.attributes.map(\.name)).enumerated() {
            let isAttribute = place > 0
            if isAttribute {
                try checkName(name)
                guard seen.insert(name.qualified).inserted, expanded.insert(name).inserted else {
                    throw fault(.duplicateAttribute, "the attribute \(name) is there twice")
                }
                guard name.prefix != nil || name.namespace == nil, name.qualified != "xmlns" else {
                    throw fault(.invalidNamespace, "the attribute \(name) has a namespace and no prefix")
                }
                if name.prefix == nil { continue }
            }
            let (prefix, namespace) = (name.prefix ?? "", name.namespace ?? "")
            guard prefix.isEmpty || !namespace.isEmpty, prefix != "xmlns" else {
                throw fault(.invalidNamespace, "the prefix \(prefix) stands for no namespace")
            }
            let current =
                declared[prefix] ?? (prefix == "xml" ? XMLNamespace.xml : bindings[prefix]?.last ?? "")
            if current.utf8.elementsEqual(namespace.utf8) { continue }
            guard declared[prefix] == nil, prefix != "xml", namespace != XMLNamespace.xml,
                namespace != XMLNamespace.declarations
            else { throw fault(.invalidNamespace, "the prefix \(prefix) stands for two namespaces") }
            declared[prefix] = namespace
            result.append(XMLNamespace(namespace, prefix: name.prefix))
        }
        return result
    }

    private func checkName(_ name: XMLName) throws(XMLWritingError) {
        guard XMLCharacter.isPlainName(name.local), name.prefix.map(XMLCharacter.isPlainName) != false else {
            throw fault(.invalidName, "\(name.qualified.debugDescription) is no name")
        }
    }

    private func check(_ text: String) throws(XMLWritingError) {
        for scalar in text.unicodeScalars where !XMLCharacter.isLegal(scalar.value) {
            throw fault(
                .invalidCharacter, "\(XMLCharacter.shown(scalar.value)) may not stand in a document")
        }
    }

    private mutating func writeEscaped(_ text: String, inValue: Bool) throws(XMLWritingError) {
        try check(text)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": output += "&amp;"
            case "<": output += "&lt;"
            case ">": output += "&gt;"
            // A reader would make an LF of it.
            case "\r": output += "&#13;"
            case "\"" where inValue: output += "&quot;"
            // And spaces of these.
            case "\n" where inValue: output += "&#10;"
            case "\t" where inValue: output += "&#9;"
            default: output.unicodeScalars.append(scalar)
            }
        }
    }

    private func fault(_ code: XMLWritingError.Code, _ message: String) -> XMLWritingError {
        XMLWritingError(code: code, path: path, message: message)
    }
}
