/// The character encodings that can be read. The raw values are the names that expat knows.
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

    /// The number of bytes of a code unit.
    var unitByteCount: Int { self == .utf16LittleEndian || self == .utf16BigEndian ? 2 : 1 }

    /// The code units of bytes in UTF-16; an odd byte at the end is ignored.
    private func units(_ bytes: ArraySlice<UInt8>) -> [UInt16] {
        stride(from: bytes.startIndex, to: bytes.endIndex - 1, by: 2).map { place in
            let (first, second) = (UInt16(bytes[place]), UInt16(bytes[place + 1]))
            return self == .utf16BigEndian ? first << 8 | second : second << 8 | first
        }
    }

    /// The characters of bytes; U+FFFD for each sequence that is malformed.
    func scalars(_ bytes: ArraySlice<UInt8>) -> [Unicode.Scalar] {
        switch self {
        case .utf8: Array(String(decoding: bytes, as: UTF8.self).unicodeScalars)
        case .latin1: bytes.map { Unicode.Scalar($0) }
        case .ascii: bytes.map { $0 < 0x80 ? Unicode.Scalar($0) : "\u{FFFD}" }
        case .utf16LittleEndian, .utf16BigEndian:
            Array(String(decoding: units(bytes), as: UTF16.self).unicodeScalars)
        }
    }

    /// The number of bytes at the front that expat may read now, and whether a lone surrogate follows them.
    ///
    /// In UTF-16 these are whole surrogate pairs, which expat does not check; it checks the other encodings itself. A CR at the
    /// end waits for its LF, since expat can count the two as two ends of a line, unless no byte will follow.
    func readable(_ bytes: ArraySlice<UInt8>, isLast: Bool) -> (byteCount: Int, isMalformed: Bool) {
        guard unitByteCount == 2 else {
            return (bytes.last == 0x0D && !isLast ? bytes.count - 1 : bytes.count, false)
        }
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
}

extension XMLEncoding {
    /// The meaning of a `charset` parameter or an encoding declaration.
    enum Label: Equatable {
        /// One of the encodings.
        case encoding(XMLEncoding)
        /// UTF-16 in the order of the byte order mark.
        case utf16
        /// Any other encoding.
        case unknown

        /// Finds the meaning of a label, in any case.
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

    /// The encoding of a document before its declaration is read.
    struct Detection {
        let encoding: XMLEncoding
        /// Whether there is a byte order mark.
        let hasMark: Bool
        /// Whether the declaration of the document counts: the charset of the transport replaces it.
        var heedsDeclaration = true

        /// Detects the encoding in the order of RFC 7303 §3.2: byte order mark, charset of the transport, then UTF-8 until
        /// the declaration is read. UTF-16 without a mark needs a declaration, so it begins with `<?`.
        /// - Parameter first: The first four bytes of the document, or all of it.
        init(_ first: [UInt8], charset: String?) throws(XMLError) {
            let start = XMLPosition()
            switch (first, charset) {
            case ([0xFF, 0xFE, 0, 0], _), ([0, 0, 0xFE, 0xFF], _), ([0, 0, 0, 0x3C], _),
                ([0x3C, 0, 0, 0], _):
                throw XMLError(.unsupportedEncoding, at: start, "UTF-32 is not supported")
            case _ where first.starts(with: [0xEF, 0xBB, 0xBF]): self.init(.utf8, hasMark: true)
            case _ where first.starts(with: [0xFE, 0xFF]): self.init(.utf16BigEndian, hasMark: true)
            case _ where first.starts(with: [0xFF, 0xFE]): self.init(.utf16LittleEndian, hasMark: true)
            case (_, let charset?):
                switch Label(charset) {
                case .encoding(let encoding): self.init(encoding, hasMark: false)
                case .utf16:
                    throw XMLError(.encodingMismatch, at: start, "UTF-16 without a byte order mark")
                case .unknown:
                    throw XMLError(
                        .unsupportedEncoding, at: start,
                        "the charset \(charset.debugDescription) is not supported")
                }
            case ([0, 0x3C, 0, 0x3F], _): self.init(.utf16BigEndian, hasMark: false)
            case ([0x3C, 0, 0x3F, 0], _): self.init(.utf16LittleEndian, hasMark: false)
            default: self.init(.utf8, hasMark: false)
            }
            heedsDeclaration = charset == nil
            try checkZeros(first)
        }

        private init(_ encoding: XMLEncoding, hasMark: Bool) {
            self.encoding = encoding
            self.hasMark = hasMark
        }

        /// Refuses zeros that would make expat guess another encoding. A document begins with an ASCII character.
        private func checkZeros(_ first: [UInt8]) throws(XMLError) {
            guard !hasMark, first.count >= 2 else { return }
            let isSound =
                switch encoding {
                case .utf16BigEndian: first[0] == 0 && first[1] != 0
                case .utf16LittleEndian: first[0] != 0 && first[1] == 0
                default: first[0] != 0 && first[1] != 0
                }
            guard !isSound else { return }
            throw XMLError(
                encoding.unitByteCount == 1 ? .invalidCharacter : .encodingMismatch, at: XMLPosition(),
                "the document does not begin with a character of \(encoding.rawValue)")
        }

        /// The encoding that a document declares; the detected one if it declares none, or may not.
        func encoding(declared name: String?, at position: XMLPosition) throws(XMLError) -> XMLEncoding {
            guard let name, heedsDeclaration else { return encoding }
            let isWide = encoding.unitByteCount == 2
            switch Label(name) {
            case .encoding(let declared) where declared == encoding: return encoding
            case .encoding(let declared) where declared.unitByteCount == 1 && !isWide && !hasMark:
                return declared
            case .utf16 where hasMark && isWide: return encoding
            case .unknown:
                throw XMLError(
                    .unsupportedEncoding, at: position,
                    "the encoding \(name.debugDescription) is not supported")
            default:
                throw XMLError(
                    .encodingMismatch, at: position, "\(name) is declared, but this is \(encoding.rawValue)")
            }
        }
    }
}
