/// The character encodings that a document can be read in.
public enum XMLEncoding: String, Hashable, Sendable {
    /// UTF-8.
    case utf8 = "UTF-8"
    /// UTF-16, low byte first.
    case utf16LittleEndian = "UTF-16LE"
    /// UTF-16, high byte first.
    case utf16BigEndian = "UTF-16BE"
    /// ISO-8859-1, in which each byte is the code point of its number.
    case latin1 = "ISO-8859-1"
    /// US-ASCII; a byte above 127 is an error.
    case ascii = "US-ASCII"

    /// What a label means.
    enum Label: Equatable {
        /// One of the encodings.
        case encoding(XMLEncoding)
        /// UTF-16 in the order that the byte order mark tells.
        case utf16
        /// Another one, or none at all.
        case unknown

        /// The meaning of a `charset` parameter or an encoding declaration, in any case.
        init(_ label: String) {
            self =
                switch label.lowercased() {
                case "utf-8", "utf8": .encoding(.utf8)
                case "utf-16": .utf16
                case "utf-16le": .encoding(.utf16LittleEndian)
                case "utf-16be": .encoding(.utf16BigEndian)
                case "iso-8859-1", "iso_8859-1", "iso8859-1", "latin1", "l1": .encoding(.latin1)
                case "us-ascii", "ascii": .encoding(.ascii)
                default: .unknown
                }
        }
    }

    /// Whether a byte below 128 is the character of that number.
    var isEightBit: Bool { self != .utf16LittleEndian && self != .utf16BigEndian }
}
