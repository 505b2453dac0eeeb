/// A character encoding that can be parsed. The raw value is its name in expat.
public enum XMLEncoding: String, Hashable, Sendable {
    /// UTF-8, the default without a declaration.
    case utf8 = "UTF-8"
    /// UTF-16, low byte first.
    case utf16LittleEndian = "UTF-16LE"
    /// UTF-16, high byte first.
    case utf16BigEndian = "UTF-16BE"
    /// ISO-8859-1: each byte is the code point of the same number.
    case latin1 = "ISO-8859-1"
    /// US-ASCII; a byte above 127 is an error.
    case ascii = "US-ASCII"

    /// The number of bytes of a code unit.
    var unitByteCount: Int { space.count }

    var space: [UInt8] {
        switch self {
        case .utf16BigEndian: [0, 0x20]
        case .utf16LittleEndian: [0x20, 0]
        case .utf8, .latin1, .ascii: [0x20]
        }
    }

    /// Returns the UTF-16 code units of bytes; an odd byte at the end is ignored.
    private func units(_ bytes: ArraySlice<UInt8>) -> [UInt16] {
        stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2).map { index in
            let (first, second) = (UInt16(bytes[index]), UInt16(bytes[index + 1]))
            return self == .utf16BigEndian ? first << 8 | second : second << 8 | first
        }
    }

    /// Returns the characters of bytes, with U+FFFD for each malformed sequence.
    func scalars(_ bytes: ArraySlice<UInt8>) -> [Unicode.Scalar] {
        switch self {
        case .utf8: Array(String(decoding: bytes, as: UTF8.self).unicodeScalars)
        case .latin1: bytes.map { Unicode.Scalar($0) }
        case .ascii: bytes.map { $0 < 0x80 ? Unicode.Scalar($0) : "\u{FFFD}" }
        case .utf16LittleEndian, .utf16BigEndian: Array(String(decoding: units(bytes), as: UTF16.self).unicodeScalars)
        }
    }

    /// Returns the number of bytes at the front that expat may read now, and whether a lone surrogate follows them.
    ///
    /// In UTF-16 the bytes have only complete surrogate pairs, because expat does not check them. It checks the other
    /// encodings itself. A CR at the end waits for its LF unless it is the last byte, because expat could count the two
    /// as two line ends.
    func readable(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> (byteCount: Int, isMalformed: Bool) {
        guard unitByteCount == 2 else { return (bytes.last == 0x0D && !isLast ? bytes.count - 1 : bytes.count, false) }
        let units = units(bytes)
        var index = 0
        while index < units.count {
            let unit = units[index]
            if UTF16.isTrailSurrogate(unit) { return (index * 2, true) }
            if unit == 0x0D, index + 1 == units.count, !isLast { break }
            if UTF16.isLeadSurrogate(unit) {
                guard index + 1 < units.count else { break }
                guard UTF16.isTrailSurrogate(units[index + 1]) else { return (index * 2, true) }
                index += 1
            }
            index += 1
        }
        return (index * 2, false)
    }

    /// The encodings by their labels in a `charset` parameter or an encoding declaration, in lower case.
    private static let labels: [String: XMLEncoding] = [
        "utf-8": .utf8, "utf8": .utf8, "utf-16le": .utf16LittleEndian, "utf-16be": .utf16BigEndian,
        "iso-8859-1": .latin1, "iso_8859-1": .latin1, "iso8859-1": .latin1, "latin1": .latin1, "l1": .latin1,
        "us-ascii": .ascii, "ascii": .ascii,
    ]

    /// The encoding of a document before its declaration is read.
    struct Detection {
        let encoding: XMLEncoding
        let hasMark: Bool
        /// Whether the declaration of the document is used: a charset of the transport overrides it.
        let usesDeclaration: Bool

        /// Detects the encoding in the order of RFC 7303 §3.2: byte order mark, charset of the transport, then UTF-8
        /// until the declaration is read. UTF-16 without a mark needs a declaration, so it begins with `<?`.
        /// - Parameter first: The first four bytes of the document, or all of it.
        init(_ first: [UInt8], charset: String?) throws(XMLError) {
            let start = XMLPosition()
            usesDeclaration = charset == nil
            let marks: [(XMLEncoding, [UInt8])] = [
                (.utf8, [0xEF, 0xBB, 0xBF]), (.utf16BigEndian, [0xFE, 0xFF]), (.utf16LittleEndian, [0xFF, 0xFE]),
            ]
            switch first {
            case [0xFF, 0xFE, 0, 0], [0, 0, 0xFE, 0xFF], [0, 0, 0, 0x3C], [0x3C, 0, 0, 0]:
                throw XMLError(.unsupportedEncoding, at: start, "UTF-32 is not supported")
            default: break
            }
            if let marked = marks.first(where: { first.starts(with: $0.1) }) {
                (encoding, hasMark) = (marked.0, true)
                return
            }
            hasMark = false
            if let charset {
                guard let named = labels[charset.lowercased()] else {
                    throw charset.lowercased() == "utf-16"
                        ? XMLError(.encodingMismatch, at: start, "UTF-16 without a byte order mark")
                        : XMLError(
                            .unsupportedEncoding, at: start, "the charset \(charset.debugDescription) is not supported")
                }
                encoding = named
            } else if first == [0, 0x3C, 0, 0x3F] {
                encoding = .utf16BigEndian
            } else {
                encoding = first == [0x3C, 0, 0x3F, 0] ? .utf16LittleEndian : .utf8
            }
            // Zeros in other positions would make expat guess another encoding.
            let zeros = first.prefix(2).map { $0 == 0 }
            let isWide = encoding.unitByteCount == 2
            guard first.count < 2 || zeros == (isWide ? encoding.space.map { $0 == 0 } : [false, false]) else {
                throw XMLError(
                    isWide ? .encodingMismatch : .invalidCharacter, at: start,
                    "the document does not begin with a character of \(encoding.rawValue)")
            }
        }

        /// Returns the declared encoding; the detected one without a declaration, or if a charset overrides it.
        func encoding(declared name: String?, at position: XMLPosition) throws(XMLError) -> XMLEncoding {
            guard let name, usesDeclaration else { return encoding }
            let isWide = encoding.unitByteCount == 2
            if name.lowercased() == "utf-16", isWide, hasMark { return encoding }
            let declared = labels[name.lowercased()]
            guard declared != nil || name.lowercased() == "utf-16" else {
                throw XMLError(
                    .unsupportedEncoding, at: position,
                    "the encoding \(name.prefix(100).debugDescription) is not supported")
            }
            let mayDiffer = !isWide && !hasMark && declared?.unitByteCount == 1
            guard let declared, declared == encoding || mayDiffer else {
                throw XMLError(
                    .encodingMismatch, at: position, "\(name) is declared, but the encoding is \(encoding.rawValue)")
            }
            return declared
        }
    }
}
