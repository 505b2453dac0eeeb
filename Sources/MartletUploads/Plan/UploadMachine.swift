import MartletCore

/// The decisions of one run of an upload: a pure state machine. It receives the response or the error of each request,
/// and returns the next step.
///
/// | request | sent | success leads to |
/// |---|---|---|
/// | discover | if the protocol is unknown | create, or whole |
/// | create | to get an upload URL, without content | append |
/// | query | after a failure, and in a new process | append, or the end |
/// | append | from the acknowledged offset | append, or the end |
/// | whole | to servers that do not resume; if it may be repeated, also for up to 1 MiB | the end |
///
/// A resumable upload is created without content. If the response is lost, only an empty upload remains on the server,
/// which has no effect. Failures are counted until the acknowledged offset exceeds all earlier ones, so no server can
/// cause an endless loop.
struct UploadMachine: Sendable {
    /// The properties of the upload that do not change.
    struct Plan: Sendable {
        var byteCount: UInt64
        var given: UploadProtocol
        /// Whether the whole request may take effect more than once.
        var isRepeatable: Bool
        var chunkByteCount: UInt64?
        var retry = UploadRetry()

        /// Whether the upload may use the protocol of the IETF draft.
        var allowsIETF: Bool { given == .automatic || given == .ietf }
    }

    /// The state that later processes need.
    struct Checkpoint: Hashable, Sendable {
        /// The protocol; ``UploadProtocol/automatic`` while it is unknown.
        var `protocol` = UploadProtocol.automatic
        /// The upload URL, once it is known.
        var url: HTTPURL?
        /// The number of acknowledged bytes.
        var offset: UInt64 = 0
        /// Whether the server may have the whole file although no response says so.
        var mayBeComplete = false
    }

    enum Request: Hashable, Sendable {
        case discover
        case create
        case query
        /// Sends bytes of the file. If they are the last ones, the request completes the upload.
        case append(Range<UInt64>, isLast: Bool)
        case whole

        /// Whether the server has the whole file when it has received this request.
        var completesUpload: Bool {
            switch self {
            case .whole, .append(_, isLast: true): true
            case .discover, .create, .query, .append: false
            }
        }
    }

    enum Step: Sendable {
        /// Send a request after a delay.
        case send(Request, after: Duration)
        /// The upload is complete. The last response is the final one, or only confirms that the server has the file.
        case finish(isResponseLost: Bool)
        case fail(HTTPError)
    }

    /// The size up to which a request that may be repeated is sent without an upload URL.
    static let smallByteCount: UInt64 = 1 << 20

    private let plan: Plan
    private(set) var checkpoint: Checkpoint
    private var limits = UploadReply.Limits()
    /// The maximum size of content after a 413.
    private var reducedAppend: UInt64?
    /// The request whose outcome is awaited.
    private var current: Request?
    private var needsQuery: Bool
    private(set) var failures = 0
    /// The highest acknowledged offset.
    private var best: UInt64

    init(_ plan: Plan, from checkpoint: Checkpoint = Checkpoint()) {
        (self.plan, self.checkpoint) = (plan, checkpoint)
        if plan.given != .automatic { self.checkpoint.protocol = plan.given }
        needsQuery = checkpoint.url != nil
        best = checkpoint.offset
    }

    // MARK: Events

    /// Starts the run.
    mutating func start() -> Step {
        if checkpoint.url == nil, checkpoint.mayBeComplete, !plan.isRepeatable {
            return .fail(UploadMachine.uncertain("an earlier process may have sent the whole file"))
        }
        return next()
    }

    /// Handles the start of the current request, whose delay is over. An incomplete plain request may take effect, too.
    mutating func sending() { if case .whole = current, !plan.isRepeatable { checkpoint.mayBeComplete = true } }

    /// Handles the read of the last bytes of a request that completes the upload, before they are sent.
    mutating func lastBytesRead() { if current?.completesUpload == true { checkpoint.mayBeComplete = true } }

    /// Handles an interim response with the status 104, which may have the upload URL and the offset.
    mutating func interimReceived(_ reply: UploadReply) {
        guard reply.status == 104, let current else { return }
        if case .whole = current, checkpoint.url == nil, plan.allowsIETF,
            let url = reply.location
        {
            checkpoint.url = url
            checkpoint.protocol = .ietf
        }
        guard checkpoint.protocol == .ietf, let offset = reply.offset, offset > checkpoint.offset else { return }
        switch current {
        case .whole where checkpoint.url != nil && offset <= plan.byteCount: acknowledge(offset)
        case .append(let range, _) where offset <= range.upperBound: acknowledge(offset)
        default: break
        }
    }

