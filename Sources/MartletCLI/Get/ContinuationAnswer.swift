import HTTPTypes
import MartletWire

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
        case (200, _):
            self = .refusal("HTTP server doesn't seem to support byte ranges. Cannot resume.")
        default:
            self = .refusal("the server answered \(head.status) to the request for a part: cannot resume")
        }
    }

    /// Whether it is of no use.
    var isRefusal: Bool {
        if case .refusal = self { true } else { false }
    }
}
