import MartletWire
public import SystemPackage

/// An error of a multipart body that could not be built or completely sent.
public enum MultipartError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A name, file name, content type or field of a part has a forbidden byte, such as NUL, at this offset in UTF-8.
    case invalidText(String, offset: Int)
    /// A part's own field has a name that is not a token, or a name that the form sets itself.
    case invalidFieldName(String)
    /// A file had this length when the request started, and another one when it was read.
    case fileChanged(FilePath, expected: UInt64)
    /// The source of a part returned more or less than its length.
    case lengthMismatch(part: String, expected: UInt64)
    /// The source of a part can be read only once, and was already read.
    case partNotReplayable(part: String)

    /// The error and the affected part, as text.
    public var description: String {
        switch self {
        case .invalidText(let what, let offset): "\(what) has a control character at byte \(offset)"
        case .invalidFieldName(let name): "the field “\(name)” is not allowed in a part"
        case .fileChanged(let path, let expected):
            "the size of \(path) changed from \(expected) bytes during the request"
        case .lengthMismatch(let part, let expected):
            "the source of the part “\(part)” did not return exactly \(expected) bytes"
        case .partNotReplayable(let part): "the part “\(part)” can be read only once, and was already read"
        }
    }
}

/// The quoting of names in the head of a part.
package enum MultipartQuoting: Hashable, Sendable {
    /// Percent-encoding of `"`, CR and LF, as in browsers (WHATWG HTML §4.10.21.8).
    case percent
    /// A backslash before `"` and `\` (RFC 9110 §5.6.4), as with curl's `--form-escape`. CR and LF are rejected.
    case backslash
}

/// A writer of the head of a part (RFC 7578 §4). No text in it can end the head, or the part, early.
package struct PartHead {
    /// The lines so far, each with its CRLF.
    package private(set) var bytes: [UInt8] = []
    private let quoting: MultipartQuoting

    package init(quoting: MultipartQuoting) { self.quoting = quoting }

    /// Writes `Content-Disposition` with the part's name, and the file's name if it has one.
    package mutating func disposition(name: String, filename: String?) throws(MultipartError) {
        bytes += "Content-Disposition: form-data; name=\"".utf8
        try quoted(name, "the name of a part")
        if let filename {
            bytes += "\"; filename=\"".utf8
            try quoted(filename, "the file name of the part “\(name)”")
        }
        bytes += "\"\r\n".utf8
    }

    /// Writes a field that the form sets.
    package mutating func field(_ name: String, _ value: String) throws(MultipartError) {
        for (offset, byte) in value.utf8.enumerated() where !ByteClass.isFieldValue(byte) {
            throw .invalidText("the value of \(name)", offset: offset)
        }
        bytes += "\(name): \(value)\r\n".utf8
    }

    /// Writes a field that the caller adds.
    package mutating func ownField(_ name: String, _ value: String) throws(MultipartError) {
        let isSetByForm = ["content-disposition", "content-type"].contains(name.lowercased())
        guard !name.isEmpty, name.utf8.allSatisfy(ByteClass.isToken), !isSetByForm else {
            throw .invalidFieldName(name)
        }
        try field(name, value)
    }

    /// Writes a quoted name. Bytes that would end the quotes or the line are escaped, or else rejected.
    private mutating func quoted(_ text: String, _ what: String) throws(MultipartError) {
        for (offset, byte) in text.utf8.enumerated() {
            switch (byte, quoting) {
            case (UInt8(ascii: "\""), .percent): bytes += "%22".utf8
            case (0x0D, .percent): bytes += "%0D".utf8
            case (0x0A, .percent): bytes += "%0A".utf8
            case (UInt8(ascii: "\""), .backslash), (UInt8(ascii: "\\"), .backslash):
                bytes += [UInt8(ascii: "\\"), byte]
            default:
                guard ByteClass.isFieldValue(byte) else { throw .invalidText(what, offset: offset) }
                bytes.append(byte)
            }
        }
    }
}

/// The boundary between the parts of a form (RFC 2046 §5.1.1).
package struct MultipartBoundary: Hashable, Sendable {
    /// The text of the boundary, 1 to 70 characters. A random boundary has 48, and needs no quotes in `Content-Type`.
    package let text: String

    /// Creates a boundary of 160 random bits that does not occur in the given texts.
    ///
    /// Files and streams are not searched: an accidental occurrence is as unlikely as guessing a key of 160 bits.
    package init(avoiding texts: [[UInt8]], using generator: inout some RandomNumberGenerator) {
        repeat { self.init(using: &generator) } while texts.contains(where: occurs)
    }

    /// Creates a boundary with a given text; `nil` if it is invalid (RFC 2046 §5.1.1).
    package init?(_ text: String) {
        let isValid = text.utf8.allSatisfy { byte in
            (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || "'()+_,-./:=? ".utf8.contains(byte)
        }
        guard isValid, (1...70).contains(text.utf8.count), text.utf8.last != 0x20 else { return nil }
        self.text = text
    }

    private init(using generator: inout some RandomNumberGenerator) {
        let digits = Array("0123456789abcdef".utf8)
        var bytes = Array("martlet-".utf8)
        for _ in 0..<40 { bytes.append(digits[Int.random(in: 0..<16, using: &generator)]) }
        text = String(decoding: bytes, as: UTF8.self)
    }

    private func occurs(in bytes: [UInt8]) -> Bool {
        let mark = Array(text.utf8)
        guard bytes.count >= mark.count else { return false }
        let (hay, needle) = (bytes.span, mark.span)
        // The first letter of a random boundary occurs once in it, so after a mismatch the search need not step back.
        var matched = 0
        for index in hay.indices {
            if hay[index] == needle[matched] {
                matched += 1
                if matched == needle.count { return true }
            } else {
                matched = hay[index] == needle[0] ? 1 : 0
            }
        }
        return false
    }

    /// The line before a part.
    package var opening: [UInt8] { Array("--\(text)\r\n".utf8) }
    /// The line at the end of the form.
    package var closing: [UInt8] { Array("--\(text)--\r\n".utf8) }
}
