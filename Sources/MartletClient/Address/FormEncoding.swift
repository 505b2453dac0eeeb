/// `application/x-www-form-urlencoded`, written and read as in the WHATWG URL Standard.
public enum FormEncoding {
    /// How a space is written.
    public enum Space: Hashable, Sendable {
        /// As `+`: what the media type says.
        case plus
        /// As `%20` (RFC 3986): what a query can hold without being mistaken for a plus sign.
        case percentEncoded
    }

    /// The set that is encoded: everything but letters, digits and `*-._`.
    private static let set = PercentEncoding.EncodeSet("!\"#$%&'()+,/:;<=>?@[\\]^`{|}~ ")

    /// The items as `name=value` pairs joined by `&`, in order, names and values in UTF-8.
    ///
    /// An item without a value is its name alone.
    ///
    /// - Parameters:
    ///   - items: The items.
    ///   - space: How a space is written; default `+`.
    public static func encoded(_ items: [QueryItem], space: Space = .plus) -> String {
        var output: [UInt8] = []
        for (index, item) in items.enumerated() {
            if index > 0 { output.append(UInt8(ascii: "&")) }
            append(item.name, space: space, to: &output)
            guard let value = item.value else { continue }
            output.append(UInt8(ascii: "="))
            append(value, space: space, to: &output)
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// The items of a form or query: `+` and `%20` are spaces, empty pairs are skipped, malformed UTF-8 is
    /// repaired.
    ///
    /// A pair without `=` has a nil value, so that encoding gives back what was read.
    public static func decoded(_ text: String) -> [QueryItem] {
        let bytes = text.utf8.map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
        return bytes.split(separator: UInt8(ascii: "&")).map { pair in
            guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else {
                return QueryItem(name: plain(pair), value: nil)
            }
            return QueryItem(name: plain(pair[..<equals]), value: plain(pair[(equals + 1)...]))
        }
    }

    private static func plain(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: PercentEncoding.decodedBytes(bytes), as: UTF8.self)
    }

    private static func append(_ text: String, space: Space, to output: inout [UInt8]) {
        for byte in text.utf8 {
            if byte == UInt8(ascii: " "), space == .plus {
                output.append(UInt8(ascii: "+"))
            } else if set.contains(byte) {
                PercentEncoding.append(escaped: byte, to: &output)
            } else {
                output.append(byte)
            }
        }
    }
}
