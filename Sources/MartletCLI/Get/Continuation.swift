import FoundationEssentials
import Glibc
import Martlet

/// The offset of `-C`.
enum Continuation: Hashable, Sendable {
    /// A byte of the resource, or of the file that is sent.
    case offset(UInt64)
    /// The end of the file that is written.
    case endOfFile

    /// Reads a number of bytes, or `-`.
    static func read(_ text: String, _ option: String) throws(UsageError) -> Continuation {
        if text == "-" { return .endOfFile }
        guard let offset = Int64(text), offset >= 0 else {
            throw UsageError("option \(option): “\(text)” is neither a number of bytes nor -")
        }
        return .offset(UInt64(offset))
    }

    /// The byte for output to a file or to standard output; 0 if the file does not exist.
    func offset(of path: String?) -> UInt64 {
        switch self {
        case .offset(let offset): offset
        case .endOfFile: path.flatMap(Continuation.size) ?? 0
        }
    }

    /// The body that sends a file from the offset on, and its `Content-Range`. With `-` it is the whole file, since the bytes
    /// that the server has are not known.
    func upload(of name: String) throws(UsageError) -> (body: HTTPBody, contentRange: String?) {
        let whole = HTTPBody.file(FilePath(name), contentType: nil)
        // Missing and irregular files are left to the reader of the body.
        guard let size = Continuation.size(of: name), size > 0 else { return (whole, nil) }
        let offset = self.offset(of: nil)
        try check(
            offset < size, "option -C: “\(name)” has \(size) bytes: nothing is left to send",
            status: .partialBody)
        guard offset > 0 || self == .endOfFile else { return (whole, nil) }
        let range = ContentRange.satisfied(offset..<size, total: size).text
        guard offset > 0 else { return (whole, range) }
        let body = HTTPBody.stream(length: size - offset, contentType: nil) {
            FileInput(name, at: Int64(offset))
        }
        return (body, range)
    }

    /// The size of a regular file in bytes; `nil` for others.
    private static func size(of path: String) -> UInt64? {
        guard let status = FileInput.status(of: path), status.type == S_IFREG else { return nil }
        return UInt64(max(0, status.st_size))
    }
}

/// The meaning of the response to a request for the rest of a resource.
enum ResumeResponse: Hashable, Sendable {
    /// The body is that rest.
    case rest
    /// There is no rest: the file is complete, or the response has no body.
    case complete
    /// The body must not be appended to the file, for a reason.
    case refusal(String)

    /// - Parameter offset: The first byte that was requested.
    init(_ head: ResponseHead, at offset: UInt64, _ method: HTTPRequest.Method) {
        let range = head.fields.firstValue(of: "content-range").flatMap { ContentRange(parsing: $0) }
        switch (head.status, range) {
        case (204, _), (304, _): self = .complete
        case _ where method == .head: self = .rest
        case (206, .satisfied(let part, _)) where part.lowerBound == offset: self = .rest
        case (206, _):
            self = .refusal("the server sent another part than the one from byte \(offset) on: cannot resume")
        case (416, .unsatisfied(offset)): self = .complete
        case (416, .unsatisfied(let total)):
            self = .refusal("the server has \(total) bytes, not \(offset) or more: cannot resume")
        case (200, _) where head.fields.firstValue(of: "content-length").flatMap({ UInt64($0) }) == offset:
            self = .complete
        case (200, _): self = .refusal("HTTP server doesn't seem to support byte ranges. Cannot resume.")
        default:
            self = .refusal("the server answered \(head.status) to the request for a part: cannot resume")
        }
    }

    /// Whether the response cannot be used.
    var isRefusal: Bool { if case .refusal = self { true } else { false } }
}
