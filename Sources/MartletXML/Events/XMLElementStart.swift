/// A start tag, or an empty-element tag.
public struct XMLElementStart: Hashable, Sendable {
    /// The element's name.
    public var name: XMLName
    /// Its attributes in the order they came, without declarations of namespaces.
    public var attributes: [XMLAttribute]
    /// The namespaces that it declares, in the order they came.
    public var namespaces: [XMLNamespace]

    /// A start of an element.
    public init(_ name: XMLName, attributes: [XMLAttribute] = [], namespaces: [XMLNamespace] = []) {
        self.name = name
        self.attributes = attributes
        self.namespaces = namespaces
    }

    /// The value of the attribute of a local name that is in no namespace, or in the one given; nil when there is none.
    public subscript(_ local: String, namespace namespace: String? = nil) -> String? {
        let name = XMLName(local, namespace: namespace)
        return attributes.first { $0.name == name }?.value
    }
}
