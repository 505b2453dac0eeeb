/// Why a tree cannot be written: it was put together as no document can be.
public struct XMLWritingError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong.
    public enum Code: String, Hashable, Sendable {
        /// A name with a space, a colon or the like.
        case invalidName
        /// A character that no document can have, not even by reference.
        case invalidCharacter
        /// A comment with `--`, an instruction with `?>`, an identifier with both kinds of quotes.
        case invalidContent
        /// A prefix that stands for two namespaces at once, or an attribute with a namespace and no prefix.
        case invalidNamespace
        /// Two attributes of one name.
        case duplicateAttribute
        /// Elements nest deeper than ``XMLTree/depthLimit``.
        case tooDeep
    }

    /// What is wrong.
    public var code: Code
    /// The names of the elements from the root to the one that it is in.
    public var path: [String]
    /// What is wrong, in words.
    public var message: String

    /// The path, the message and the code.
    public var description: String { "/\(path.joined(separator: "/")): \(message) (\(code.rawValue))" }
}
