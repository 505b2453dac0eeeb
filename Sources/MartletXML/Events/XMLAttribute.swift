/// An attribute of an element.
public struct XMLAttribute: Hashable, Sendable {
    /// The name; without a prefix it is in no namespace.
    public var name: XMLName
    /// The value, references resolved and white space normalised as for CDATA (XML 1.0 §3.3.3).
    public var value: String

    /// An attribute.
    public init(_ name: XMLName, _ value: String) {
        self.name = name
        self.value = value
    }
}
