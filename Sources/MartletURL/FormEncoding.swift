/// The encoding and decoding of `application/x-www-form-urlencoded`, as in the WHATWG URL Standard.
public enum FormEncoding {
    /// The encoding of a space.
    public enum Space: Hashable, Sendable {
        /// A plus sign, `+`, as the media type specifies.
        case plus
        /// `%20` (RFC 3986), which a query parser cannot mistake for a plus sign.
        case percentEncoded
    }

    /// The bytes that are encoded: all except letters, digits and `*-._`.
    private static let set = PercentEncoding.EncodeSet("!\"#$%&'()+,/:;<=>?@[\\]^`{|}~ ")

    /// Encodes items as `name=value` pairs joined by `&`, in order, names and values in UTF-8.
    ///
    /// An item without a value is written as its name, without `=`.
    ///
    /// - Parameters:
    ///   - items: The items to encode.
    ///   - space: The encoding of a space; `+` by default.
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

    /// Decodes a form or query. `+` and `%20` are spaces, empty pairs are skipped, and malformed UTF-8 is repaired.
    ///
    /// A pair without `=` has a `nil` value, so that encoding restores the input.
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

/// Percent-encoding as in the WHATWG URL Standard: the bytes of each component that are written as `%XX`.
package enum PercentEncoding {
    /// A set of ASCII bytes to encode, one bit each. Bytes of 0x80 and above are always encoded.
    package struct EncodeSet {
        private let low: UInt64
        private let high: UInt64

        /// Creates a set of characters in addition to another set; without it, to the control characters and DEL.
        package init(_ characters: String, and other: EncodeSet? = nil) {
            var low = other?.low ?? 0xFFFF_FFFF
            var high = other?.high ?? (1 << 63)
            for byte in characters.utf8 {
                if byte < 64 { low |= 1 << UInt64(byte) } else { high |= 1 << UInt64(byte & 63) }
            }
            (self.low, self.high) = (low, high)
        }

        /// Whether the byte must be encoded.
        package func contains(_ byte: UInt8) -> Bool {
            if byte < 64 { return low >> UInt64(byte) & 1 == 1 }
            return byte >= 128 || high >> UInt64(byte & 63) & 1 == 1
        }
    }

    /// The fragment percent-encode set.
    static let fragmentSet = EncodeSet(" \"<>`")
    /// The special-query percent-encode set, which is for http and https.
    static let querySet = EncodeSet(" \"#<>'")
    /// The path percent-encode set.
    static let pathSet = EncodeSet("?^`{}", and: EncodeSet(" \"#<>"))
    /// The userinfo percent-encode set.
    static let userInfoSet = EncodeSet("/:;=@[\\]|", and: pathSet)
    /// The bytes that are encoded in one segment of a path: all except letters, digits and `-._~`.
    static let segmentSet = EncodeSet("!$%&'()*+,", and: userInfoSet)

    /// Encodes the bytes of `set`, preserves valid `%XX`, and writes any other `%` as `%25`.
    static func encoded(_ bytes: ArraySlice<UInt8>, set: EncodeSet) -> String {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        append(bytes, set: set, to: &output)
        return String(decoding: output, as: UTF8.self)
    }

    /// Appends the result of ``encoded(_:set:)`` to bytes.
    static func append(_ bytes: ArraySlice<UInt8>, set: EncodeSet, to output: inout [UInt8]) {
        for index in bytes.indices {
            let byte = bytes[index]
            let isLonePercent = byte == UInt8(ascii: "%") && value(ofHexAt: index, in: bytes) == nil
            if isLonePercent || set.contains(byte) { append(escaped: byte, to: &output) } else { output.append(byte) }
        }
    }

    /// Appends a text, with the bytes of a set written as `%XX`.
    package static func append(_ text: String, escaping set: EncodeSet, to output: inout [UInt8]) {
        for byte in text.utf8 {
            if set.contains(byte) { append(escaped: byte, to: &output) } else { output.append(byte) }
        }
    }

    /// Appends one byte as `%XX`, in upper case as RFC 3986 §2.1 recommends.
    package static func append(escaped byte: UInt8, to output: inout [UInt8]) {
        output += [UInt8(ascii: "%"), hexDigit(byte >> 4), hexDigit(byte & 15)]
    }

    /// Returns the byte that `%XX` at `index` encodes; `nil` unless two hex digits follow.
    package static func value(ofHexAt index: Int, in bytes: ArraySlice<UInt8>) -> UInt8? {
        guard index + 2 < bytes.endIndex, let high = hexValue(bytes[index + 1]), let low = hexValue(bytes[index + 2])
        else { return nil }
        return high << 4 | low
    }

    /// Replaces every valid `%XX` with the byte that it encodes.
    static func decodedBytes(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let escaped = bytes[index] == UInt8(ascii: "%") ? value(ofHexAt: index, in: bytes) : nil
            output.append(escaped ?? bytes[index])
            index += escaped == nil ? 1 : 3
        }
        return output
    }

    /// Returns the decoded text, with malformed UTF-8 replaced by U+FFFD.
    package static func decoded(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return text }
        return String(decoding: decodedBytes(ArraySlice(text.utf8)), as: UTF8.self)
    }

    /// Returns the value of an ASCII hex digit; `nil` for other bytes.
    package static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}

/// A name and a value of a query or form, as plain text: encoded when written, decoded when read.
public struct QueryItem: Hashable, Sendable {
    /// The name, decoded.
    public var name: String
    /// The value, decoded; with `nil` the name is written without `=`.
    public var value: String?

    /// Creates an item with a name and a value.
    public init(name: String, value: String?) { (self.name, self.value) = (name, value) }
}
