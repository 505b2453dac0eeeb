/// How the bytes of a body become text: byte order mark first, then the charset, then UTF-8.
///
/// Labels are those of the WHATWG Encoding Standard for the encodings below, ISO-8859-1 and US-ASCII meaning
/// windows-1252 as they do there, and besides them those of UTF-32. Decoding never fails, unless it is asked to: what is
/// malformed becomes U+FFFD.
package struct TextDecoding: Hashable, Sendable {
    /// What is used when there is no byte order mark.
    package let encoding: Encoding

    /// A decoding for a charset label, such as ``MediaType/charset``; none, or an unknown one, means UTF-8.
    package init(charset: String? = nil) { encoding = charset.flatMap { Encoding(label: $0) } ?? .utf8 }

    /// A decoding for an encoding.
    package init(_ encoding: Encoding) { self.encoding = encoding }

    /// The text of a whole body, without its byte order mark.
    package func text(from bytes: some Collection<UInt8>) -> String {
        let (encoding, mark) = beginning(of: bytes)
        return TextDecoding.text(bytes.dropFirst(mark), in: encoding)
    }

    /// The text of a whole body, provided that all of it makes sense.
    /// - Throws: ``ResponseDecodingError/malformedText(charset:offset:)``.
    package func strictText(from bytes: [UInt8]) throws(ResponseDecodingError) -> String {
        let (encoding, mark) = beginning(of: bytes)
        let content = bytes[mark...]
        if encoding == .utf8, let text = String(validating: content, as: UTF8.self) { return text }
        if let offset = TextDecoding.malformedOffset(in: content, encoding) {
            throw .malformedText(charset: encoding.rawValue, offset: offset)
        }
        return TextDecoding.text(content, in: encoding)
    }

    /// The encoding in force, and how many bytes of mark say so.
    ///
    /// That four bytes are a mark is believed only of what is said to be UTF-32: as UTF-16, `FF FE 00 00` is a mark and a
    /// character.
    private func beginning(of bytes: some Collection<UInt8>) -> (encoding: Encoding, mark: Int) {
        let start = Array(bytes.prefix(4))
        if encoding == .utf32LittleEndian || encoding == .utf32BigEndian {
            if start == [0xFF, 0xFE, 0, 0] { return (.utf32LittleEndian, 4) }
            if start == [0, 0, 0xFE, 0xFF] { return (.utf32BigEndian, 4) }
        }
        if start.starts(with: [0xEF, 0xBB, 0xBF]) { return (.utf8, 3) }
        if start.starts(with: [0xFE, 0xFF]) { return (.utf16BigEndian, 2) }
        if start.starts(with: [0xFF, 0xFE]) { return (.utf16LittleEndian, 2) }
        return (encoding, 0)
    }

    private static func text(_ bytes: some Collection<UInt8>, in encoding: Encoding) -> String {
        switch encoding {
        case .utf8: return String(decoding: bytes, as: UTF8.self)
        case .windows1252, .iso885915:
            var view = String.UnicodeScalarView()
            for byte in bytes { view.append(encoding.character(of: byte)) }
            return String(view)
        case .utf16LittleEndian, .utf16BigEndian:
            let (units, isWhole) = numbers(of: 2, in: bytes, isBig: encoding == .utf16BigEndian)
            let text = String(decoding: units.map { UInt16(truncatingIfNeeded: $0) }, as: UTF16.self)
            return isWhole ? text : text + "\u{FFFD}"
        case .utf32LittleEndian, .utf32BigEndian:
            let (units, isWhole) = numbers(of: 4, in: bytes, isBig: encoding == .utf32BigEndian)
            var view = String.UnicodeScalarView()
            for unit in units { view.append(Unicode.Scalar(unit) ?? "\u{FFFD}") }
            if !isWhole { view.append("\u{FFFD}") }
            return String(view)
        }
    }

    /// Numbers of so many bytes each, and whether no bytes are left over.
    private static func numbers(
        of byteCount: Int, in bytes: some Collection<UInt8>, isBig: Bool
    ) -> (numbers: [UInt32], isWhole: Bool) {
        var numbers: [UInt32] = []
        numbers.reserveCapacity(bytes.count / byteCount)
        var (number, filled) = (UInt32(0), 0)
        for byte in bytes {
            number = isBig ? number << 8 | UInt32(byte) : number | UInt32(byte) << (8 * UInt32(filled))
            filled += 1
            if filled == byteCount {
                numbers.append(number)
                (number, filled) = (0, 0)
            }
        }
        return (numbers, filled == 0)
    }

    /// Where the first byte is that makes no sense, counted from the beginning of the body; `nil` where all do.
    private static func malformedOffset(in bytes: ArraySlice<UInt8>, _ encoding: Encoding) -> Int? {
        switch encoding {
        case .windows1252, .iso885915: return nil
        case .utf8:
            return firstError(in: bytes, of: Unicode.UTF8.ForwardParser(), from: bytes.startIndex, size: 1)
        case .utf16LittleEndian, .utf16BigEndian:
            let (units, isWhole) = numbers(of: 2, in: bytes, isBig: encoding == .utf16BigEndian)
            let error = firstError(
                in: units.map { UInt16(truncatingIfNeeded: $0) }, of: Unicode.UTF16.ForwardParser(),
                from: bytes.startIndex, size: 2)
            return error ?? (isWhole ? nil : bytes.endIndex - 1)
        case .utf32LittleEndian, .utf32BigEndian:
            let (units, isWhole) = numbers(of: 4, in: bytes, isBig: encoding == .utf32BigEndian)
            if let index = units.firstIndex(where: { Unicode.Scalar($0) == nil }) {
                return bytes.startIndex + 4 * index
            }
            return isWhole ? nil : bytes.startIndex + 4 * units.count
        }
    }

    /// Where the first unit is that a parser does not take.
    private static func firstError<Units: Sequence, Parser: Unicode.Parser>(
        in units: Units, of parser: Parser, from start: Int, size: Int
    ) -> Int? where Units.Element == Parser.Encoding.CodeUnit {
        var (parser, iterator, offset) = (parser, units.makeIterator(), start)
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid(let scalar): offset += size * scalar.count
            case .error: return offset
            case .emptyInput: return nil
            }
        }
    }
}

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
            case "utf-16be", "unicodefffe": self = .utf16BigEndian
            case "utf-32le", "utf32le", "csutf32le": self = .utf32LittleEndian
            case "utf-32", "utf32", "csutf32", "utf-32be", "utf32be", "csutf32be": self = .utf32BigEndian
            default: return nil
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
