/// The declaration at the beginning of a document (XML 1.0 §2.8).
public struct XMLDeclaration: Hashable, Sendable {
    /// The version: `1.0`, or another that begins with `1.` and is read as 1.0.
    public var version: String
    /// The encoding as it was named; nil when it was not.
    public var encoding: String?
    /// Whether the document declares itself to be `standalone`; nil when it does not say.
    public var isStandalone: Bool?

    /// A declaration.
    public init(version: String = "1.0", encoding: String? = nil, isStandalone: Bool? = nil) {
        self.version = version
        self.encoding = encoding
        self.isStandalone = isStandalone
    }
}
