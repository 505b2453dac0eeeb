/// A form that is being built, part by part (`multipart/form-data`, RFC 7578).
///
/// ```swift
/// let body = HTTPBody.multipart { form in
///     form.field("title", "Sea")
///     form.file("photo", at: "/data/sea.jpg")
/// }
/// ```
///
/// Names and file names are sent in UTF-8, with `"`, CR and LF percent-encoded as browsers do (WHATWG HTML §4.10.21.8).
/// Text that cannot be sent, such as a NUL in a name, makes the call throw before a byte is written.
public struct MultipartForm: Sendable {
    /// A part: its head and its body.
    package struct Part: Sendable {
        package let name: String
        let head: [UInt8]
        package let body: HTTPBody
        /// The file name in the head.
        package let filename: String?
    }

    /// The table for the types of files that are given none; ``MediaTypeTable/system`` by default.
    ///
    /// It applies to parts that are added after it was set.
    public var mediaTypes = MediaTypeTable.system

    fileprivate private(set) var parts: [Part] = []
    fileprivate private(set) var failure: (any Error)?

    private let quoting: MultipartQuoting

    fileprivate init(quoting: MultipartQuoting) { self.quoting = quoting }

    private func guess(_ filename: String) -> String {
        mediaTypes.contentType(ofFile: filename) ?? "application/octet-stream"
    }

    /// Adds a text.
    ///
    /// It is sent as it is, with its line breaks, and without a type, as servers expect plain values.
    public mutating func field(_ name: String, _ value: String) { part(name, .text(value, contentType: nil)) }

    /// Adds bytes in memory.
    /// - Parameters:
    ///   - filename: Their file name; `nil` for none.
    ///   - contentType: Their type; with `nil` it follows from the file name, if there is one.
    public mutating func data(
        _ name: String, _ bytes: some Sequence<UInt8>, filename: String? = nil, contentType: String? = nil
    ) {
        let type = contentType ?? filename.map(guess)
        part(name, .bytes(bytes, contentType: type), filename: filename)
    }

    /// Adds a file, read as it is sent.
    ///
    /// Its length is that at the beginning of the request; if it has another when it is read, the call fails.
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - filename: The name that is sent; the last component of the path by default.
    ///   - contentType: Its type; by default that of its name, else `application/octet-stream`.
    public mutating func file(
        _ name: String, at path: some FilePathConvertible, filename: String? = nil,
        contentType: String? = nil
    ) {
        let path = path.filePath
        let called = filename ?? path.lastComponent?.string ?? ""
        let type = contentType ?? guess(called)
        part(name, .file(path, contentType: type), filename: called)
    }

    /// Adds a sequence of pieces that can be opened again from its beginning.
    /// - Parameters:
    ///   - length: The length in bytes, which must be met exactly; `nil` sends the whole form in chunks.
    ///   - open: Called once for each time the form is sent.
    public mutating func stream<Pieces: AsyncSequence & Sendable>(
        _ name: String, length: UInt64? = nil, filename: String? = nil, contentType: String? = nil,
        _ open: @escaping @Sendable () -> Pieces
    ) where Pieces.Element: Sequence<UInt8>, Pieces.AsyncIterator: SendableMetatype {
        let type = contentType ?? filename.map(guess)
        part(name, .stream(length: length, contentType: type, open), filename: filename)
    }

    /// Adds any body as a part, such as `.json(value)`, with the body's content type. A value is encoded here, as `JSONEncoder`
    /// does by default.
    /// - Parameters:
    ///   - filename: Its file name; `nil` for none.
    ///   - headers: Further fields of the part, in this order. `Content-Disposition` and `Content-Type` are set by the
    ///     form and the body; they, and a name or value that could split the part, are an error.
    public mutating func part(
        _ name: String, _ body: HTTPBody, filename: String? = nil,
        headers: KeyValuePairs<String, String> = [:]
    ) {
        let body = body.encoded(by: BodyEncoder.json())
        if case .failure(let error) = body.storage { failure = failure ?? error }
        do throws(MultipartError) {
            var head = PartHead(quoting: quoting)
            try head.disposition(name: name, filename: filename)
            if let type = body.contentType { try head.field("Content-Type", type) }
            for (name, value) in headers { try head.ownField(name, value) }
            parts.append(Part(name: name, head: head.bytes, body: body, filename: filename))
        } catch {
            failure = failure ?? error
        }
    }
}

extension HTTPBody {
    /// A form in parts (`multipart/form-data`, RFC 7578), built by a closure.
    ///
    /// It has a length if all its parts have, and can be sent again if each of them can. Files are opened
    /// one at a time. The boundary is drawn at random, 160 bits of it, and occurs in no part that is in memory.
    public static func multipart(_ build: (inout MultipartForm) -> Void) -> HTTPBody {
        // In a box: the system's generator has no size, and the thread sanitizer checks the address of the argument.
        var generator: any RandomNumberGenerator = SystemRandomNumberGenerator()
        return multipart(using: &generator, build)
    }