    /// Handles the final response to the current request.
    /// - Parameter random: A random number between 0 and 1 for the delay of a retry.
    mutating func received(_ reply: UploadReply, random: Double) -> Step {
        guard let request = current else { return .fail(UploadMachine.rejected("no response was expected")) }
        if case .discover = request {
            if [408, 425, 429, 502, 503, 504].contains(reply.status) {
                return retry(UploadMachine.status(reply), reply, random)
            }
            checkpoint.protocol = reply.announced
        }
        if reply.limits != UploadReply.Limits() { limits = reply.limits }
        if let limit = limits.maximumSize, limit < plan.byteCount, request != .whole {
            return .fail(
                UploadMachine.rejected("the server accepts at most \(limit) bytes, and the file has \(plan.byteCount)"))
        }
        switch request {
        case .discover: return next()
        case .create: return created(reply, random)
        case .query: return queried(reply, random)
        case .append(let range, let isLast): return appended(reply, range, isLast: isLast, random)
        case .whole: return sentWhole(reply, random)
        }
    }

    /// Handles a request without a final response.
    mutating func failed(_ error: HTTPError, random: Double) -> Step {
        guard error.isTransient else { return .fail(error) }
        if checkpoint.url == nil, case .whole = current {
            if !error.wasSent { checkpoint.mayBeComplete = false }
            if error.wasSent, !plan.isRepeatable {
                return .fail(UploadMachine.uncertain("the response was lost: \(error.message)", error))
            }
        }
        return retry(error, nil, random)
    }

    // MARK: Responses

    private mutating func created(_ reply: UploadReply, _ random: Double) -> Step {
        guard reply.isSuccess else { return unsuccessful(reply, random) }
        if checkpoint.protocol == .ietf, reply.isComplete == true, plan.byteCount > 0 {
            return .fail(UploadMachine.rejected("the server completed the upload before it received the file"))
        }
        guard let url = reply.location else {
            return .fail(
                UploadMachine.rejected("the server did not create an upload: its response has no valid Location"))
        }
        checkpoint.url = url
        checkpoint.offset = 0
        if checkpoint.protocol == .tus, plan.byteCount == 0 { return .finish(isResponseLost: false) }
        return next()
    }

    private mutating func queried(_ reply: UploadReply, _ random: Double) -> Step {
        if UploadMachine.isGone(reply, checkpoint.protocol) { return createAgain(reply, random) }
        guard reply.isSuccess else { return unsuccessful(reply, random) }
        guard let offset = reply.offset else {
            return retry(UploadMachine.rejected("the server did not report an offset"), reply, random)
        }
        if let length = reply.length, length != plan.byteCount {
            return .fail(UploadMachine.rejected("the server expects \(length) bytes, not \(plan.byteCount)"))
        }
        guard offset <= plan.byteCount else { return .fail(UploadMachine.beyondEnd(offset, plan)) }
        let isComplete = checkpoint.protocol == .tus ? offset == plan.byteCount : reply.isComplete == true
        if isComplete, offset < plan.byteCount {
            return .fail(UploadMachine.rejected("the server completed the upload with \(offset) bytes"))
        }
        acknowledge(offset)
        if isComplete { return .finish(isResponseLost: true) }
        checkpoint.mayBeComplete = false
        needsQuery = false
        return next()
    }

    private mutating func appended(_ reply: UploadReply, _ range: Range<UInt64>, isLast: Bool, _ random: Double)
        -> Step
    {
        let isTus = checkpoint.protocol == .tus
        if !isTus, reply.isComplete == true {
            guard isLast else { return .fail(UploadMachine.rejected("the server completed the upload too early")) }
            // The response is that of the target to the whole file. Another attempt would not change it.
            return reply.isSuccess ? finished() : .fail(UploadMachine.status(reply))
        }
        switch reply.status {
        case 404, 410:
            // The response is to this request, which therefore did not complete the upload.
            checkpoint.mayBeComplete = false
            return createAgain(reply, random)
        case 409, 460: return retrySoon(reply, random)
        case 413:
            guard let limit = reply.limits.maximumAppend, limit > 0, limit < range.upperBound - range.lowerBound else {
                return .fail(UploadMachine.status(reply))
            }
            reducedAppend = limit
            return retrySoon(reply, random)
        default: break
        }
        guard reply.isSuccess else { return unsuccessful(reply, random) }
        // Without a field, the whole content was appended (§4.4.1). A tus server always sends the offset.
        guard let offset = reply.offset ?? (isTus ? nil : range.upperBound) else {
            return retry(UploadMachine.rejected("the server did not report an offset"), reply, random)
        }
        guard offset <= plan.byteCount else { return .fail(UploadMachine.beyondEnd(offset, plan)) }
        if isLast, isTus, offset == plan.byteCount { return finished() }
        guard offset > range.lowerBound, offset > checkpoint.offset || offset == range.upperBound else {
            return retry(UploadMachine.rejected("the server did not store the content"), reply, random)
        }
        acknowledge(offset)
        // The server has to complete the upload at some time, so this counts as a failure.
        return isLast
            ? retry(UploadMachine.rejected("the server did not complete the upload"), reply, random) : next()
    }

