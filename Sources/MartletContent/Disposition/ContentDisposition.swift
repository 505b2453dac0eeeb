import MartletURL
import MartletWire

/// The `Content-Disposition` of a response: whether to display or to save it, and the proposed file name (RFC 6266).
///
/// Malformed parameters are skipped, and the first of several with one name is used. Parsing takes time linear in the
/// text. The peer chooses the names: for files use only ``suggestedFilename``.
public struct ContentDisposition: Hashable, Sendable {
    /// The disposition in lower case: `inline`, `attachment`, `form-data`; others mean `attachment` (RFC 6266 §4.2).
    public let type: String
    /// The `filename` parameter as received: neither percent-decoded nor safe.
    public let filename: String?
    /// The `filename*` parameter, decoded (RFC 8187); it takes precedence over ``filename``. Not safe.
    public let extendedFilename: String?

    /// Parses a field value; `nil` if it has no type, such as the bare quoted name that some old servers send.
    public init?(_ text: String) {
        var reader = FieldValueParser(text)
        reader.skipBlanks()
        // Lenient like browsers, because blanks around the equals sign are common.
        guard let type = reader.token(), let parameters = reader.parameters(isLenient: true) else { return nil }
        self.type = type.lowercased()
        filename = parameters.first { $0.name == "filename" }?.value
        extendedFilename =
            parameters.lazy.filter { $0.name == "filename*" && !$0.isQuoted }.compactMap {
                ContentDisposition.decoded($0.value)
            }.first
    }

    /// Whether the response is meant to be saved rather than displayed.
    public var isAttachment: Bool { type != "inline" && type != "form-data" }

    /// A safe name for a file: the last component of the peer's proposal, without control characters and leading dots,
    /// of at most 255 bytes; `nil` if no characters are left.
    public var suggestedFilename: String? {
        [extendedFilename, filename].lazy.compactMap { $0.flatMap { SafeFilename($0)?.text } }.first
    }

    /// Decodes a value with its character encoding and percent-encoded bytes, such as `UTF-8'en'%e2%82%ac` (RFC 8187
    /// §3.2); `nil` if it is malformed, neither UTF-8 nor ISO-8859-1, or invalid in its encoding.
    private static func decoded(_ value: String) -> String? {
        let parts = value.utf8.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        var bytes: [UInt8] = []
        let encoded = Array(parts[2])
        var index = 0
        while index < encoded.count {
            if encoded[index] == UInt8(ascii: "%") {
                guard let byte = PercentEncoding.value(ofHexAt: index, in: encoded[...]) else { return nil }
                bytes.append(byte)
                index += 3
            } else {
                // Other bytes are `attr-char`: token characters except `*`, `'` and `%`.
                guard ByteClass.isToken(encoded[index]), !"*'".utf8.contains(encoded[index]) else { return nil }
                bytes.append(encoded[index])
                index += 1
            }
        }
        return switch String(Substring(parts[0])).lowercased() {
        case "utf-8": String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": ByteText.latin1(bytes[...])
        default: nil
        }
    }
}
