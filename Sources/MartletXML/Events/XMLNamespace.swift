/// A declaration that binds a prefix to a namespace, as `xmlns:prefix="…"` or `xmlns="…"` does.
public struct XMLNamespace: Hashable, Sendable {
    /// The prefix; nil for the default namespace.
    public var prefix: String?
    /// The namespace's name; empty where the default namespace is taken back.
    public var name: String

    /// A declaration.
    public init(_ name: String, prefix: String? = nil) {
        self.name = name
        self.prefix = prefix
    }

    /// What the prefix `xml` always stands for.
    public static let xml = "http://www.w3.org/XML/1998/namespace"
    /// What declarations of namespaces are in.
    static let declarations = "http://www.w3.org/2000/xmlns/"
}