    /// Handles the response to a request with the whole file.
    private mutating func sentWhole(_ reply: UploadReply, _ random: Double) -> Step {
        if reply.isSuccess {
            guard plan.allowsIETF, reply.isComplete == false else { return finished() }
            guard let url = checkpoint.url ?? reply.location else {
                return .fail(UploadMachine.rejected("the server did not complete the upload, and sent no upload URL"))
            }
            (checkpoint.url, checkpoint.protocol) = (url, .ietf)
            needsQuery = true
            return next()
        }
        if reply.isComplete == true { return .fail(UploadMachine.status(reply)) }
        if reply.status == 413, plan.allowsIETF,
            let limit = reply.limits.maximumAppend, limit > 0, limit < plan.byteCount
        {
            // The server supports resumable uploads, and did not process the request.
            checkpoint.protocol = .ietf
            checkpoint.mayBeComplete = false
            return retrySoon(reply, random)
        }
        guard [500, 502, 504].contains(reply.status) else {
            // The server did not process the request.
            checkpoint.mayBeComplete = false
            return unsuccessful(reply, random)
        }
        guard checkpoint.url == nil, !plan.isRepeatable else { return unsuccessful(reply, random) }
        return .fail(UploadMachine.uncertain("the server failed with the status \(reply.status)"))
    }

    /// Handles a status without a special meaning.
    private mutating func unsuccessful(_ reply: UploadReply, _ random: Double) -> Step {
        reply.isTransient
            ? retry(UploadMachine.status(reply), reply, random) : .fail(UploadMachine.status(reply))
    }

    /// Creates an upload that the server has lost again, from the start of the file.
    private mutating func createAgain(_ reply: UploadReply, _ random: Double) -> Step {
        if checkpoint.mayBeComplete, !plan.isRepeatable {
            return .fail(UploadMachine.uncertain("the server no longer knows the upload"))
        }
        checkpoint.url = nil
        checkpoint.offset = 0
        checkpoint.mayBeComplete = false
        return retrySoon(reply, random)
    }

    // MARK: Steps

    private mutating func finished() -> Step {
        acknowledge(plan.byteCount)
        return .finish(isResponseLost: false)
    }

    private mutating func acknowledge(_ offset: UInt64) {
        checkpoint.offset = offset
        guard offset > best else { return }
        best = offset
        failures = 0
    }

    /// Retries after a status that asks for another request, not for a wait: the first time without a delay.
    private mutating func retrySoon(_ reply: UploadReply, _ random: Double) -> Step {
        retry(UploadMachine.status(reply), reply, random, isImmediate: failures == 0)
    }

    /// Retries after a failure, or fails with its error.
    private mutating func retry(_ error: HTTPError, _ reply: UploadReply?, _ random: Double, isImmediate: Bool = false)
        -> Step
    {
        failures += 1
        guard failures <= plan.retry.maximumRetries else { return .fail(error) }
        needsQuery = checkpoint.url != nil
        guard case .send(let request, _) = next() else { return .fail(error) }
        if isImmediate { return .send(request, after: .zero) }
        let limit = max(.zero, plan.retry.maximumRetryAfter)
        let delay =
            reply?.retryAfter.map { min(max(.zero, $0), limit) }
            ?? RetryRule.fullJitter(
                plan.retry.initialDelay, upTo: plan.retry.maximumDelay, retry: failures, random: random)
        return .send(request, after: delay)
    }

    private mutating func next() -> Step {
        let request: Request
        if checkpoint.url != nil {
            request = needsQuery ? .query : append()
        } else {
            let small = min(UploadMachine.smallByteCount, limits.maximumAppend ?? .max)
            let isSmall = plan.isRepeatable && plan.byteCount <= small
            switch checkpoint.protocol {
            case .automatic: request = isSmall ? .whole : .discover
            case .ietf: request = isSmall ? .whole : .create
            case .tus: request = .create
            case .plain: request = .whole
            }
        }
        current = request
        return .send(request, after: .zero)
    }

    private func append() -> Request {
        let largest = min(limits.maximumAppend ?? .max, reducedAppend ?? .max)
        let size = max(1, min(max(plan.chunkByteCount ?? .max, limits.minimumAppend ?? 0), largest))
        let count = min(plan.byteCount - checkpoint.offset, size)
        let end = checkpoint.offset + count
        return .append(checkpoint.offset..<end, isLast: end == plan.byteCount)
    }

    /// Whether the server no longer knows the upload URL (tus 1.0.0, section HEAD: 404, 410 or 403).
    private static func isGone(_ reply: UploadReply, _ protocol: UploadProtocol) -> Bool {
        reply.status == 404 || reply.status == 410 || `protocol` == .tus && reply.status == 403
    }

    // MARK: Errors

    private static func status(_ reply: UploadReply) -> HTTPError {
        HTTPError(
            .unacceptableStatus, phase: .processingResponse,
            message: "the status \(reply.status) ended the upload", wasSent: true)
    }

    private static func rejected(_ message: String) -> HTTPError {
        HTTPError(.uploadRejected, phase: .processingResponse, message: message, wasSent: true)
    }

    private static func beyondEnd(_ offset: UInt64, _ plan: Plan) -> HTTPError {
        rejected("the server claims to have \(offset) bytes of a file of \(plan.byteCount)")
    }

    private static func uncertain(_ reason: String, _ underlying: HTTPError? = nil) -> HTTPError {
        HTTPError(
            .uploadUncertain, phase: .awaitingHead,
            message: "\(reason); the upload may have taken effect, so it is not repeated", wasSent: true,
            underlying: underlying)
    }
}
