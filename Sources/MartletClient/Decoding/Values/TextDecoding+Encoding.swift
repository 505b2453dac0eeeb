extension TextDecoding {
    /// The encodings Martlet decodes.
    package enum Encoding: String, Hashable, Sendable, CaseIterable {
        /// UTF-8.
        case utf8 = "utf-8"
        /// windows-1252, the superset of ISO-8859-1 and US-ASCII.
        case windows1252 = "windows-1252"
        /// ISO-8859-15: ISO-8859-1 with the euro and seven letters.
        case iso885915 = "iso-8859-15"
        /// UTF-16, low byte first.
        case utf16LittleEndian = "utf-16le"
        /// UTF-16, high byte first.
        case utf16BigEndian = "utf-16be"
        /// UTF-32, low byte first.
        case utf32LittleEndian = "utf-32le"
        /// UTF-32, high byte first: also what `utf-32` means where no byte order mark says otherwise.
        case utf32BigEndian = "utf-32be"

        /// The encoding of a charset label, in any case and between any blanks; `nil` when Martlet does not know it.
        package init?(label: String) {
            let trimmed = label.lowercased().split { " \t\n\u{0C}\r".contains($0) }
            switch trimmed.count == 1 ? trimmed[0] : "" {
            case "utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8":
                self = .utf8
            case "windows-1252", "cp1252", "x-cp1252", "iso-8859-1", "iso8859-1", "iso88591", "iso_8859-1",
                "iso_8859-1:1987", "iso-ir-100", "latin1", "l1", "csisolatin1", "cp819", "ibm819", "us-ascii",
                "ascii", "ansi_x3.4-1968":
                self = .windows1252
            case "iso-8859-15", "iso8859-15", "iso885915", "iso_8859-15", "l9", "csisolatin9", "latin-9",
                "latin9":
                self = .iso885915
            case "utf-16", "utf-16le", "unicode", "unicodefeff", "ucs-2", "csunicode", "iso-10646-ucs-2":
                self = .utf16LittleEndian
            case "utf-16be", "unicodefffe":
                self = .utf16BigEndian
            case "utf-32le", "utf32le", "csutf32le":
                self = .utf32LittleEndian
            case "utf-32", "utf32", "csutf32", "utf-32be", "utf32be", "csutf32be":
                self = .utf32BigEndian
            default:
                return nil
            }
        }

        /// What 0x80 to 0x9F mean in windows-1252.
        private static let windowsCharacters: [UInt16] = [
            0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039,
            0x0152, 0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
            0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
        ]

        /// What a byte means in an encoding of one byte for each character.
        func character(of byte: UInt8) -> Unicode.Scalar {
            switch (self, byte) {
            case (.windows1252, 0x80...0x9F):
                Unicode.Scalar(Encoding.windowsCharacters[Int(byte) - 0x80]) ?? "\u{FFFD}"
            case (.iso885915, 0xA4): "\u{20AC}"
            case (.iso885915, 0xA6): "\u{0160}"
            case (.iso885915, 0xA8): "\u{0161}"
            case (.iso885915, 0xB4): "\u{017D}"
            case (.iso885915, 0xB8): "\u{017E}"
            case (.iso885915, 0xBC): "\u{0152}"
            case (.iso885915, 0xBD): "\u{0153}"
            case (.iso885915, 0xBE): "\u{0178}"
            default: Unicode.Scalar(byte)
            }
        }
    }
}
