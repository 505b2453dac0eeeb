import MartletContent
public import SystemPackage

/// A form as it is put together: what `multipart/form-data` sends, part by part (RFC 7578).
///
/// ```swift
/// let body = HTTPBody.multipart { form in
///     form.field("title", "Sea")
///     form.file("photo", at: "/data/sea.jpg")
/// }
/// ```
///
/// Names and file names are sent in UTF-8, with `"`, CR and LF percent-encoded as browsers do (WHATWG HTML §4.10.21.8).
/// What cannot be sent, such as a NUL in a name, makes the call throw before a byte is written.
public struct MultipartForm: Sendable {
    /// A part: its head, and what comes behind it.
    package struct Part: Sendable {
        package let name: String
        let head: [UInt8]
        package let body: HTTPBody
        /// What curl's `-F` would say of it.
        package let filename: String?
    }

    /// Where the types of files come from that are given none; ``MediaTypeTable/system`` by default.
    ///
    /// It counts for the parts that are added after it was set.
    public var mediaTypes = MediaTypeTable.system

    private(set) var parts: [Part] = []
    /// What was wrong first.
    private(set) var failure: (any Error)?

    private let quoting: MultipartQuoting

    init(quoting: MultipartQuoting) { self.quoting = quoting }

    private func guess(_ filename: String) -> String {
        mediaTypes.contentType(ofFile: filename) ?? "application/octet-stream"
    }

    /// Adds a text.
    ///
    /// It is sent as it is, line breaks too, and without a type, which is what servers expect of a form's plain values.
    public mutating func field(_ name: String, _ value: String) { part(name, .text(value, contentType: nil)) }

    /// Adds bytes in memory.
    /// - Parameters:
    ///   - filename: The name of the file that they are; `nil` for none.
    ///   - contentType: Their type; where it is `nil`, it follows from the file name, if there is one.
    public mutating func data(
        _ name: String, _ bytes: some Sequence<UInt8>, filename: String? = nil, contentType: String? = nil
    ) {
        let type = contentType ?? filename.map(guess)
        part(name, .bytes(bytes, contentType: type), filename: filename)
    }

    /// Adds a file, read as it is sent.
    ///
    /// Its length is what it is when the request begins; if it has another when it is read, the call fails.
    /// - Parameters:
    ///   - path: Where the file is.
    ///   - filename: What the server is told it is called; the last component of the path by default.
    ///   - contentType: Its type; by default what its name suggests, else `application/octet-stream`.
    public mutating func file(
        _ name: String, at path: FilePath, filename: String? = nil, contentType: String? = nil
    ) {
        let called = filename ?? path.lastComponent?.string ?? ""
        let type = contentType ?? guess(called)
        part(name, .file(path, contentType: type), filename: called)
    }

    /// Adds a sequence of pieces that can be opened again from its beginning.
    /// - Parameters:
    ///   - length: Bytes in all, which must be met exactly; `nil` has the whole form sent in chunks.
    ///   - open: Called once for each time the form is sent.
    public mutating func stream<Pieces: AsyncSequence & Sendable>(
        _ name: String, length: UInt64? = nil, filename: String? = nil, contentType: String? = nil,
        _ open: @escaping @Sendable () -> Pieces
    ) where Pieces.Element: Sequence<UInt8>, Pieces.AsyncIterator: SendableMetatype {
        let type = contentType ?? filename.map(guess)
        part(name, .stream(length: length, contentType: type, open), filename: filename)
    }

    /// Adds any body as a part, such as `.json(value)`, with the body's content type.
    /// - Parameters:
    ///   - filename: The name of the file that it is; `nil` for none.
    ///   - headers: Further fields of the part, in this order. `Content-Disposition` and `Content-Type` are set by the
    ///     form and the body; they, and a name or value that could split the part, are an error.
    public mutating func part(
        _ name: String, _ body: HTTPBody, filename: String? = nil,
        headers: KeyValuePairs<String, String> = [:]
    ) {
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
    /// A form in parts (`multipart/form-data`, RFC 7578), put together by a closure.
    ///
    /// It has a length as soon as all its parts have, and can be sent again as often as each of them can. Files are opened
    /// one at a time. The boundary is drawn at random, 160 bits of it, and occurs in no part that is in memory.
    public static func multipart(_ build: (inout MultipartForm) -> Void) -> HTTPBody {
        // In a box: the system's generator has no size, and the thread sanitizer looks at the address of what is handed on.
        var generator: any RandomNumberGenerator = SystemRandomNumberGenerator()
        return multipart(using: &generator, build)
    }

    /// A form whose names are quoted in a way of its own.
    /// - Parameter boundary: What its parts are told apart by, where the caller says so in a `Content-Type` of its own;
    ///   nothing looks whether it occurs in one of them. One that can be none, by ``isBoundary(_:)``,
    ///   is passed over.
    package static func multipart(
        quoting: MultipartQuoting, boundary: String? = nil, _ build: (inout MultipartForm) -> Void
    ) -> HTTPBody {
        var generator = SystemRandomNumberGenerator()
        return multipart(using: &generator, quoting: quoting, boundary: boundary, build)
    }

    /// Whether a text can be what the parts of a form are told apart by.
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

/// Why a multipart body could not be made, or not be sent to its end.
public enum MultipartError: Error, Hashable, Sendable, CustomStringConvertible {
    /// A name, file name, content type or field of a part has a byte that may not stand there, such as NUL; the offset is
    /// in bytes of its UTF-8.
    case invalidText(String, offset: Int)
    /// A part's own field has a name that is no token, or one that the form sets itself.
    case invalidFieldName(String)
    /// A file was so many bytes long when the request began, and had another length when it was read.
    case fileChanged(FilePath, expected: UInt64)
    /// The source of a part gave more or less than its length.
    case lengthMismatch(part: String, expected: UInt64)
    /// The source of a part can be read only once, and was read before.
    case partNotReplayable(part: String)

    /// What was wrong, and where.
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

/// How names that have a quote in them stand between quotes in the head of a part.
package enum MultipartQuoting: Hashable, Sendable {
    /// `"`, CR and LF percent-encoded, as browsers do (WHATWG HTML §4.10.21.8).
    case percent
    /// A backslash before `"` and `\`, as in other fields (RFC 9110 §5.6.4), and as curl's `--form-escape` has it; CR and LF
    /// cannot be sent.
    case backslash
}
