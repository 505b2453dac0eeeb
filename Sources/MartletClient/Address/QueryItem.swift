/// One name and its value in a query or a form.
///
/// Both are plain text: encoding is done when they are written, decoding when they are read.
public struct QueryItem: Hashable, Sendable {
    /// The name, decoded.
    public var name: String
    /// The value, decoded; nil writes the name alone, without `=`.
    public var value: String?

    /// An item.
    public init(name: String, value: String?) {
        self.name = name
        self.value = value
    }
}
