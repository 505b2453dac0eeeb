/// A parameter's value with its character encoding and percent-encoded bytes: `UTF-8'en'%e2%82%ac` (RFC 8187 §3.2).
struct ExtendedValue: Hashable, Sendable {
    /// The text it stands for.
    let text: String

    /// Parses a value; `nil` when it is malformed, in another encoding than UTF-8 and ISO-8859-1, or no text in its own.
    init?(_ value: String) {
        let parts = value.utf8.split(
            separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let charset = String(Substring(parts[0])).lowercased()
        guard charset == "utf-8" || charset == "iso-8859-1" else { return nil }
        var bytes: [UInt8] = []
        let encoded = Array(parts[2])
        var index = 0
        while index < encoded.count {
            if encoded[index] == UInt8(ascii: "%") {
                guard let byte = PercentEncoding.value(ofHexAt: index, in: encoded[...]) else { return nil }
                bytes.append(byte)
                index += 3
            } else {
                guard ExtendedValue.isPlain(encoded[index]) else { return nil }
                bytes.append(encoded[index])
                index += 1
            }
        }
        if charset == "utf-8" {
            guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
            self.text = text
        } else {
            text = String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        }
    }

    /// What may stand there without being encoded (attr-char).
    private static func isPlain(_ byte: UInt8) -> Bool {
        FieldReader.isTokenByte(byte) && byte != UInt8(ascii: "*") && byte != UInt8(ascii: "'")
    }
}
