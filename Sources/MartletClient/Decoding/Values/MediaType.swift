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
