/// The conditions under which a response is accepted: by its status, content type or size, or by a closure.
///
/// ```swift
/// try await session.get(url).validated(.status(200..<300), .contentType("text/csv"))
/// ```
///
/// Validators compose: ``all(_:)`` and ``and(_:)`` check one after the other, and the first rejection is thrown. It is
/// an ``HTTPError`` whose ``HTTPError/exchange`` is the response, or a closure's own error.
///
/// A validator may be set for a session (``SessionConfiguration/validator``) and for a call
/// (``RequestOptions/validator``). For collected responses it checks the head and the body; conditions that need only
/// the head are checked before the body is read. For streams and downloads it checks only the head, before any of the
/// body is delivered. The size is then that in the head, and closures receive an empty body. After a rejection by the
/// head, the error has at most 64 KiB of the body, received within two seconds.
public struct ResponseValidator: Sendable {
    enum Rule: Sendable {
        case status([ClosedRange<Int>])
        case contentType(MediaRangeList)
        /// The content type is one that the request accepts.
        case requestedContentType
        /// The number of bytes of the body.
        case byteCount(ClosedRange<Int>)
        case custom(@Sendable (HTTPExchange) async throws -> Void)
    }

    /// The conditions in the order of the checks.
    private let rules: [Rule]
    /// A validator that accepts any response, for a call whose session is stricter.
    public static let anything = ResponseValidator(rules: [])
    /// A validator that accepts any successful status, 200–299.
    public static let success = ResponseValidator(rules: [.status([200...299])])
    /// A validator that accepts any successful status with a content type in the request's `Accept` field (RFC 9110
    /// §12.5.1), or in the session's if the request has none.
    public static let standard = ResponseValidator.success.and(.acceptedContentType)

    /// Accepts these statuses, such as `200...299`.
    public static func status(_ ranges: ClosedRange<Int>...) -> ResponseValidator {
        ResponseValidator(rules: [.status(ranges)])
    }

    /// Accepts these statuses, such as `200..<300`.
    public static func status(_ ranges: Range<Int>...) -> ResponseValidator {
        ResponseValidator(rules: [.status(ranges.filter { !$0.isEmpty }.map { ClosedRange($0) })])
    }

    /// Accepts only these statuses.
    public static func status(_ codes: Int...) -> ResponseValidator {
        ResponseValidator(rules: [.status(codes.map { $0...$0 })])
    }

    /// Accepts these content types.
    ///
    /// A received empty body is accepted with any type, as in AFNetworking and Alamofire. A response without
    /// `Content-Type` is accepted if its body has the length 0, or if `*/*` is among the ranges.
    /// - Parameter ranges: Media ranges as in an `Accept` field, one or several in each string: `text/*`, `*/*`,
    ///   `application/json;q=0.9`. A weight of 0 excludes a type, and the most specific range applies. A range with
    ///   parameters requires them; `charset` only if the response has one. `application/*+json` matches all types with
    ///   that suffix. An invalid media range accepts nothing.
    public static func contentType(_ ranges: String...) -> ResponseValidator {
        ResponseValidator(rules: [.contentType(MediaRangeList(ranges))])
    }

    /// A validator that accepts the content types of the request's `Accept` field, as ``contentType(_:)`` does. Without
    /// that field it uses the one in the session's ``SessionConfiguration/headers``; without both it accepts all types.
    public static let acceptedContentType = ResponseValidator(rules: [.requestedContentType])

    /// Accepts bodies of at most this size; a larger one is rejected with `.bodyTooLarge`.
    public static func body(atMost limit: ByteCount) -> ResponseValidator {
        ResponseValidator(rules: [.byteCount(0...limit.bytes)])
    }

    /// Accepts bodies of at least this size, one byte by default; a smaller one is rejected with `.unacceptableBody`.
    public static func body(atLeast limit: ByteCount = 1) -> ResponseValidator {
        ResponseValidator(rules: [.byteCount(limit.bytes ... .max)])
    }

    /// Accepts responses for which a closure throws no error.
    ///
    /// The closure may await. It receives the head and the collected part of the body, limited by
    /// ``SessionConfiguration/bufferedBodyLimit``.
    ///
    /// Within a call it runs in its own task, and may make calls. When the call is cancelled or its total timeout
    /// expires, that task is cancelled, and the call ends without waiting for it.
    public static func custom(_ check: @escaping @Sendable (HTTPExchange) async throws -> Void) -> ResponseValidator {
        ResponseValidator(rules: [.custom(check)])
    }

