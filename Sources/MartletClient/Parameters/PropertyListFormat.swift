/// How a property list is written.
public enum PropertyListFormat: String, Hashable, Sendable, CaseIterable {
    /// As XML.
    case xml
    /// In Apple's binary format.
    case binary
}
