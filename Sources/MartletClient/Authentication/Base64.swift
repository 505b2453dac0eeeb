/// Bytes as letters, digits, `+` and `/`, padded with `=` (RFC 4648 §4).
enum Base64 {
    private static let alphabet = [UInt8](
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// Encodes bytes.
    static func encoded(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.underestimatedCount + 2) / 3 * 4)
        var group: UInt32 = 0
        var count = 0
        for byte in bytes {
            group = group << 8 | UInt32(byte)
            count += 1
            if count == 3 {
                append(group, digits: 4, to: &text)
                (group, count) = (0, 0)
            }
        }
        if count > 0 {
            append(group << UInt32(8 * (3 - count)), digits: count + 1, to: &text)
            text.append(contentsOf: repeatElement(UInt8(ascii: "="), count: 3 - count))
        }
        return text
    }

    private static func append(_ group: UInt32, digits: Int, to text: inout [UInt8]) {
        for place in 0..<digits {
            text.append(alphabet[Int(group >> UInt32(18 - 6 * place) & 0x3F)])
        }
    }
}
