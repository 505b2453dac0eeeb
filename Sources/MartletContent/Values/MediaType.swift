/// A media type with its parameters, as `Content-Type` and `Accept` carry it (RFC 9110 §8.3.1).
///
/// Type, subtype and parameter names are compared without regard to case and kept in lower case; parameter
/// values are kept as they are. Parsing takes time linear in the text.
public struct MediaType: Hashable, Sendable, CustomStringConvertible {
    /// One parameter.
    public struct Parameter: Hashable, Sendable {
        /// The name, in lower case.
        public let name: String
        /// The value, without the quotes and backslashes of a quoted string.
        public let value: String
    }

    /// The type, in lower case: `text` in `text/html`.
    public let type: String
    /// The subtype, in lower case: `html` in `text/html`.
    public let subtype: String
    /// The parameters in the order they came; of several with one name the first counts.
    public let parameters: [Parameter]

    /// Parses a field value; nil when it does not begin with `type/subtype`.
    ///
    /// A parameter that is malformed (no `=`, white space around it, an unclosed quote) is skipped, because
    /// many servers send such, and what stands before it is still true.
    public init?(_ text: String) {
        var reader = FieldReader(text)
        reader.skipBlanks()
        guard let type = reader.token(), reader.take(UInt8(ascii: "/")), let subtype = reader.token() else {
            return nil
        }
        reader.skipBlanks()
        guard reader.isAtEnd || reader.current == UInt8(ascii: ";") else { return nil }
        var parameters: [Parameter] = []
        var names: Set<String> = []
        while reader.take(UInt8(ascii: ";")) {
            reader.skipBlanks()
            if let parameter = MediaType.parameter(&reader), names.insert(parameter.name).inserted {
                parameters.append(parameter)
            }
            reader.skipToSemicolon()
        }
        self.type = type.lowercased()
        self.subtype = subtype.lowercased()
        self.parameters = parameters
    }

    /// Type and subtype without parameters: `text/html`.
    public var essence: String { "\(type)/\(subtype)" }

    /// The `charset` parameter; nil when there is none.
    public var charset: String? { self["charset"] }

    /// Whether the content is JSON: `application/json`, `text/json` or any `+json` (RFC 6839 §3.1).
    public var isJSON: Bool {
        subtype.hasSuffix("+json") || subtype == "json" && (type == "application" || type == "text")
    }

    /// The value of a parameter, its name in any case.
    public subscript(_ name: String) -> String? {
        let wanted = name.lowercased()
        return parameters.first { $0.name == wanted }?.value
    }

    /// The media type as a field value, values quoted where they are no tokens.
    public var description: String {
        parameters.reduce(into: essence) { text, parameter in
            text += "; \(parameter.name)=\(MediaType.quotedIfNeeded(parameter.value))"
        }
    }

    private static func parameter(_ reader: inout FieldReader) -> Parameter? {
        guard let name = reader.token(), reader.take(UInt8(ascii: "=")) else { return nil }
        guard let value = reader.current == UInt8(ascii: "\"") ? reader.quotedString() : reader.token() else {
            return nil
        }
        reader.skipBlanks()
        // Something behind the value makes it anyone's guess where the value ends.
        guard reader.isAtEnd || reader.current == UInt8(ascii: ";") else { return nil }
        return Parameter(name: name.lowercased(), value: value)
    }

    private static func quotedIfNeeded(_ value: String) -> String {
        if !value.isEmpty, value.utf8.allSatisfy(FieldReader.isTokenByte) { return value }
        var quoted = "\""
        for character in value.unicodeScalars {
            if character == "\"" || character == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(character)
        }
        return quoted + "\""
    }
}

/// A cursor over a field value: tokens, quoted strings and blanks (RFC 9110 §5.6).
struct FieldReader {
    private let bytes: [UInt8]
    private var position = 0

    /// A reader at the beginning of a value.
    init(_ text: String) { bytes = Array(text.utf8) }

    /// The byte at the cursor; nil at the end.
    var current: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    /// Whether everything was read.
    var isAtEnd: Bool { position == bytes.endIndex }

    /// Moves over spaces and tabs.
    mutating func skipBlanks() {
        while let byte = current, byte == UInt8(ascii: " ") || byte == 0x09 { position += 1 }
    }

    /// Moves over a byte if it is the one at the cursor.
    mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    /// A token of at least one character; nil, and no movement, when there is none.
    mutating func token() -> String? {
        let start = position
        while let byte = current, FieldReader.isTokenByte(byte) { position += 1 }
        return position == start ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// The bytes up to a blank, a semicolon or a quote: a token, or what servers send in place of one. `nil` when there are
    /// none.
    mutating func word() -> String? {
        let start = position
        while let byte = current, byte > 0x20, byte != 0x7F, byte != UInt8(ascii: ";"),
            byte != UInt8(ascii: "\"")
        {
            position += 1
        }
        return position == start ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// What a quoted string stands for; nil when it is not closed, the cursor then at the end.
    mutating func quotedString() -> String? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        var value: [UInt8] = []
        while let byte = current {
            position += 1
            if byte == UInt8(ascii: "\"") { return String(decoding: value, as: UTF8.self) }
            if byte == UInt8(ascii: "\\") {
                guard let escaped = current else { return nil }
                position += 1
                value.append(escaped)
            } else {
                value.append(byte)
            }
        }
        return nil
    }

    /// Moves to the next semicolon outside quotes, or to the end.
    mutating func skipToSemicolon() {
        while let byte = current, byte != UInt8(ascii: ";") {
            if byte == UInt8(ascii: "\"") { _ = quotedString() } else { position += 1 }
        }
    }

    /// The characters of a token (RFC 9110 §5.6.2).
    static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "A")...UInt8(ascii: "Z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
