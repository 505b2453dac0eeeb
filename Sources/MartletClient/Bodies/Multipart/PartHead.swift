import MartletWire

/// The head of a part as it is written (RFC 7578 §4): nothing in it can end the head, or the part, before its time.
struct PartHead {
    /// The lines so far, each with its CRLF.
    private(set) var bytes: [UInt8] = []
    /// How names are quoted.
    private let quoting: MultipartQuoting

    init(quoting: MultipartQuoting) {
        self.quoting = quoting
    }

    /// `Content-Disposition` with the part's name, and the file's name where there is one.
    mutating func disposition(name: String, filename: String?) throws(MultipartError) {
        bytes += "Content-Disposition: form-data; name=\"".utf8
        try quoted(name, "the name of a part")
        if let filename {
            bytes += "\"; filename=\"".utf8
            try quoted(filename, "the file name of the part “\(name)”")
        }
        bytes += "\"\r\n".utf8
    }

    /// A field that the form sets.
    mutating func field(_ name: String, _ value: String) throws(MultipartError) {
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
