/// A builder of a form in parts (`multipart/form-data`, RFC 7578).
///
/// ```swift
/// let body = HTTPBody.multipart { form in
///     form.field("title", "Sea")
///     form.file("photo", at: "/data/sea.jpg")
/// }
/// let form: MultipartForm = [.field("title", "Sea"), .file("photo", at: "/data/sea.jpg")]
/// ```
///
/// Names and file names are sent in UTF-8, with `"`, CR and LF percent-encoded as browsers do (WHATWG HTML §4.10.21.8).
/// Text that cannot be sent, such as a NUL in a name, makes the call throw before any byte is written.
public struct MultipartForm: Sendable {
    /// A part of the form: its head and its body.
    package struct Part: Sendable {
        package let name: String
        let head: [UInt8]
        package let body: HTTPBody
        /// The file name in the head.
        package let filename: String?

        /// Whether the body is a value that is not encoded yet, or a form with such a value.
        var holdsValue: Bool {
            switch body.storage {
            case .value: true
            case .multipart(let content): content.holdsValues
            default: false
            }
        }
    }

    /// The types of files by their names; ``MediaTypeTable/system`` by default. A change applies to parts added later.
    public var mediaTypes = MediaTypeTable.system

    fileprivate private(set) var parts: [Part] = []
    fileprivate private(set) var failure: (any Error)?

    private let quoting: MultipartQuoting

    fileprivate init(quoting: MultipartQuoting) { self.quoting = quoting }

    /// Creates a form that is built by a closure.
    public init(_ build: (inout MultipartForm) -> Void) {
        self.init(quoting: .percent)
        build(&self)
    }

    private func guess(_ filename: String) -> String {
        mediaTypes.contentType(ofFile: filename) ?? "application/octet-stream"
    }

    /// Adds a text field.
    ///
    /// The text is sent unchanged, with its line breaks, and without a content type, as servers expect it.
    public mutating func field(_ name: String, _ value: String) { part(name, .text(value, contentType: nil)) }

    /// Adds bytes in memory as a part.
    /// - Parameters:
    ///   - filename: The file name; `nil` for none.
    ///   - contentType: The type; with `nil` it is derived from the file name, if there is one.
    public mutating func data(
        _ name: String, _ bytes: some Sequence<UInt8>, filename: String? = nil, contentType: String? = nil
    ) {
        let type = contentType ?? filename.map(guess)
        part(name, .bytes(bytes, contentType: type), filename: filename)
    }

    /// Adds a file, which is read while it is sent.
    ///
    /// The call fails if the file's length changes while the request is sent.
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - filename: The file name to send; the last component of the path by default.
    ///   - contentType: The type; by default it is derived from the file name, else `application/octet-stream`.
    public mutating func file(
        _ name: String, at path: some FilePathConvertible, filename: String? = nil, contentType: String? = nil
    ) {
        let path = path.filePath
        let called = filename ?? path.lastComponent?.string ?? ""
        let type = contentType ?? guess(called)
        part(name, .file(path, contentType: type), filename: called)
    }

    /// Adds a sequence of pieces that can be opened again from its beginning.
    /// - Parameters:
    ///   - length: The exact length in bytes; `nil` sends the whole form in chunks.
    ///   - open: A closure that returns the sequence; called each time the form is sent.
    public mutating func stream<Pieces: AsyncSequence & Sendable>(
        _ name: String, length: UInt64? = nil, filename: String? = nil, contentType: String? = nil,
        _ open: @escaping @Sendable () -> Pieces
    ) where Pieces.Element: Sequence<UInt8>, Pieces.AsyncIterator: SendableMetatype {
        let type = contentType ?? filename.map(guess)
        part(name, .stream(length: length, contentType: type, open), filename: filename)
    }

    /// Adds any body as a part, such as `.json(value)`, with the body's content type. A value is encoded when the call
    /// is made, by the encoder of its host or session.
    /// - Parameters:
    ///   - filename: The file name; `nil` for none.
    ///   - headers: Further fields of the part, in this order. It is an error if they include `Content-Disposition` or
    ///     `Content-Type`, which the form and the body set, or a name or value that could split the part.
    public mutating func part(
        _ name: String, _ body: HTTPBody, filename: String? = nil, headers: KeyValuePairs<String, String> = [:]
    ) {
        if case .failure(let error) = body.storage { failure = failure ?? error }
        if body.compression != nil {
            let message = "the part “\(name)” cannot be compressed: compress the whole form instead"
            failure = failure ?? HTTPError(.invalidRequest, phase: .preparing, message: message)
        }
        do throws(MultipartError) {
            var head = PartHead(quoting: quoting)
            try head.disposition(name: name, filename: filename)
            if let type = body.contentType { try head.field("Content-Type", type) }
            for (name, value) in headers { try head.ownField(name, value) }
            parts.append(Part(name: name, head: head.bytes, body: body, filename: filename))
        } catch { failure = failure ?? error }
    }
}