    /// A form with another way of quoting names.
    /// - Parameter boundary: The boundary of the caller's own `Content-Type`; whether it occurs in a part is not checked. An
    ///   invalid one, by ``isBoundary(_:)``, is ignored.
    package static func multipart(
        quoting: MultipartQuoting, boundary: String? = nil, _ build: (inout MultipartForm) -> Void
    ) -> HTTPBody {
        var generator = SystemRandomNumberGenerator()
        return multipart(using: &generator, quoting: quoting, boundary: boundary, build)
    }

    /// Whether a text can be the boundary of a form.
    package static func isBoundary(_ text: String) -> Bool { MultipartBoundary(text) != nil }

    /// A form whose boundary another generator draws.
    package static func multipart(
        using generator: inout some RandomNumberGenerator, quoting: MultipartQuoting = .percent,
        boundary: String? = nil, _ build: (inout MultipartForm) -> Void
    ) -> HTTPBody {
        var form = MultipartForm(quoting: quoting)
        build(&form)
        if let failure = form.failure { return HTTPBody(.failure(failure), contentType: nil) }
        let boundary =
            boundary.flatMap { MultipartBoundary($0) }
            ?? MultipartBoundary(for: form.parts, using: &generator)
        let content = MultipartContent(parts: form.parts, boundary: boundary)
        return HTTPBody(.multipart(content), contentType: "multipart/form-data; boundary=\(boundary.text)")
    }
}

/// An error of a multipart body that could not be built, or not be sent to its end.
public enum MultipartError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A name, file name, content type or field of a part has a byte that is not allowed, such as NUL; the offset is
    /// in bytes of its UTF-8.
    case invalidText(String, offset: Int)
    /// A part's own field has a name that is not a token, or one that the form sets itself.
    case invalidFieldName(String)
    /// A file had this length when the request began, and another one when it was read.
    case fileChanged(FilePath, expected: UInt64)
    /// The source of a part returned more or less than its length.
    case lengthMismatch(part: String, expected: UInt64)
    /// The source of a part can be read only once, and was read before.
    case partNotReplayable(part: String)

    /// The error and its place.
    public var description: String {
        switch self {
        case .invalidText(let what, let offset): "\(what) has a control character at byte \(offset)"
        case .invalidFieldName(let name): "a part may not have the field “\(name)” of its own"
        case .fileChanged(let path, let expected):
            "\(path) is no longer of the \(expected) bytes it had when the request began"
        case .lengthMismatch(let part, let expected):
            "the source of the part “\(part)” did not give exactly \(expected) bytes"
        case .partNotReplayable(let part): "the part “\(part)” can be read only once, and was read before"
        }
    }
}

/// The way in which quotes in names are written in the head of a part.
package enum MultipartQuoting: Hashable, Sendable {
    /// `"`, CR and LF percent-encoded, as browsers do (WHATWG HTML §4.10.21.8).
    case percent
    /// A backslash before `"` and `\`, as in other fields (RFC 9110 §5.6.4), and as curl's `--form-escape` has it; CR and LF
    /// cannot be sent.
    case backslash
}

/// Writes the head of a part (RFC 7578 §4): no text in it can end the head, or the part, early.
package struct PartHead {
    /// The lines so far, each with its CRLF.
    package private(set) var bytes: [UInt8] = []
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

    /// Writes a name between quotes: bytes that would end them, or the line, are escaped; bytes that cannot be are rejected.
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
struct MultipartBoundary: Hashable, Sendable {
    /// 48 characters of the 70 that are allowed, none of which needs quotes in `Content-Type`; or a chosen text.
    let text: String

    /// Draws a boundary of 160 random bits that occurs in no part held in memory.
    ///
    /// An accidental occurrence in a file is as likely as guessing a key of that length.
    init(for parts: [MultipartForm.Part], using generator: inout some RandomNumberGenerator) {
        var boundary = MultipartBoundary(using: &generator)
        while parts.contains(where: boundary.occurs) { boundary = MultipartBoundary(using: &generator) }
        self = boundary
    }

    /// A chosen boundary; `nil` if it is invalid (RFC 2046 §5.1.1).
    init?(_ text: String) {
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

    /// Whether it occurs in a part in memory.
    private func occurs(in part: MultipartForm.Part) -> Bool {
        if contains(part.head) { return true }
        if case .bytes(let bytes) = part.body.storage { return contains(bytes) }
        return false
    }

    private func contains(_ bytes: [UInt8]) -> Bool {
        let mark = Array(text.utf8)
        guard bytes.count >= mark.count else { return false }
        let (hay, needle) = (bytes.span, mark.span)
        // Its first letter occurs nowhere else in it: a search that fails continues where it failed.
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
    var opening: [UInt8] { Array("--\(text)\r\n".utf8) }
    /// The line at the end of the form.
    var closing: [UInt8] { Array("--\(text)--\r\n".utf8) }
}
