/// The open elements, and what prefixes stand for in the innermost one (Namespaces in XML 1.0).
///
/// Names are compared as bytes: Swift's strings are equal when they look the same, and XML's are not.
struct ElementScopes {
    private struct Element {
        /// The name as it is written.
        let written: [UInt8]
        let name: XMLName
        /// The prefixes that it declares; empty for the default namespace.
        let prefixes: [[UInt8]]
    }

    private var elements: [Element] = []
    /// What each prefix stands for, the innermost last; the empty prefix is the default namespace.
    private var bindings: [[UInt8]: [String]] = [:]

    private static let xmlns = Array("xmlns".utf8)
    private static let xml = Array("xml".utf8)

    /// How many elements are open.
    var depth: Int { elements.count }

    /// The name of the innermost element, as it is written; nil when none is open.
    var innermost: String? { elements.last?.name.qualified }

    /// Opens an element.
    mutating func open(
        _ written: [UInt8], _ attributes: [RawAttribute], at position: XMLPosition
    ) throws(XMLError) -> XMLElementStart {
        try checkNames(attributes)
        var declared: [XMLNamespace] = []
        var prefixes: [[UInt8]] = []
        var plain: [(RawAttribute, QualifiedName)] = []
        for attribute in attributes {
            let name = try QualifiedName(attribute.name, at: attribute.position)
            let isDefault = name.prefix == nil && attribute.name == ElementScopes.xmlns
            guard isDefault || name.prefix.map({ $0 == ElementScopes.xmlns[...] }) == true else {
                plain.append((attribute, name))
                continue
            }
            let prefix = isDefault ? [] : Array(name.local)
            try check(prefix, attribute)
            bindings[prefix, default: []].append(attribute.value)
            prefixes.append(prefix)
            declared.append(
                XMLNamespace(
                    attribute.value, prefix: isDefault ? nil : String(decoding: prefix, as: UTF8.self)))
        }
        let qualified = try QualifiedName(written, at: position)
        let name = try resolve(qualified, isAttribute: false, at: position)
        guard qualified.prefix.map({ $0 == ElementScopes.xmlns[...] }) != true else {
            throw XMLError(.invalidNamespace, at: position, "an element cannot have the prefix xmlns")
        }
        var start = XMLElementStart(name, namespaces: declared)
        start.attributes.reserveCapacity(plain.count)
        var seen: Set<[UInt8]> = []
        for (attribute, qualified) in plain {
            let name = try resolve(qualified, isAttribute: true, at: attribute.position)
            if let namespace = name.namespace {
                // No namespace has a NUL in it.
                let key = Array(namespace.utf8) + [0] + qualified.local
                guard seen.insert(key).inserted else {
                    throw XMLError(
                        .duplicateAttribute, at: attribute.position,
                        "the attribute \(name) is there under another prefix")
                }
            }
            start.attributes.append(XMLAttribute(name, attribute.value))
        }
        elements.append(Element(written: written, name: name, prefixes: prefixes))
        return start
    }

    /// Closes the innermost element.
    mutating func close(_ written: [UInt8], at position: XMLPosition) throws(XMLError) -> XMLName {
        guard let element = elements.last, element.written == written else {
            let expected = innermost ?? "none"
            throw XMLError(
                .mismatchedTag, at: position,
                "the end tag is that of \(String(decoding: written, as: UTF8.self)), the open element \(expected)"
            )
        }
        elements.removeLast()
        for prefix in element.prefixes {
            bindings[prefix]?.removeLast()
            // Prefixes that were made up for an element do not stay for ever.
            if bindings[prefix]?.isEmpty == true { bindings[prefix] = nil }
        }
        return element.name
    }

    private func checkNames(_ attributes: [RawAttribute]) throws(XMLError) {
        guard attributes.count > 1 else { return }
        var seen: Set<[UInt8]> = []
        for attribute in attributes where !seen.insert(attribute.name).inserted {
            throw XMLError(
                .duplicateAttribute, at: attribute.position,
                "the attribute \(String(decoding: attribute.name, as: UTF8.self)) is there twice")
        }
    }

    private func resolve(
        _ name: QualifiedName, isAttribute: Bool, at position: XMLPosition
    ) throws(XMLError) -> XMLName {
        let local = String(decoding: name.local, as: UTF8.self)
        guard let prefix = name.prefix else {
            let namespace = isAttribute ? nil : bindings[[]]?.last
            return XMLName(local, namespace: namespace == "" ? nil : namespace)
        }
        let written = String(decoding: prefix, as: UTF8.self)
        if prefix == ElementScopes.xml[...] {
            return XMLName(local, namespace: XMLNamespace.xml, prefix: written)
        }
        if prefix == ElementScopes.xmlns[...] {
            return XMLName(local, namespace: XMLNamespace.declarations, prefix: written)
        }
        guard let namespace = bindings[Array(prefix)]?.last else {
            throw XMLError(.undeclaredPrefix, at: position, "the prefix \(written) is not declared")
        }
        return XMLName(local, namespace: namespace, prefix: written)
    }

    /// What Namespaces §3 says of declarations.
    private func check(_ prefix: [UInt8], _ attribute: RawAttribute) throws(XMLError) {
        func refuse(_ message: String) -> XMLError {
            XMLError(.invalidNamespace, at: attribute.position, message)
        }
        let isXML = attribute.value.utf8.elementsEqual(XMLNamespace.xml.utf8)
        if prefix == ElementScopes.xml {
            guard isXML else { throw refuse("the prefix xml stands for another namespace") }
            return
        }
        guard prefix != ElementScopes.xmlns else { throw refuse("the prefix xmlns cannot be declared") }
        guard !isXML else { throw refuse("the namespace of xml has another prefix") }
        guard !attribute.value.utf8.elementsEqual(XMLNamespace.declarations.utf8) else {
            throw refuse("the namespace of declarations cannot be declared")
        }
        guard prefix.isEmpty || !attribute.value.isEmpty else {
            throw refuse("a prefix cannot be taken back")
        }
    }
}
