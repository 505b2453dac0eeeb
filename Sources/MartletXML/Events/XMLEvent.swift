/// What a document has, in the order it comes.
public enum XMLEvent: Hashable, Sendable {
    /// The XML declaration; it comes first, where there is one.
    case declaration(XMLDeclaration)
    /// The document type declaration.
    case doctype(XMLDoctype)
    /// An element begins.
    case start(XMLElementStart)
    /// An element ends. An empty-element tag gives both.
    case end(XMLName)
    /// Text within an element, never empty: references resolved, CDATA sections taken into it.
    ///
    /// Text without markup comes in pieces of at most 64 KiB; smaller than that it is one event.
    case text(String)
    /// A comment, without its dashes.
    case comment(String)
    /// A processing instruction; the data is empty where there is none.
    case instruction(target: String, data: String)
}