    /// Accepts a response that all of these validators accept. They check it in the given order.
    public static func all(_ validators: ResponseValidator...) -> ResponseValidator {
        ResponseValidator(rules: validators.flatMap(\.rules))
    }

    /// Accepts a response that both validators accept. This one checks it first.
    public func and(_ other: ResponseValidator) -> ResponseValidator { ResponseValidator(rules: rules + other.rules) }
}

extension ResponseValidator {
    /// The maximum number of bytes of a rejected body that the error contains.
    static let beginningByteCount = 64 * 1024
    /// The maximum wait for these bytes.
    static let beginningTimeout = Duration.seconds(2)

    /// Checks all conditions.
    /// - Parameters:
    ///   - userCode: The runner of closures for the call; `nil` outside of calls.
    ///   - exchange: The exchange whose connection the call holds.
    @inline(never) func check(
        _ subject: ValidationSubject, by userCode: UserCode? = nil, holding exchange: Exchange? = nil
    ) async throws {
        for rule in rules {
            guard case .custom(let check) = rule, let userCode else {
                try await subject.check(rule)
                continue
            }
            let response = subject.exchange
            try await userCode.run("the validator's closure", .processingResponse, holding: exchange, sentCount: 1) {
                try await check(response)
            }
        }
    }

    /// Checks all conditions of a collected response.
    /// - Throws: A ``ResponseValidationError``.
    @inline(never) func checked(_ exchange: HTTPExchange, by userCode: UserCode) async throws -> HTTPExchange {
        do { try await check(ValidationSubject(exchange), by: userCode) } catch {
            throw ResponseValidationError(reason: error)
        }
        return exchange
    }

    /// Checks the conditions of a response whose body will be collected, up to the first one that needs the body.
    /// - Throws: The errors of ``checked(_:by:)``.
    func admitHead(of answer: StreamedResponse, _ control: TransferControl) async throws {
        // A body of unknown length may be empty, and the type of an empty body is not checked.
        let isSized = answer.codings.isEmpty && answer.expectedContentLength.map { $0 > 0 } ?? false
        let ofHead = rules.prefix { rule in
            switch rule {
            case .status: true
            case .contentType, .requestedContentType, .byteCount: isSized && answer.call.method != .head
            case .custom: false
            }
        }
        // In the usual case, an accepted status, no exchange is created.
        let isAccepted = ofHead.allSatisfy { rule in
            guard case .status(let ranges) = rule else { return false }
            return ranges.contains { $0.contains(answer.head.status) }
        }
        guard !isAccepted else { return }
        do {
            try await ResponseValidator(rules: Array(ofHead)).admit(
                answer, control, BodyReader(answer, control: control, byteLimit: nil))
        } catch { throw ResponseValidationError(reason: error) }
    }

    /// Checks all conditions of a response whose body has not been read.
    /// - Parameter makeReader: Creates the reader of the beginning of the body, for the error of a rejection.
    /// - Throws: An ``HTTPError``; any error of a closure; `CancellationError`.
    func admit(_ answer: StreamedResponse, _ control: TransferControl, _ makeReader: @autoclosure () -> BodyReader)
        async throws
    {
        guard !rules.isEmpty else { return }
        let exchange = answer.exchange(with: [])
        do {
            // The size in the head is not that of a decoded body.
            let announced = answer.codings.isEmpty ? answer.expectedContentLength : nil
            try await check(
                ValidationSubject(exchange, announced: announced),
                by: UserCode(answer.call, control: control, loop: .sharedOrStalled),
                holding: answer.channel.heldExchange)
        } catch var error as HTTPError where error.exchange?.storage === exchange.storage {
            let reader = makeReader()
            let beginning = await reader.beginning(
                upTo: ResponseValidator.beginningByteCount, within: ResponseValidator.beginningTimeout)
            if reader.isCancelled { throw CancellationError() }
            error.exchange = answer.exchange(with: beginning)
            throw error
        }
    }
}

