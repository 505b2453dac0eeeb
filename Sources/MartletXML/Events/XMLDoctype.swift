/// A document type declaration, as far as it is looked at.
public struct XMLDoctype: Hashable, Sendable {
    /// The name that it gives for the root element; it is not compared with the real one.
    public var name: String
    /// The public identifier; nil when there is none.
    public var publicID: String?
    /// The address of the external subset, which is never read; nil when there is none.
    public var systemID: String?

    /// A document type.
    public init(name: String, publicID: String? = nil, systemID: String? = nil) {
        self.name = name
        self.publicID = publicID
        self.systemID = systemID
    }
}
