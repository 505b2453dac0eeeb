/// Bytes to characters: finds out the encoding, refuses what is malformed in it, makes one LF of each end of a line
/// (XML 1.0 §2.11), and counts.
///
/// Which of the sources for the encoding counts is as RFC 7303 §3.2 has it: byte order mark, then the charset from
/// outside, then the document's own declaration, then UTF-8.
struct ScalarReader {
    private var buffer: [UInt8] = []
    private var index = 0
    /// Whether all bytes have been fed.
    private(set) var isFinished = false
    /// The encoding; nil until the first bytes have shown it.
    private(set) var encoding: XMLEncoding?
    /// Where the next character begins.
    private(set) var position = XMLPosition()
    /// Whether the encoding was told by a byte order mark.
    private var hasMark = false
    /// The charset from outside.
    private let charset: String?
    private let byteLimit: Int
    /// Whether the last character was a CR, so that an LF behind it is part of it.
    private var isBehindReturn = false

    /// A reader.
    /// - Parameters:
    ///   - charset: What the transport says, such as the `charset` of `Content-Type`.
    ///   - byteLimit: The most bytes of a document.
    init(charset: String?, byteLimit: Int) {
        self.charset = charset
        self.byteLimit = byteLimit
    }

    /// Adds bytes.
    mutating func feed(_ bytes: some Sequence<UInt8>) {
        // Only when that much was read, so that what is left is not moved again and again.
        if index > buffer.count / 2 {
            buffer.removeFirst(index)
            index = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// Says that no bytes follow.
    mutating func finish() { isFinished = true }

    /// The next character; nil when more bytes are needed, or none follow.
    /// - Parameter place: Is set to where the character begins.
    mutating func next(_ place: inout XMLPosition) throws(XMLError) -> UInt32? {
        while true {
            guard let encoding = try settledEncoding() else { return nil }
            guard index < buffer.count else {
                place = position
                return nil
            }
            guard position.byteOffset < byteLimit else {
                throw XMLError(
                    .limitExceeded, at: position, "the document has more than \(byteLimit) bytes")
            }
            guard let (code, width) = try decode(encoding) else {
                guard isFinished else { return nil }
                throw XMLError(.invalidByteSequence, at: position, "the last character is cut short")
            }
            place = position
            guard XMLCharacter.isLegal(code) else {
                throw XMLError(
                    .invalidCharacter, at: position,
                    "\(XMLCharacter.shown(code)) may not stand in a document")
            }
            index += width
            position.byteOffset += width
            if code == 0x0A, isBehindReturn {
                isBehindReturn = false
                continue
            }
            isBehindReturn = code == 0x0D
            if code == 0x0A || code == 0x0D {
                position.line += 1
                position.column = 1
                return 0x0A
            }
            position.column += 1
            return code
        }
    }

    /// Moves a run of bytes that stand for themselves, of at most so many, behind others.
    mutating func moveRun(upTo room: Int, to bytes: inout [UInt8]) {
        guard let encoding, encoding.isEightBit else { return }
        let end = min(buffer.count, index + min(room, byteLimit - position.byteOffset))
        var reached = index
        while reached < end, XMLCharacter.isPlain(buffer[reached]) { reached += 1 }
        let count = reached - index
        guard count > 0 else { return }
        bytes.append(contentsOf: buffer[index..<reached])
        index = reached
        position.byteOffset += count
        position.column += count
        isBehindReturn = false
    }

    /// Takes note of what the document declares.
    mutating func declare(_ name: String?, at place: XMLPosition) throws(XMLError) {
        // What comes from outside goes first, and then the declaration says nothing.
        guard let name, charset == nil, let encoding else { return }
        let label = XMLEncoding.Label(name)
        switch label {
        case .unknown:
            throw XMLError(
                .unsupportedEncoding, at: place, "the encoding \(name.debugDescription) is unknown")
        case .utf16:
            guard hasMark, !encoding.isEightBit else {
                throw XMLError(
                    .encodingMismatch, at: place, "UTF-16 is declared, and there is no byte order mark of it")
            }
        case .encoding(let declared):
            if declared == encoding { return }
            guard declared.isEightBit, encoding.isEightBit, !hasMark else {
                throw XMLError(
                    .encodingMismatch, at: place, "\(name) is declared, and this is \(encoding.rawValue)")
            }
            self.encoding = declared
        }
    }

    /// The encoding once the first bytes are there.
    private mutating func settledEncoding() throws(XMLError) -> XMLEncoding? {
        if let encoding { return encoding }
        let first = Array(buffer[index...].prefix(4))
        guard first.count == 4 || isFinished else { return nil }
        var markByteCount = 0
        var found: XMLEncoding?
        if first == [0xFF, 0xFE, 0, 0] || first == [0, 0, 0xFE, 0xFF] || first == [0, 0, 0, 0x3C]
            || first == [0x3C, 0, 0, 0]
        {
            throw XMLError(.unsupportedEncoding, at: position, "UTF-32 is not read")
        } else if first.starts(with: [0xEF, 0xBB, 0xBF]) {
            (found, markByteCount) = (.utf8, 3)
        } else if first.starts(with: [0xFE, 0xFF]) {
            (found, markByteCount) = (.utf16BigEndian, 2)
        } else if first.starts(with: [0xFF, 0xFE]) {
            (found, markByteCount) = (.utf16LittleEndian, 2)
        } else if let charset {
            found = try encoding(of: charset)
        } else if first == [0, 0x3C, 0, 0x3F] {
            found = .utf16BigEndian
        } else if first == [0x3C, 0, 0x3F, 0] {
            found = .utf16LittleEndian
        }
        hasMark = markByteCount > 0
        index += markByteCount
        position.byteOffset += markByteCount
        let settled = found ?? .utf8
        encoding = settled
        return settled
    }

    private func encoding(of charset: String) throws(XMLError) -> XMLEncoding {
        switch XMLEncoding.Label(charset) {
        case .encoding(let encoding): return encoding
        case .utf16:
            throw XMLError(.encodingMismatch, at: position, "UTF-16 without a byte order mark")
        case .unknown:
            throw XMLError(
                .unsupportedEncoding, at: position, "the charset \(charset.debugDescription) is unknown")
        }
    }

    /// The code point at the index and how many bytes it takes; nil when it is cut short.
    private func decode(_ encoding: XMLEncoding) throws(XMLError) -> (UInt32, Int)? {
        let first = buffer[index]
        switch encoding {
        case .latin1:
            return (UInt32(first), 1)
        case .ascii:
            guard first < 0x80 else { throw malformed(encoding) }
            return (UInt32(first), 1)
        case .utf8:
            if first < 0x80 { return (UInt32(first), 1) }
            return try decodeUTF8(first)
        case .utf16LittleEndian, .utf16BigEndian:
            guard let unit = unit(at: index, encoding) else { return nil }
            guard (0xD800...0xDFFF).contains(unit) else { return (unit, 2) }
            guard unit < 0xDC00 else { throw malformed(encoding) }
            guard let low = self.unit(at: index + 2, encoding) else { return nil }
            guard (0xDC00...0xDFFF).contains(low) else { throw malformed(encoding) }
            return (0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00), 4)
        }
    }

    private func unit(at start: Int, _ encoding: XMLEncoding) -> UInt32? {
        guard start + 1 < buffer.count else { return nil }
        let (first, second) = (UInt32(buffer[start]), UInt32(buffer[start + 1]))
        return encoding == .utf16BigEndian ? first << 8 | second : second << 8 | first
    }

    private func decodeUTF8(_ first: UInt8) throws(XMLError) -> (UInt32, Int)? {
        let width: Int
        // The bounds of the second byte keep overlong forms, surrogates and numbers beyond Unicode out.
        var bounds: ClosedRange<UInt8> = 0x80...0xBF
        switch first {
        case 0xC2...0xDF: width = 2
        case 0xE0: (width, bounds) = (3, 0xA0...0xBF)
        case 0xED: (width, bounds) = (3, 0x80...0x9F)
        case 0xE1...0xEF: width = 3
        case 0xF0: (width, bounds) = (4, 0x90...0xBF)
        case 0xF1...0xF3: width = 4
        case 0xF4: (width, bounds) = (4, 0x80...0x8F)
        default: throw malformed(.utf8)
        }
        var code = UInt32(first) & (width == 2 ? 0x1F : width == 3 ? 0x0F : 0x07)
        for place in 1..<width {
            guard index + place < buffer.count else { return nil }
            let byte = buffer[index + place]
            guard bounds.contains(byte) else { throw malformed(.utf8) }
            bounds = 0x80...0xBF
            code = code << 6 | UInt32(byte & 0x3F)
        }
        return (code, width)
    }

    private func malformed(_ encoding: XMLEncoding) -> XMLError {
        XMLError(.invalidByteSequence, at: position, "these bytes are no \(encoding.rawValue)")
    }
}
