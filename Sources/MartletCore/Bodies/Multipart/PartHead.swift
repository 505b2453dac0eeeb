import MartletWire

/// The head of a part as it is written (RFC 7578 §4): nothing in it can end the head, or the part, before its time.
package struct PartHead {
    /// The lines so far, each with its CRLF.
    package private(set) var bytes: [UInt8] = []
    /// How names are quoted.
    private let quoting: MultipartQuoting

    package init(quoting: MultipartQuoting) { self.quoting = quoting }

    /// `Content-Disposition` with the part's name, and the file's name where there is one.
    package mutating func disposition(name: String, filename: String?) throws(MultipartError) {
        bytes += "Content-Disposition: form-data; name=\"".utf8
        try quoted(name, "the name of a part")
        if let filename {
            bytes += "\"; filename=\"".utf8
            try quoted(filename, "the file name of the part “\(name)”")
        }
        bytes += "\"\r\n".utf8
    }

    /// A field that the form sets.
    package mutating func field(_ name: String, _ value: String) throws(MultipartError) {
        for (offset, byte) in value.utf8.enumerated() where !ByteClass.isFieldValue(byte) {
            throw .invalidText("the value of \(name)", offset: offset)
        }
        bytes += "\(name): \(value)\r\n".utf8
    }

    /// A field that the caller adds.
    mutating func ownField(_ name: String, _ value: String) throws(MultipartError) {
        let isSetByForm = ["content-disposition", "content-type"].contains(name.lowercased())
        guard !name.isEmpty, name.utf8.allSatisfy(ByteClass.isToken), !isSetByForm else {
            throw .invalidFieldName(name)
        }
        try field(name, value)
    }

    /// A name between quotes: what would end them, or the line, is escaped; what cannot be is refused.
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

/// What stands between the parts of a form (RFC 2046 §5.1.1).
struct MultipartBoundary: Hashable, Sendable {
    /// The boundary: 48 characters of the 70 there may be, none of which needs quotes in `Content-Type`; or one that somebody
    /// chose.
    let text: String

    /// Draws a boundary of 160 random bits that occurs in no part held in memory.
    ///
    /// That it occurs in a file by accident is as likely as guessing a key of that length.
    init(for parts: [MultipartForm.Part], using generator: inout some RandomNumberGenerator) {
        var boundary = MultipartBoundary(using: &generator)
        while parts.contains(where: boundary.occurs) { boundary = MultipartBoundary(using: &generator) }
        self = boundary
    }

    /// A boundary that somebody chose; `nil` where it can be none (RFC 2046 §5.1.1).
    init?(_ text: String) {
        let isValid = text.utf8.allSatisfy { byte in
            (byte | 0x20) &- 0x61 < 26 || byte &- 0x30 < 10 || "'()+_,-./:=? ".utf8.contains(byte)
        }
        guard isValid, (1...70).contains(text.utf8.count), text.utf8.last != 0x20 else { return nil }
        self.text = text
    }

    /// Draws a boundary.
    private init(using generator: inout some RandomNumberGenerator) {
        let digits = Array("0123456789abcdef".utf8)
        var bytes = Array("martlet-".utf8)
        for _ in 0..<40 { bytes.append(digits[Int.random(in: 0..<16, using: &generator)]) }
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// Whether a part in memory has it anywhere.
    private func occurs(in part: MultipartForm.Part) -> Bool {
        if contains(part.head) { return true }
        if case .bytes(let bytes) = part.body.storage { return contains(bytes) }
        return false
    }

    private func contains(_ bytes: [UInt8]) -> Bool {
        let mark = Array(text.utf8)
        guard bytes.count >= mark.count else { return false }
        let (hay, needle) = (bytes.span, mark.span)
        // The letter at the beginning occurs nowhere else in it: a search that fails goes on where it failed.
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

    /// What begins a part.
    var opening: [UInt8] { Array("--\(text)\r\n".utf8) }
    /// What ends the form.
    var closing: [UInt8] { Array("--\(text)--\r\n".utf8) }
}
