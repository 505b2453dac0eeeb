extension XMLTree {
    /// A part of an element's content.
    public enum Node: Hashable, Sendable {
        /// An element.
        case element(Element)
        /// Text, CDATA sections taken into it. Two texts never follow each other in a tree that was read.
        case text(String)
        /// A comment.
        case comment(String)
        /// A processing instruction.
        case instruction(target: String, data: String)
    }
}
