/// How the bytes of a body become text: byte order mark first, then the charset, then UTF-8.
///
/// Labels are those of the WHATWG Encoding Standard for the encodings below, ISO-8859-1 and US-ASCII meaning
/// windows-1252 as they do there. Decoding never fails: what is malformed becomes U+FFFD.
package struct TextDecoding: Hashable, Sendable {
    /// The encodings Martlet decodes.
    package enum Encoding: Hashable, Sendable {
        /// UTF-8.
        case utf8
        /// windows-1252, the superset of ISO-8859-1 and US-ASCII.
        case windows1252
        /// UTF-16, low byte first.
        case utf16LittleEndian
        /// UTF-16, high byte first.
        case utf16BigEndian

        /// The encoding of a charset label, in any case; nil when Martlet does not know it.
        package init?(label: String) {
            switch label.lowercased() {
            case "utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8":
                self = .utf8
            case "windows-1252", "cp1252", "x-cp1252", "iso-8859-1", "iso8859-1", "iso88591", "iso_8859-1",
                "iso_8859-1:1987", "iso-ir-100", "latin1", "l1", "csisolatin1", "cp819", "ibm819", "us-ascii",
                "ascii", "ansi_x3.4-1968":
                self = .windows1252
            case "utf-16", "utf-16le", "unicode", "unicodefeff", "ucs-2", "csunicode", "iso-10646-ucs-2":
                self = .utf16LittleEndian
            case "utf-16be", "unicodefffe":
                self = .utf16BigEndian
            default:
                return nil
            }
        }
    }

    /// What is used when there is no byte order mark.
    package let encoding: Encoding

    /// A decoding for a charset label, such as ``MediaType/charset``; none, or an unknown one, means UTF-8.
    package init(charset: String? = nil) {
        encoding = charset.flatMap { Encoding(label: $0) } ?? .utf8
    }

    /// The text of a whole body, without its byte order mark.
    package func text(from bytes: some Collection<UInt8>) -> String {
        let start = Array(bytes.prefix(3))
        if start == [0xEF, 0xBB, 0xBF] { return TextDecoding.text(bytes.dropFirst(3), in: .utf8) }
        if start.starts(with: [0xFE, 0xFF]) {
            return TextDecoding.text(bytes.dropFirst(2), in: .utf16BigEndian)
        }
        if start.starts(with: [0xFF, 0xFE]) {
            return TextDecoding.text(bytes.dropFirst(2), in: .utf16LittleEndian)
        }
        return TextDecoding.text(bytes, in: encoding)
    }

    private static func text(_ bytes: some Collection<UInt8>, in encoding: Encoding) -> String {
        switch encoding {
        case .utf8:
            return String(decoding: bytes, as: UTF8.self)
        case .windows1252:
            var view = String.UnicodeScalarView()
            for byte in bytes {
                let isHigh = (0x80...0x9F).contains(byte)
                let code = isHigh ? high[Int(byte) - 0x80] : UInt16(byte)
                view.append(Unicode.Scalar(code) ?? "\u{FFFD}")
            }
            return String(view)
        case .utf16LittleEndian, .utf16BigEndian:
            var units: [UInt16] = []
            units.reserveCapacity(bytes.count / 2 + 1)
            var pending: UInt8?
            for byte in bytes {
                guard let first = pending else {
                    pending = byte
                    continue
                }
                pending = nil
                let isBig = encoding == .utf16BigEndian
                units.append(isBig ? UInt16(first) << 8 | UInt16(byte) : UInt16(byte) << 8 | UInt16(first))
            }
            // Half a unit at the end.
            if pending != nil { units.append(0xFFFD) }
            return String(decoding: units, as: UTF16.self)
        }
    }

    /// What 0x80 to 0x9F mean in windows-1252.
    private static let high: [UInt16] = [
        0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
        0x0152, 0x008D,
        0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122,
        0x0161, 0x203A,
        0x0153, 0x009D, 0x017E, 0x0178,
    ]
}