/// The view of a response that validators check.
struct ValidationSubject: Sendable {
    let exchange: HTTPExchange
    /// The size of the body, collected or given in the head; `nil` if it is unknown.
    private let byteCount: UInt64?

    /// Creates a subject for a response with its body.
    init(_ exchange: HTTPExchange) { self.init(exchange, announced: UInt64(exchange.body.count)) }

    /// Creates a subject for a response whose body has not been read.
    init(_ exchange: HTTPExchange, announced: UInt64?) {
        self.exchange = exchange
        byteCount = announced
    }

    /// Checks one condition of the validator.
    /// - Throws: An ``HTTPError`` that carries the exchange; any error of a closure.
    func check(_ rule: ResponseValidator.Rule) async throws {
        switch rule {
        case .status(let ranges): try checkStatus(ranges)
        case .contentType(let list): try checkContentType(list)
        case .requestedContentType:
            let list = MediaRangeList(exchange.storage.sentFields.values(of: "accept"))
            // A field without a valid range is ignored.
            if !list.ranges.isEmpty { try checkContentType(list) }
        case .byteCount(let range): try checkSize(range)
        case .custom(let check): try await check(exchange)
        }
    }

    func checkStatus(_ ranges: [ClosedRange<Int>]) throws(HTTPError) {
        guard !ranges.contains(where: { $0.contains(exchange.statusCode) }) else { return }
        throw rejection(.unacceptableStatus, exchange.outline(byteCount: byteCount))
    }

    /// Checks the content type. A received empty body is accepted, even if the field has another type.
    /// - Parameters:
    ///   - takesUntyped: Whether a response without a content type is accepted for any list.
    ///   - shown: The exchange whose body the message quotes; `nil` (the default) for none.
    func checkContentType(_ list: MediaRangeList, takesUntyped: Bool = false, shows shown: HTTPExchange? = nil)
        throws(HTTPError)
    {
        if byteCount == 0, exchange.storage.isBodyCollected { return }
        func reject(_ type: String) -> HTTPError {
            let wanted = list.ranges.map { "\($0.type)/\($0.subtype)" }.prefix(8).joined(separator: ", ")
            return rejection(
                .unacceptableContentType,
                "the content type is \(type), and not one of \(wanted)"
                    + (shown.map { "; the response was \($0.outline), \($0.beginning)" } ?? ""))
        }
        guard let field = exchange.response.headerFields[.contentType] else {
            if takesUntyped || byteCount == 0 || list.acceptsUntyped { return }
            throw reject("missing")
        }
        let type = MediaType(field)
        guard !(type.map(list.accepts) ?? list.acceptsUntyped) else { return }
        throw reject("“\(DecodingErrorText.beginning(of: (type?.essence ?? field).utf8, limit: 100))”")
    }

    /// Checks that a decoder accepts the content type.
    func checkContentType(of decoder: some ResponseDecoder) throws(HTTPError) {
        let types = decoder.acceptableContentTypes
        guard !types.isEmpty else { return }
        try checkContentType(MediaRangeList(types), takesUntyped: true)
    }

    private func checkSize(_ range: ClosedRange<Int>) throws(HTTPError) {
        guard let count = byteCount else { return }
        if count > UInt64(range.upperBound) {
            throw rejection(.bodyTooLarge, "the body has \(count) bytes, more than the \(range.upperBound) accepted")
        }
        if count < UInt64(range.lowerBound) {
            throw rejection(
                .unacceptableBody, "the body has \(count) bytes, fewer than the \(range.lowerBound) accepted")
        }
    }

    private func rejection(_ code: HTTPError.Code, _ message: String) -> HTTPError {
        HTTPError(
            code, phase: .processingResponse, message: message, wasSent: true, method: exchange.storage.method,
            url: exchange.url, attempts: exchange.metrics.attempts, exchange: exchange)
    }
}

/// The rejection of a collected response by a validator. It is not an ``HTTPError``, so that no stage treats it as a
/// failure that a retry could fix; the end of the call unwraps it.
struct ResponseValidationError: Error {
    /// The error of the validator, which the call throws.
    let reason: any Error

    /// Returns the validator's error for a rejection, and any other error unchanged.
    static func reason(of error: any Error) -> any Error { (error as? ResponseValidationError)?.reason ?? error }
}
