/// A part of a document, in document order.
public enum XMLEvent: Hashable, Sendable {
    /// The XML declaration; always the first event.
    case declaration(XMLDeclaration)
    /// The document type declaration.
    case doctype(XMLDoctype)
    /// The start of an element.
    case start(XMLElementStart)
    /// The end of an element. An empty-element tag gives a start and an end.
    case end(XMLName)
    /// Text within an element, never empty, with references resolved and CDATA sections included.
    ///
    /// Text without markup is split into pieces of at most 64 KiB; shorter text is one event.
    case text(String)
    /// A comment, without its delimiters.
    case comment(String)
    /// A processing instruction; the data may be empty.
    case instruction(target: String, data: String)
}

/// A start tag, or an empty-element tag.
public struct XMLElementStart: Hashable, Sendable {
    /// The name of the element.
    public var name: XMLName
    /// The attributes in document order, without namespace declarations.
    public var attributes: [XMLAttribute]
    /// The namespace declarations in document order.
    public var namespaces: [XMLNamespace]

    /// Creates the start of an element.
    public init(_ name: XMLName, attributes: [XMLAttribute] = [], namespaces: [XMLNamespace] = []) {
        (self.name, self.attributes, self.namespaces) = (name, attributes, namespaces)
    }

    /// The value of the attribute with a local name, in no namespace or in the one given; `nil` if absent.
    public subscript(_ local: String, namespace namespace: String? = nil) -> String? {
        attributes.first { $0.name == XMLName(local, namespace: namespace) }?.value
    }
}

/// The XML declaration at the beginning of a document (XML 1.0 §2.8).
public struct XMLDeclaration: Hashable, Sendable {
    /// The version: `1.0`, or another that begins with `1.` and is read as 1.0.
    public var version: String
    /// The declared encoding; `nil` if absent.
    public var encoding: String?
    /// Whether the document is declared `standalone`; `nil` if not specified.
    public var isStandalone: Bool?

    /// Creates a declaration.
    public init(version: String = "1.0", encoding: String? = nil, isStandalone: Bool? = nil) {
        (self.version, self.encoding, self.isStandalone) = (version, encoding, isStandalone)
    }
}

/// The name and the identifiers of a document type declaration.
public struct XMLDoctype: Hashable, Sendable {
    /// The declared name of the root element; it is not compared with the root element.
    public var name: String
    /// The public identifier, with white space normalized; `nil` if absent.
    public var publicID: String?
    /// The address of the external subset, which is never read; `nil` if absent.
    public var systemID: String?

    /// Creates a document type.
    public init(name: String, publicID: String? = nil, systemID: String? = nil) {
        (self.name, self.publicID, self.systemID) = (name, publicID, systemID)
    }
}

/// The name of an element or an attribute (Namespaces in XML 1.0).
///
/// Two names are equal if their namespaces and local names are equal code point by code point. The prefix is not
/// compared.
public struct XMLName: Hashable, Sendable, CustomStringConvertible {
    /// The prefix in the document; `nil` if absent.
    public var prefix: String?
    /// The name without its prefix.
    public var local: String
    /// The name of the namespace, such as `http://www.w3.org/2005/Atom`; `nil` if the name has no namespace.
    public var namespace: String?

    /// Creates a name.
    public init(_ local: String, namespace: String? = nil, prefix: String? = nil) {
        (self.local, self.namespace, self.prefix) = (local, namespace, prefix)
    }

    /// The name with its prefix: `prefix:local`, or `local`.
    public var qualified: String { prefix.map { "\($0):\(local)" } ?? local }

    /// The same as ``qualified``.
    public var description: String { qualified }

    /// Whether namespace and local name are the same.
    public static func == (left: XMLName, right: XMLName) -> Bool {
        guard left.local.utf8.elementsEqual(right.local.utf8) else { return false }
        guard let namespace = left.namespace, let other = right.namespace else {
            return left.namespace == nil && right.namespace == nil
        }
        return namespace.utf8.elementsEqual(other.utf8)
    }

    /// Hashes the namespace and the local name.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(local)
        hasher.combine(namespace)
    }
}

/// A declaration that binds a prefix to a namespace: `xmlns:prefix="…"` or `xmlns="…"`.
public struct XMLNamespace: Hashable, Sendable {
    /// The prefix; `nil` for the default namespace.
    public var prefix: String?
    /// The name of the namespace; empty if the default namespace is removed.
    public var name: String

    /// Creates a declaration.
    public init(_ name: String, prefix: String? = nil) { (self.name, self.prefix) = (name, prefix) }

    /// The namespace of the prefix `xml`.
    public static let xml = "http://www.w3.org/XML/1998/namespace"
    /// The namespace of the prefix `xmlns`.
    static let declarations = "http://www.w3.org/2000/xmlns/"
}

/// An attribute of an element.
public struct XMLAttribute: Hashable, Sendable {
    /// The name; without a prefix it is in no namespace.
    public var name: XMLName
    /// The value, with references resolved and white space normalized as for CDATA (XML 1.0 §3.3.3).
    public var value: String

    /// Creates an attribute.
    public init(_ name: XMLName, _ value: String) { (self.name, self.value) = (name, value) }
}
