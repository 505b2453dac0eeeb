import CMartletExpat

/// An error in a document: it is not well-formed, its namespaces are wrong, or it exceeds a limit.
public struct XMLError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kind of an error. More may be added: a `switch` needs a default.
    public enum Code: String, Hashable, Sendable {
        /// Bytes that are malformed in the encoding.
        case invalidByteSequence
        /// A character that is not allowed in a document (XML 1.0 §2.2), or in a public identifier (§2.3).
        case invalidCharacter
        /// An encoding that is not supported.
        case unsupportedEncoding
        /// The declared encoding is not the encoding of the bytes (§4.3.3).
        case encodingMismatch
        /// A malformed XML declaration, or one that is not at the very beginning (§2.8).
        case malformedDeclaration
        /// A malformed tag, comment, instruction, section or document type.
        case malformedMarkup
        /// A malformed name (§2.3), or colons that are not allowed in it (Namespaces §7).
        case invalidName
        /// An end tag that does not match the open element (§3).
        case mismatchedTag
        /// Two attributes of one name, before or after prefixes are resolved (§3.1, Namespaces §6.3).
        case duplicateAttribute
        /// `<` in an attribute's value or a tag, or `]]>` in text (§2.4, §3.1).
        case unescapedCharacter
        /// An `&` without a reference, or a reference to a character that is not allowed (§4.1).
        case malformedReference
        /// An entity other than `amp`, `lt`, `gt`, `apos` and `quot`.
        case undeclaredEntity
        /// Text, or a second element, outside of the root element (§2.1).
        case contentOutsideRoot
        /// The document is not complete.
        case unexpectedEnd
        /// A prefix that is not declared (Namespaces §5).
        case undeclaredPrefix
        /// A namespace declaration that is not allowed (Namespaces §3).
        case invalidNamespace
        /// A document type, or a part of one that would change the meaning of the document.
        case doctypeRejected
        /// A value above one of the ``XMLLimits``.
        case limitExceeded
    }

    /// The kind of the error.
    public var code: Code
    /// The position of the error; for a tag, a reference or a comment as a whole, its start.
    public var position: XMLPosition
    /// The description of the error.
    public var message: String

    /// Creates an error.
    public init(_ code: Code, at position: XMLPosition, _ message: String) {
        (self.code, self.position, self.message) = (code, position, message)
    }

    /// The position, the message and the code.
    public var description: String { "\(position): \(message) (\(code.rawValue))" }

    /// Converts an error of expat.
    ///
    /// Expat reports most malformed markup by one code and the byte offset of the rejected character. The surrounding
    /// characters determine the kind of the error.
    /// - Parameters:
    ///   - bytes: The bytes around the error, including the unfinished token.
    ///   - offset: The offset of the first of them.
    ///   - isAtEnd: Whether expat found the error at the end of the document.
    init(_ code: XML_Error, in expat: ExpatParser, _ bytes: ArraySlice<UInt8>, from offset: Int, isAtEnd: Bool) {
        let text = unsafe XML_ErrorString(code).map { unsafe String(cString: $0) } ?? "error \(code.rawValue)"
        self.init(.malformedMarkup, at: expat.position, text)
        let context = ErrorContext(encoding: expat.encoding, bytes: bytes, offset: offset)
        if expat.builder.isOutsideRoot, let junk = context.junk(after: expat.builder.lastEnd) {
            // When expat notices this depends on how the bytes arrive, so the position is determined here.
            self.code = junk.isMalformed ? .invalidByteSequence : .contentOutsideRoot
            message =
                "\(junk.isMalformed ? "malformed \(expat.encoding.rawValue)" : "text") outside of the root element"
            position = expat.builder.lastStart
            position.advance(over: context.scalars(from: position.byteOffset, to: junk.offset))
            position.byteOffset = junk.offset
            return
        }
        switch code {
        case XML_ERROR_PARTIAL_CHAR: self.code = .invalidByteSequence
        case XML_ERROR_JUNK_AFTER_DOC_ELEMENT: self.code = .contentOutsideRoot
        case _ where isAtEnd:
            self.code = .unexpectedEnd
            message = expat.builder.openName.map { "the document ends within \($0)" } ?? "the document is not complete"
        case XML_ERROR_INVALID_TOKEN: (self.code, message) = context.reason(at: position.byteOffset)
        case XML_ERROR_TAG_MISMATCH:
            self.code = .mismatchedTag
            if let name = expat.builder.openName { message = "</\(name)> expected" }
        case XML_ERROR_UNDEFINED_ENTITY:
            self.code = .undeclaredEntity
            guard let name = context.entityName(at: position.byteOffset) else { break }
            message = "the entity \(name.prefix(100)) is not declared"
            guard name.utf8.count > expat.builder.limits.nameByteCount else { break }
            self.code = .limitExceeded
        default: self.code = XMLError.codes[code.rawValue] ?? .malformedMarkup
        }
    }

    private static let codes: [UInt32: Code] = [
        XML_ERROR_NO_MEMORY.rawValue: .limitExceeded,
        // The error of a parser that could not be created.
        XML_ERROR_INVALID_ARGUMENT.rawValue: .limitExceeded, XML_ERROR_NO_ELEMENTS.rawValue: .unexpectedEnd,
        XML_ERROR_UNCLOSED_TOKEN.rawValue: .unexpectedEnd, XML_ERROR_UNCLOSED_CDATA_SECTION.rawValue: .unexpectedEnd,
        XML_ERROR_DUPLICATE_ATTRIBUTE.rawValue: .duplicateAttribute,
        XML_ERROR_PARAM_ENTITY_REF.rawValue: .doctypeRejected,
        XML_ERROR_AMPLIFICATION_LIMIT_BREACH.rawValue: .doctypeRejected,
        XML_ERROR_BAD_CHAR_REF.rawValue: .malformedReference,
        XML_ERROR_MISPLACED_XML_PI.rawValue: .malformedDeclaration, XML_ERROR_XML_DECL.rawValue: .malformedDeclaration,
        XML_ERROR_TEXT_DECL.rawValue: .malformedDeclaration, XML_ERROR_UNKNOWN_ENCODING.rawValue: .unsupportedEncoding,
        XML_ERROR_INCORRECT_ENCODING.rawValue: .encodingMismatch, XML_ERROR_UNBOUND_PREFIX.rawValue: .undeclaredPrefix,
        XML_ERROR_UNDECLARING_PREFIX.rawValue: .invalidNamespace,
        XML_ERROR_RESERVED_PREFIX_XML.rawValue: .invalidNamespace,
        XML_ERROR_RESERVED_PREFIX_XMLNS.rawValue: .invalidNamespace,
        XML_ERROR_RESERVED_NAMESPACE_URI.rawValue: .invalidNamespace, XML_ERROR_PUBLICID.rawValue: .invalidCharacter,
    ]
}

