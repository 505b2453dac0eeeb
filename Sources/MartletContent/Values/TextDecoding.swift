/// A decoding of the bytes of a body as text: by the byte order mark, else the charset, else as UTF-8.
///
/// The labels are those of the WHATWG Encoding Standard for the encodings below (there ISO-8859-1 and US-ASCII mean
/// windows-1252), and those of UTF-32. Lenient decoding never fails: malformed bytes become U+FFFD.
package struct TextDecoding: Hashable, Sendable {
    /// The encoding used without a byte order mark.
    package let encoding: Encoding

    /// Creates a decoding for a charset label, such as ``MediaType/charset``; UTF-8 for none or an unknown one.
    package init(charset: String? = nil) { encoding = charset.flatMap { Encoding(label: $0) } ?? .utf8 }

    /// Creates a decoding for a charset label that must be known; UTF-8 for none.
    /// - Throws: ``ResponseDecodingError/unknownCharset(_:)``.
    package init(known charset: String?) throws(ResponseDecodingError) {
        self.init(charset: charset)
        if let charset, Encoding(label: charset) == nil { throw .unknownCharset(charset) }
    }

    /// Returns the text of a whole body, without its byte order mark.
    package func text(from bytes: some Collection<UInt8>) -> String {
        let (encoding, mark) = beginning(of: bytes)
        return TextDecoding.text(bytes.dropFirst(mark), in: encoding)
    }

    /// Returns the text of a whole body, which must be well-formed.
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

    /// Returns the encoding to use, and the size of the byte order mark. Four bytes are a mark only with a charset of
    /// UTF-32: in UTF-16, `FF FE 00 00` is a mark and a character.
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

    /// Returns the text of bytes without a byte order mark.
    package static func text(_ bytes: some Collection<UInt8>, in encoding: Encoding) -> String {
        func wide<Codec: Unicode.Encoding>(_ codec: Codec.Type, isBig: Bool) -> String
        where Codec.CodeUnit: FixedWidthInteger {
            let (units, isWhole) = units(of: codec, in: bytes, isBig: isBig)
            return String(decoding: units, as: codec) + (isWhole ? "" : "\u{FFFD}")
        }
        return switch encoding {
        case .utf8: String(decoding: bytes, as: UTF8.self)
        case .windows1252, .iso885915: String(String.UnicodeScalarView(bytes.lazy.map { encoding.character(of: $0) }))
        case .utf16LittleEndian, .utf16BigEndian: wide(UTF16.self, isBig: encoding == .utf16BigEndian)
        case .utf32LittleEndian, .utf32BigEndian: wide(UTF32.self, isBig: encoding == .utf32BigEndian)
        }
    }

    /// Returns the code units of a text, and whether no incomplete unit is left at the end.
    private static func units<Codec: Unicode.Encoding>(
        of codec: Codec.Type, in bytes: some Collection<UInt8>, isBig: Bool
    ) -> (units: [Codec.CodeUnit], isWhole: Bool) where Codec.CodeUnit: FixedWidthInteger {
        let size = MemoryLayout<Codec.CodeUnit>.size
        var units: [Codec.CodeUnit] = []
        units.reserveCapacity(bytes.count / size)
        var (unit, filled) = (0 as Codec.CodeUnit, 0)
        for byte in bytes {
            unit |= Codec.CodeUnit(byte) << (8 * (isBig ? size - 1 - filled : filled))
            filled += 1
            if filled == size {
                units.append(unit)
                (unit, filled) = (0, 0)
            }
        }
        return (units, filled == 0)
    }

    /// Returns the index of the first malformed byte in the slice; `nil` if all bytes are valid.
    static func malformedOffset(in bytes: ArraySlice<UInt8>, _ encoding: Encoding) -> Int? {
        func wide<Codec: Unicode.Encoding>(_ codec: Codec.Type, isBig: Bool) -> Int?
        where Codec.CodeUnit: FixedWidthInteger {
            let (units, isWhole) = units(of: codec, in: bytes, isBig: isBig)
            let (valid, hasError) = validCount(of: units, codec)
            guard hasError || !isWhole else { return nil }
            return bytes.startIndex + MemoryLayout<Codec.CodeUnit>.size * valid
        }
        switch encoding {
        case .windows1252, .iso885915: return nil
        case .utf8:
            let (valid, hasError) = validCount(of: bytes, UTF8.self)
            return hasError ? bytes.startIndex + valid : nil
        case .utf16LittleEndian, .utf16BigEndian: return wide(UTF16.self, isBig: encoding == .utf16BigEndian)
        case .utf32LittleEndian, .utf32BigEndian: return wide(UTF32.self, isBig: encoding == .utf32BigEndian)
        }
    }

    /// Returns the number of code units before the first malformed one, and whether one was found.
    private static func validCount<Codec: Unicode.Encoding>(
        of units: some Sequence<Codec.CodeUnit>, _ codec: Codec.Type
    ) -> (count: Int, hasError: Bool) {
        var (parser, iterator, count) = (Codec.ForwardParser(), units.makeIterator(), 0)
        while true {
            switch parser.parseScalar(from: &iterator) {
            case .valid(let scalar): count += scalar.count
            case .error: return (count, true)
            case .emptyInput: return (count, false)
            }
        }
    }
}