extension MultipartForm: ExpressibleByArrayLiteral {
    /// Creates a form of the parts of other forms, in order.
    public init(arrayLiteral forms: MultipartForm...) {
        self.init(quoting: .percent)
        for form in forms {
            parts += form.parts
            failure = failure ?? form.failure
        }
    }

    /// Returns a form with a text field, like the method of this name.
    public static func field(_ name: String, _ value: String) -> MultipartForm {
        MultipartForm { $0.field(name, value) }
    }

    /// Returns a form with bytes in memory, like the method of this name.
    public static func data(
        _ name: String, _ bytes: some Sequence<UInt8>, filename: String? = nil, contentType: String? = nil
    ) -> MultipartForm { MultipartForm { $0.data(name, bytes, filename: filename, contentType: contentType) } }

    /// Returns a form with a file, like the method of this name.
    public static func file(
        _ name: String, at path: some FilePathConvertible, filename: String? = nil, contentType: String? = nil
    ) -> MultipartForm { MultipartForm { $0.file(name, at: path, filename: filename, contentType: contentType) } }

    /// Returns a form with any body as a part, like the method of this name.
    public static func part(
        _ name: String, _ body: HTTPBody, filename: String? = nil, headers: KeyValuePairs<String, String> = [:]
    ) -> MultipartForm { MultipartForm { $0.part(name, body, filename: filename, headers: headers) } }
}

extension HTTPBody {
    /// Creates a form in parts (`multipart/form-data`, RFC 7578) from its parts.
    public static func multipart(_ form: MultipartForm) -> HTTPBody { multipart { $0 = form } }

    /// Creates a form in parts (`multipart/form-data`, RFC 7578), built by a closure.
    ///
    /// The form has a length if all its parts have one, and can be sent again if all its parts can. Files are opened
    /// one at a time. The boundary is random (160 bits), and does not occur in parts of bytes or text.
    public static func multipart(_ build: (inout MultipartForm) -> Void) -> HTTPBody {
        // An existential: the thread sanitizer checks the address of the argument, and the generator has no size.
        var generator: any RandomNumberGenerator = SystemRandomNumberGenerator()
        return multipart(using: &generator, build)
    }

    /// Creates a form with another way of quoting names.
    /// - Parameter boundary: The boundary of the caller's own `Content-Type`; the form does not check whether it occurs
    ///   in a part. An invalid one, by ``isBoundary(_:)``, is ignored.
    package static func multipart(
        quoting: MultipartQuoting, boundary: String? = nil, _ build: (inout MultipartForm) -> Void
    ) -> HTTPBody {
        var generator = SystemRandomNumberGenerator()
        return multipart(using: &generator, quoting: quoting, boundary: boundary, build)
    }

    /// Whether a text is a valid boundary of a form.
    package static func isBoundary(_ text: String) -> Bool { MultipartBoundary(text) != nil }

    /// Creates a form with a boundary from another generator.
    package static func multipart(
        using generator: inout some RandomNumberGenerator, quoting: MultipartQuoting = .percent,
        boundary: String? = nil, _ build: (inout MultipartForm) -> Void
    ) -> HTTPBody {
        var form = MultipartForm(quoting: quoting)
        build(&form)
        if let failure = form.failure { return HTTPBody(.failure(failure), contentType: nil) }
        let boundary =
            boundary.flatMap { MultipartBoundary($0) }
            ?? MultipartBoundary(avoiding: form.parts.flatMap(\.inMemory), using: &generator)
        let content = MultipartContent(parts: form.parts, boundary: boundary)
        return HTTPBody(.multipart(content), contentType: "multipart/form-data; boundary=\(boundary.text)")
    }
}

extension MultipartForm.Part {
    /// The bytes in memory, which must not contain the boundary.
    fileprivate var inMemory: [[UInt8]] { if case .bytes(let bytes) = body.storage { [head, bytes] } else { [head] } }
}