/// A position in a document.
public struct XMLPosition: Hashable, Sendable, CustomStringConvertible {
    /// The line, from 1. CR, LF and CR LF end a line.
    public var line = 1
    /// The column in characters (Unicode scalars), from 1.
    public var column = 1
    /// The number of bytes before the position, byte order mark included.
    public var byteOffset = 0

    /// Creates a position; by default the start of a document.
    public init(line: Int = 1, column: Int = 1, byteOffset: Int = 0) {
        (self.line, self.column, self.byteOffset) = (line, column, byteOffset)
    }

    /// A text such as `line 3, column 7 (byte 41)`.
    public var description: String { "line \(line), column \(column) (byte \(byteOffset))" }

    /// Moves line and column over characters.
    fileprivate mutating func advance(over scalars: [Unicode.Scalar]) {
        for (index, scalar) in scalars.enumerated() {
            switch scalar {
            case "\n" where index > 0 && scalars[index - 1] == "\r": break
            case "\n", "\r": (line, column) = (line + 1, 1)
            default: column += 1
            }
        }
    }
}

private struct ErrorContext {
    let encoding: XMLEncoding
    let bytes: ArraySlice<UInt8>
    /// The offset of the first of the bytes.
    let offset: Int

    func scalars(from start: Int, to end: Int = .max) -> [Unicode.Scalar] {
        let count = max(0, min(bytes.count, end - offset))
        return encoding.scalars(bytes.prefix(count).dropFirst(max(0, start - offset)))
    }

