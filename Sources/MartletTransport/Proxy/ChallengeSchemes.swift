/// The schemes that a challenge field names, found without a look at their parameters (RFC 9110 §11.6.1).
///
/// One pass, whatever the field holds: commas inside of quotes separate nothing.
enum ChallengeSchemes {
    /// Whether a scheme, in lower case, is among those of a field.
    static func contains(_ scheme: String, in field: String) -> Bool {
        let wanted = Array(scheme.utf8)
        var isAtStart = true
        var isQuoted = false
        var isEscaped = false
        var token: [UInt8] = []
        for byte in field.utf8 {
            if isQuoted {
                if isEscaped {
                    isEscaped = false
                } else if byte == UInt8(ascii: "\\") {
                    isEscaped = true
                } else if byte == UInt8(ascii: "\"") {
                    isQuoted = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: ","):
                if isAtStart, token == wanted { return true }
                isAtStart = true
                token = []
            case UInt8(ascii: " "), 0x09:
                // A scheme is the first word of an element; a parameter's name is followed by its sign.
                if isAtStart, !token.isEmpty {
                    if token == wanted { return true }
                    isAtStart = false
                }
            case UInt8(ascii: "\""):
                isQuoted = true
                isAtStart = false
            default:
                guard isAtStart else { continue }
                // Longer than any scheme worth finding: what it is does not matter any more.
                if token.count <= wanted.count { token.append(lowercased(byte)) }
            }
        }
        return isAtStart && token == wanted
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
