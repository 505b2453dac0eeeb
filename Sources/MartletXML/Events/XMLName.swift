/// The name of an element or an attribute (Namespaces in XML 1.0).
///
/// Two names are equal when namespace and local name are, code point by code point; the prefix says nothing.
public struct XMLName: Hashable, Sendable, CustomStringConvertible {
    /// The prefix as it was written; nil when there is none.
    public var prefix: String?
    /// The name without its prefix.
    public var local: String
    /// The namespace's name, such as `http://www.w3.org/2005/Atom`; nil when it is in none.
    public var namespace: String?

    /// A name.
    public init(_ local: String, namespace: String? = nil, prefix: String? = nil) {
        self.local = local
        self.namespace = namespace
        self.prefix = prefix
    }

    /// The name as it is written: `prefix:local`, or `local`.
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

    /// Feeds namespace and local name.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(local)
        hasher.combine(namespace)
    }
}
