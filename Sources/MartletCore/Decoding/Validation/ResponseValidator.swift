import MartletCredentials
import MartletContent
import MartletConnections
import MartletTransport

/// What an answer must be to be taken: its status, its content type, its size, or whatever a closure looks at.
///
/// ```swift
/// let exchange = try await session.get(url).validated(.status(200..<300), .contentType("application/json"))
/// ```
///
/// Validators compose: ``all(_:)`` and ``and(_:)`` ask one after the other, and the first refusal is the error. A refusal
/// of Martlet's own is an ``HTTPError`` whose ``HTTPError/exchange`` is the answer, head and body; a closure's own error is
/// thrown as it is.
///
/// One may be set for a session (``SessionConfiguration/validator``) and for a call (``RequestOptions/validator``). Of
/// collected answers it then sees head and body. Of streams and downloads it sees the head, before any of the body is
/// handed out or a file is written: a size counts as far as it was announced, and closures see an empty body. When it
/// refuses, up to 64 KiB of the body, as far as they come within two seconds, are put into the error, and the connection is
/// free or closed.
public struct ResponseValidator: Sendable {
    /// One thing that is asked.
    enum Rule: Sendable {
        /// The status is in one of these.
        case status([ClosedRange<Int>])
        /// The content type is one of these.
        case contentType(MediaRangeList)
        /// The content type is one that the request asked for.
        case requestedContentType
        /// The body has so many bytes.
        case byteCount(ClosedRange<Int>)
        /// A closure does not throw.
        case custom(@Sendable (HTTPExchange) async throws -> Void)
    }

    /// What is asked, in this order.
    let rules: [Rule]

    init(_ rules: [Rule]) { self.rules = rules }

    /// Takes anything: for a call whose session is stricter.
    public static let anything = ResponseValidator([])

    /// Takes any status of success, 200–299.
    public static let success = ResponseValidator([.status([200...299])])

    /// Takes any status of success, and a content type that the request's `Accept` takes (RFC 9110 §12.5.1), or the session's
    /// where the request has none.
    public static let standard = ResponseValidator.success.and(.acceptedContentType)

    /// Takes these statuses.
    public static func status(_ ranges: ClosedRange<Int>...) -> ResponseValidator {
        ResponseValidator([.status(ranges)])
    }

    /// Takes these statuses, such as `200..<300`.
    public static func status(_ ranges: Range<Int>...) -> ResponseValidator {
        ResponseValidator([.status(ranges.filter { !$0.isEmpty }.map { ClosedRange($0) })])
    }

    /// Takes these statuses and no others.
    public static func status(_ codes: Int...) -> ResponseValidator {
        ResponseValidator([.status(codes.map { $0...$0 })])
    }

    /// Takes these content types.
    ///
    /// An answer whose body has come and is empty is taken whatever it says of its type, as AFNetworking and Alamofire took it.
    /// One without `Content-Type` is taken where its body is to be empty, or where `*/*` is among the ranges.
    /// - Parameter ranges: Media ranges as an `Accept` field has them, one or several in each: `text/*`, `*/*`,
    ///   `application/json;q=0.9`, where a weight of 0 means “not this” and the most specific range counts. A range with
    ///   parameters asks for them, `charset` only where the answer has one. `application/*+json` stands for all types of
    ///   that suffix. What is no media range takes nothing.
    public static func contentType(_ ranges: String...) -> ResponseValidator {
        ResponseValidator([.contentType(MediaRangeList(ranges))])
    }

    /// Takes the content types that the `Accept` field lists, as ``contentType(_:)`` does: the request's, else that of the
    /// session's ``SessionConfiguration/headers`` where it is sent; all where there is none.
    public static let acceptedContentType = ResponseValidator([.requestedContentType])

    /// Takes bodies of at most this size; a larger one is refused with `.bodyTooLarge`.
    public static func body(atMost limit: ByteCount) -> ResponseValidator {
        ResponseValidator([.byteCount(0...limit.bytes)])
    }

    /// Takes bodies of at least this size, one byte by default; a smaller one is refused with `.unacceptableBody`.
    public static func body(atLeast limit: ByteCount = 1) -> ResponseValidator {
        ResponseValidator([.byteCount(limit.bytes ... .max)])
    }

    /// Takes what a closure takes: it throws otherwise, any error.
    ///
    /// The closure may await. It sees the head and the body as far as it was collected, which
    /// ``SessionConfiguration/bufferedBodyLimit`` bounds.
    ///
    /// Within a call it runs in a task of its own, and may make calls. When the call is cancelled or its total clock runs out,
    /// that task is cancelled, and the call ends without waiting for it.
    public static func custom(
        _ check: @escaping @Sendable (HTTPExchange) async throws -> Void
    ) -> ResponseValidator { ResponseValidator([.custom(check)]) }

    /// Takes what all of them take. They are asked in this order.
    public static func all(_ validators: ResponseValidator...) -> ResponseValidator {
        ResponseValidator(validators.flatMap(\.rules))
    }

    /// Takes what both take. This one is asked first.
    public func and(_ other: ResponseValidator) -> ResponseValidator {
        ResponseValidator(rules + other.rules)
    }
}

extension ResponseValidator {
    /// How much of a refused body is put into the error, in bytes.
    private static let beginningByteCount = 64 * 1024
    /// How long that may take.
    private static let beginningPatience = Duration.seconds(2)

    /// Asks everything of a subject.
    /// - Parameters:
    ///   - userCode: Runs closures for the call that has the response; `nil` outside of calls.
    ///   - exchange: The exchange whose connection that call holds.
    func check(
        _ subject: ValidationSubject, by userCode: @autoclosure () -> UserCode? = nil,
        holding exchange: Exchange? = nil
    ) async throws {
        for rule in rules {
            guard case .custom(let check) = rule, let userCode = userCode() else {
                try await subject.check(rule)
                continue
            }
            let response = subject.exchange
            try await userCode.run("the validator's closure", .evaluating, holding: exchange, sentCount: 1) {
                try await check(response)
            }
        }
    }

    /// Asks everything of an answer whose body has not been read. When it is refused, the error gets the beginning of the
    /// body, and the connection is not waited for any longer.
    /// - Throws: An ``HTTPError``; what a closure throws; `CancellationError`.
    package func admit(_ answer: Answer, _ reader: BodyReader) async throws {
        guard !rules.isEmpty else { return }
        do {
            // What is announced is the size before a coding is undone.
            let announced = answer.codings.isEmpty ? answer.announcedByteCount : nil
            try await check(
                ValidationSubject(answer.exchange(with: []), announced: announced),
                by: UserCode(answer.call, control: reader.control, loop: .sharedOrStalled),
                holding: answer.channel.heldExchange)
        } catch var error as HTTPError {
            let beginning = await reader.beginning(
                upTo: ResponseValidator.beginningByteCount, within: ResponseValidator.beginningPatience)
            if reader.isCancelled { throw CancellationError() }
            error.exchange = answer.exchange(with: beginning)
            throw error
        }
    }
}