extension TextDecoding {
    /// The encodings that Martlet decodes.
    package enum Encoding: String, Hashable, Sendable, CaseIterable {
        /// UTF-8, the default encoding.
        case utf8 = "utf-8"
        /// windows-1252, the superset of ISO-8859-1 and US-ASCII.
        case windows1252 = "windows-1252"
        /// ISO-8859-15: ISO-8859-1 with the euro and seven letters.
        case iso885915 = "iso-8859-15"
        /// UTF-16, little-endian.
        case utf16LittleEndian = "utf-16le"
        /// UTF-16, big-endian.
        case utf16BigEndian = "utf-16be"
        /// UTF-32, little-endian.
        case utf32LittleEndian = "utf-32le"
        /// UTF-32, big-endian; also `utf-32` without a byte order mark.
        case utf32BigEndian = "utf-32be"

        /// Creates the encoding of a charset label, in any case; white space around it is ignored. `nil` if unknown.
        package init?(label: String) {
            let trimmed = label.lowercased().split { " \t\n\u{0C}\r".contains($0) }
            switch trimmed.count == 1 ? trimmed[0] : "" {
            case "utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8": self = .utf8
            case "windows-1252", "cp1252", "x-cp1252", "iso-8859-1", "iso8859-1", "iso88591", "iso_8859-1",
                "iso_8859-1:1987", "iso-ir-100", "latin1", "l1", "csisolatin1", "cp819", "ibm819", "us-ascii", "ascii",
                "ansi_x3.4-1968":
                self = .windows1252
            case "iso-8859-15", "iso8859-15", "iso885915", "iso_8859-15", "l9", "csisolatin9", "latin-9", "latin9":
                self = .iso885915
            case "utf-16", "utf-16le", "unicode", "unicodefeff", "ucs-2", "csunicode", "iso-10646-ucs-2":
                self = .utf16LittleEndian
            case "utf-16be", "unicodefffe": self = .utf16BigEndian
            case "utf-32le", "utf32le", "csutf32le": self = .utf32LittleEndian
            case "utf-32", "utf32", "csutf32", "utf-32be", "utf32be", "csutf32be": self = .utf32BigEndian
            default: return nil
            }
        }

        /// The characters 0x80 to 0x9F of windows-1252.
        private static let windowsCharacters: [UInt16] = [
            0x20AC, 0x0081, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152,
            0x008D, 0x017D, 0x008F, 0x0090, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122,
            0x0161, 0x203A, 0x0153, 0x009D, 0x017E, 0x0178,
        ]

        /// The characters of ISO-8859-15 that differ from ISO-8859-1.
        private static let latin9Characters: [UInt8: Unicode.Scalar] = [
            0xA4: "\u{20AC}", 0xA6: "\u{0160}", 0xA8: "\u{0161}", 0xB4: "\u{017D}", 0xB8: "\u{017E}", 0xBC: "\u{0152}",
            0xBD: "\u{0153}", 0xBE: "\u{0178}",
        ]

        /// Returns the character of a byte in a single-byte encoding.
        func character(of byte: UInt8) -> Unicode.Scalar {
            switch (self, byte) {
            case (.windows1252, 0x80...0x9F): Unicode.Scalar(Encoding.windowsCharacters[Int(byte) - 0x80]) ?? "\u{FFFD}"
            case (.iso885915, 0xA0...0xBF): Encoding.latin9Characters[byte] ?? Unicode.Scalar(byte)
            default: Unicode.Scalar(byte)
            }
        }
    }
}

extension String {
    /// Decodes bytes, such as those of a file or of a part of a body, by their byte order mark, else by a charset.
    /// - Parameter charset: A label such as `iso-8859-1`. The supported charsets are those of `ResponseDecoder.text`.
    /// - Throws: ``ResponseDecodingError/unknownCharset(_:)``. Invalid bytes become U+FFFD.
    public init(decoding bytes: some Collection<UInt8>, charset: String) throws(ResponseDecodingError) {
        self = try TextDecoding(known: charset).text(from: bytes)
    }
}
