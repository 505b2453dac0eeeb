/// Why bytes are no document that is well-formed, with namespaces, and within the limits.
public struct XMLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong. More may be added: a `switch` needs a default.
    public enum Code: String, Hashable, Sendable {
        /// Bytes that make no sense in the encoding.
        case invalidByteSequence
        /// A character that may not stand in a document (XML 1.0 §2.2).
        case invalidCharacter
        /// An encoding that is not read.
        case unsupportedEncoding
        /// The declared encoding is not the one that the bytes are in (§4.3.3).
        case encodingMismatch
        /// A malformed XML declaration, or one that is not at the very beginning (§2.8).
        case malformedDeclaration
        /// A tag, comment, instruction or section that is not written as it must be.
        case malformedMarkup
        /// A name that is none (§2.3), or has colons where it may not (Namespaces §7).
        case invalidName
        /// An end tag that is not that of the open element (§3).
        case mismatchedTag
        /// Two attributes of one name, before or after prefixes are resolved (§3.1, Namespaces §6.3).
        case duplicateAttribute
        /// `<` in an attribute's value, or `]]>` in text (§2.4, §3.1).
        case unescapedCharacter
        /// An `&` that no reference follows, or a reference to what is no character (§4.1).
        case malformedReference
        /// An entity other than `amp`, `lt`, `gt`, `apos` and `quot`.
        case undeclaredEntity
        /// Text, or a second element, beside the root element (§2.1).
        case contentOutsideRoot
        /// The document ends within something, or before its root element.
        case unexpectedEnd
        /// A prefix that is bound to no namespace (Namespaces §5).
        case undeclaredPrefix
        /// A namespace declaration that is not allowed (Namespaces §3).
        case invalidNamespace
        /// A document type, or a part of one that would change what the document means.
        case doctypeRefused
        /// More than ``XMLLimits`` allow.
        case limitExceeded
    }

    /// What is wrong.
    public var code: Code
    /// Where it was noticed.
    public var position: XMLPosition
    /// What is wrong, in words.
    public var message: String

    /// An error at a place.
    public init(_ code: Code, at position: XMLPosition, _ message: String) {
        self.code = code
        self.position = position
        self.message = message
    }

    /// The place, the code and the message.
    public var description: String { "\(position): \(message) (\(code.rawValue))" }
}
