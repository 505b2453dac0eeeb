import FoundationEssentials
import Glibc
import HTTPTypes
import Martlet
import MartletWire
import SystemPackage

/// Where `-C` goes on.
enum Continuation: Hashable, Sendable {
    /// At this byte of the resource, or of the file that is sent.
    case offset(UInt64)
    /// Where the file ends that is written.
    case endOfFile

    /// Reads a number of bytes, or `-`.
    init(_ text: String) throws(UsageError) {
        guard text != "-" else {
            self = .endOfFile
            return
        }
        guard let offset = Int64(text), offset >= 0 else {
            throw UsageError("option -C: “\(text)” is neither a number of bytes nor -")
        }
        self = .offset(UInt64(offset))
    }

    /// The byte for what goes to a file, or to standard output; 0 where the file is not there.
    func offset(of path: String?) -> UInt64 {
        switch self {
        case .offset(let offset): offset
        case .endOfFile: path.flatMap(Continuation.size) ?? 0
        }
    }

    /// The body that sends a file from there on, and what the request says of it. The whole file with `-`: how much of it
    /// the server has is not known here.
    func upload(of name: String) throws(UsageError) -> (body: HTTPBody, contentRange: String?) {
        let whole = HTTPBody.file(FilePath(name), contentType: nil)
        // What is not there, or no plain file, is the matter of whoever reads it.
        guard let size = Continuation.size(of: name), size > 0 else { return (whole, nil) }
        let offset = self.offset(of: nil)
        guard offset < size else {
            throw UsageError(
                "option -C: “\(name)” has \(size) bytes: nothing is left to send", status: .partialBody)
        }
        guard offset > 0 || self == .endOfFile else { return (whole, nil) }
        let range = ContentRange.satisfied(offset..<size, total: size).text
        guard offset > 0 else { return (whole, range) }
        let body = HTTPBody.stream(length: size - offset, contentType: nil) {
            FileInput(name, at: Int64(offset))
        }
        return (body, range)
    }

    /// How many bytes a plain file has; `nil` for what is none.
    private static func size(of path: String) -> UInt64? {
        var status = stat()
        guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return UInt64(max(0, status.st_size))
    }
}

/// What the answer means to a request for the rest of a resource.
enum ContinuationAnswer: Hashable, Sendable {
    /// The body is that rest.
    case rest
    /// There is no rest: what is there is all, or as the request wanted it.
    case complete
    /// It is something else, for this reason, and must not be put behind what is there.
    case refusal(String)

    /// Judges an answer.
    /// - Parameter offset: The byte from which on the rest was asked for.
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

    /// Whether it is of no use.
    var isRefusal: Bool { if case .refusal = self { true } else { false } }
}
