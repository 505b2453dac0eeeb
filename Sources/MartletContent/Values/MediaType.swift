import MartletWire

/// A media type with its parameters, as in `Content-Type` and `Accept` (RFC 9110 §8.3.1).
///
/// Type, subtype and parameter names are compared without regard to case and stored in lower case; parameter values are
/// stored unchanged. Parsing takes time linear in the text.
public struct MediaType: Hashable, Sendable, CustomStringConvertible {
    /// One parameter of a media type.
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
    /// The parameters in the order received; the first of several with one name is used.
    public let parameters: [Parameter]

    /// Parses a field value; `nil` if it does not begin with `type/subtype`.
    ///
    /// A malformed parameter (no `=`, white space around the `=`, an unclosed quote) is skipped, because many servers
    /// send such parameters, and the rest is still valid.
    public init?(_ text: String) {
        var reader = FieldValueParser(text)
        reader.skipBlanks()
        guard let type = reader.token(), reader.take(UInt8(ascii: "/")), let subtype = reader.token(),
            let parameters = reader.parameters(isLenient: false)
        else { return nil }
        var names: Set<String> = []
        self.type = type.lowercased()
        self.subtype = subtype.lowercased()
        self.parameters = parameters.filter { names.insert($0.name).inserted }.map {
            Parameter(name: $0.name, value: $0.value)
        }
    }

    /// The type and subtype without parameters: `text/html`.
    public var essence: String { "\(type)/\(subtype)" }
    /// The `charset` parameter; `nil` if it is missing.
    public var charset: String? { self["charset"] }

    /// Whether the content is JSON: `application/json`, `text/json` or any `+json` (RFC 6839 §3.1).
    public var isJSON: Bool {
        subtype.hasSuffix("+json") || subtype == "json" && (type == "application" || type == "text")
    }

    /// Whether the content is HTML: `text/html` or `application/xhtml+xml`.
    public var isHTML: Bool { essence == "text/html" || essence == "application/xhtml+xml" }

    /// The value of a parameter, with its name in any case; `nil` if it is missing.
    public subscript(_ name: String) -> String? {
        let wanted = name.lowercased()
        return parameters.first { $0.name == wanted }?.value
    }

    /// The media type as a field value; values that are not tokens are quoted.
    public var description: String {
        parameters.reduce(into: essence) { text, parameter in
            let isToken = !parameter.value.isEmpty && parameter.value.utf8.allSatisfy(ByteClass.isToken)
            text += "; \(parameter.name)=\(isToken ? parameter.value : parameter.value.quoted)"
        }
    }
}

extension String {
    /// The text as a quoted string, with a backslash before each quote and backslash (RFC 9110 §5.6.4).
    package var quoted: String {
        unicodeScalars.reduce(into: "\"") { quoted, scalar in
            if scalar == "\"" || scalar == "\\" { quoted += "\\" }
            quoted.unicodeScalars.append(scalar)
        } + "\""
    }
}

/// A cursor over a field value: tokens, quoted strings and blanks (RFC 9110 §5.6).
package struct FieldValueParser {
    private let bytes: [UInt8]
    private var position = 0

    /// Creates a parser at the beginning of a value.
    init(_ text: String) { self.init(bytes: Array(text.utf8)) }

    /// Creates a parser at the beginning of a value that is given as bytes.
    package init(bytes: [UInt8]) { self.bytes = bytes }

    private var current: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

    /// Whether all bytes were read.
    package var isAtEnd: Bool { current == nil }

    /// Skips spaces and tabs.
    package mutating func skipBlanks() { while let byte = current, ByteClass.isBlank(byte) { position += 1 } }

    /// Skips a byte if it is at the cursor; returns whether it was.
    package mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        position += 1
        return true
    }

    /// Returns a token of at least one character; `nil`, without moving the cursor, if no token follows.
    package mutating func token() -> String? { word(ByteClass.isToken) }

    /// Returns a token or the content of a quoted string; `nil` if neither follows.
    package mutating func tokenOrQuotedString() -> String? {
        current == UInt8(ascii: "\"") ? quotedString() : token()
    }

    /// Returns the well-formed parameters up to the end; `nil` if neither a parameter nor the end follows.
    /// - Parameter isLenient: Whether blanks around the equals sign and values that are not tokens are accepted.
    mutating func parameters(isLenient: Bool) -> [(name: String, value: String, isQuoted: Bool)]? {
        skipBlanks()
        guard current == nil || current == UInt8(ascii: ";") else { return nil }
        var parameters: [(name: String, value: String, isQuoted: Bool)] = []
        while take(UInt8(ascii: ";")) {
            skipBlanks()
            if let parameter = parameter(isLenient) { parameters.append(parameter) }
            // Skips to the next semicolon outside quotes.
            while let byte = current, byte != UInt8(ascii: ";") {
                if byte == UInt8(ascii: "\"") { _ = quotedString() } else { position += 1 }
            }
        }
        return parameters
    }

    private mutating func parameter(_ isLenient: Bool) -> (name: String, value: String, isQuoted: Bool)? {
        guard let name = token() else { return nil }
        if isLenient { skipBlanks() }
        guard take(UInt8(ascii: "=")) else { return nil }
        if isLenient { skipBlanks() }
        let isQuoted = current == UInt8(ascii: "\"")
        let word = isQuoted ? quotedString() : isLenient ? word(FieldValueParser.isInWord) : token()
        skipBlanks()
        // Bytes after the value make its end ambiguous.
        guard let word, current == nil || current == UInt8(ascii: ";") else { return nil }
        return (name.lowercased(), word, isQuoted)
    }

    /// Whether a byte may be in an unquoted value that is not a token, as some servers send them.
    private static func isInWord(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte != 0x7F && byte != UInt8(ascii: ";") && byte != UInt8(ascii: "\"")
    }

    private mutating func word(_ isIncluded: (UInt8) -> Bool) -> String? {
        let start = position
        while let byte = current, isIncluded(byte) { position += 1 }
        return position == start ? nil : String(decoding: bytes[start..<position], as: UTF8.self)
    }

    /// Returns the content of a quoted string; `nil` with the cursor at the end if it is not closed.
    private mutating func quotedString() -> String? {
        position += 1
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
}