    private func isMalformed(at place: Int, _ scalar: Unicode.Scalar) -> Bool {
        guard scalar == "\u{FFFD}", encoding == .utf8 || encoding == .ascii else { return false }
        return !bytes.dropFirst(place - offset).starts(with: [0xEF, 0xBF, 0xBD])
    }

    /// The first character after white space; `nil` if it begins markup that may be outside of the root element.
    func junk(after end: Int) -> (offset: Int, isMalformed: Bool)? {
        let scalars = scalars(from: end)
        let spaces = scalars.prefix { $0.isSpaceInXML }
        guard let first = scalars.dropFirst(spaces.count).first else { return nil }
        guard first != "<" || scalars.dropFirst(spaces.count + 1).first == "/" else { return nil }
        let place = end + spaces.count * encoding.unitByteCount
        return (place, isMalformed(at: place, first))
    }

    /// The name of the entity in a reference; `nil` if the position is that of a tag.
    func entityName(at place: Int) -> String? {
        let scalars = scalars(from: place)
        guard scalars.first == "&" else { return nil }
        return String(String.UnicodeScalarView(scalars.dropFirst().prefix { $0 != ";" }))
    }

    /// The kind and the description of the error at a character.
    func reason(at place: Int) -> (XMLError.Code, String) {
        guard let scalar = scalars(from: place, to: place + 4).first else {
            return (.malformedMarkup, "malformed markup")
        }
        let shown = String(scalar).debugDescription
        if isMalformed(at: place, scalar) { return (.invalidByteSequence, "malformed \(encoding.rawValue)") }
        if !scalar.isAllowedInXML { return (.invalidCharacter, "\(shown) is not allowed in a document") }
        let text = String(String.UnicodeScalarView(scalars(from: place - 4096, to: place)))
        if text.hasSuffix("--") { return (.malformedMarkup, "-- is not allowed in a comment") }
        if text.contains(/&[^&<>'"\s;]*$/) { return (.malformedReference, "\(shown) in a reference") }
        if text.hasSuffix("]]"), scalar == ">" { return (.unescapedCharacter, "]]> is not allowed in text") }
        if scalar == "<" { return (.unescapedCharacter, "< is not allowed here") }
        if text.contains(/<\?(?i:xml)$/) { return (.malformedDeclaration, "an XML declaration begins with <?xml") }
        // At the start of a name after `</` and `<?`; after a colon; and before a character that no name may contain.
        let isName =
            text.hasSuffix("</") || text.hasSuffix("<?") || text.hasSuffix(":") || scalar == ":"
            || !text.hasSuffix("<") && (!scalar.isASCII || "0123456789-.".unicodeScalars.contains(scalar))
        return (isName ? .invalidName : .malformedMarkup, "\(shown) is not allowed here")
    }
}

extension Unicode.Scalar {
    /// Whether a document may contain the character (XML 1.0 §2.2).
    var isAllowedInXML: Bool {
        value >= 0x20 ? value != 0xFFFE && value != 0xFFFF : value == 0x09 || value == 0x0A || value == 0x0D
    }

    /// Whether the character is white space (XML 1.0 §2.3).
    var isSpaceInXML: Bool { self == " " || self == "\n" || self == "\t" || self == "\r" }
}
