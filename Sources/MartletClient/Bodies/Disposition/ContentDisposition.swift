/// What `Content-Disposition` says of a response: whether to show or to save it, and under which name (RFC 6266).
///
/// Parameters that are malformed are passed over, and of several with one name the first counts. Parsing takes time linear
/// in the text. The names in it are the peer's: make files of ``suggestedFilename`` only.
public struct ContentDisposition: Hashable, Sendable {
    /// What to do with it, in lower case: `inline`, `attachment`, `form-data`, or another word, which means `attachment`
    /// (RFC 6266 §4.2).
    public let type: String
    /// The `filename` parameter as it came: neither percent-decoded nor safe.
    public let filename: String?
    /// The `filename*` parameter, decoded (RFC 8187): it counts before ``filename``. Not safe.
    public let extendedFilename: String?

    /// Parses a field value; `nil` when it does not begin with a word.
    ///
    /// A bare name in quotes, as old servers send it without a type, is none.
    public init?(_ text: String) {
        var reader = FieldReader(text)
        reader.skipBlanks()
        guard let type = reader.token() else { return nil }
        reader.skipBlanks()
        guard reader.isAtEnd || reader.current == UInt8(ascii: ";") else { return nil }
        var filename: String?
        var extended: String?
        while reader.take(UInt8(ascii: ";")) {
            reader.skipBlanks()
            if let (name, value, isQuoted) = ContentDisposition.parameter(&reader) {
                if name == "filename" {
                    filename = filename ?? value
                } else if name == "filename*", !isQuoted {
                    extended = extended ?? ExtendedValue(value)?.text
                }
            }
            reader.skipToSemicolon()
        }
        self.type = type.lowercased()
        self.filename = filename
        extendedFilename = extended
    }

    /// Whether the response is meant to be saved and not shown.
    public var isAttachment: Bool { type != "inline" && type != "form-data" }

    /// A name that a file can safely have: the last component of what the peer proposes, without control characters and
    /// leading dots, of at most 255 bytes; `nil` when nothing is left of it.
    public var suggestedFilename: String? {
        if let extendedFilename, let name = SafeFilename(extendedFilename) { return name.text }
        return filename.flatMap { SafeFilename($0)?.text }
    }

    private static func parameter(
        _ reader: inout FieldReader
    ) -> (name: String, value: String, isQuoted: Bool)? {
        guard let name = reader.token() else { return nil }
        // White space around the sign is not allowed, and common enough to be taken (as browsers do).
        reader.skipBlanks()
        guard reader.take(UInt8(ascii: "=")) else { return nil }
        reader.skipBlanks()
        let isQuoted = reader.current == UInt8(ascii: "\"")
        guard let value = isQuoted ? reader.quotedString() : reader.word() else { return nil }
        reader.skipBlanks()
        guard reader.isAtEnd || reader.current == UInt8(ascii: ";") else { return nil }
        return (name.lowercased(), value, isQuoted)
    }
}
