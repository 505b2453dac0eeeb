/// The client's side of a connection: one exchange after the other, from the first byte of a request to the
/// verdict whether the connection may carry another (RFC 9112 §9).
///
/// It sees bytes and events only; sockets and clocks are its owner's. After it threw, it throws the same
/// error again: bytes behind a fault are never interpreted.
package struct ClientMachine: ~Copyable, Sendable {
    /// What received bytes came to.
    package typealias Event = MessageReceiver<ResponseHead, ResponseHead>.Event
    /// An event and the bytes used up to it, payload included.
    package typealias Received = MessageReceiver<ResponseHead, ResponseHead>.Received

    private var receiver: MessageReceiver<ResponseHead, ResponseHead>
    private var parser: HeadParser
    /// What the method means for the response's framing.
    private var kind = ResponseKind.ordinary
    private var requestVersion = WireVersion.http11
    private var wantsKeepAlive = true
    private var ignoresLength = false
    private var isRequestFinished = false
    private var isRequestAborted = false
    private var responsePersists = false
    private var hasLeftover = false
    private var informationalCount = 0

    /// Whether a byte of the current response came: a request on a reused connection that broke before is
    /// safe to repeat if it is idempotent.
    package private(set) var hasReceivedAnyByte = false

    /// Whether the request announced `Expect: 100-continue` and neither 100 nor a final head came yet.
    package private(set) var isAwaitingContinue = false

    /// What the server said about keeping the connection, in the last final head.
    package private(set) var keepAlive = KeepAliveHint(FieldBlock())

    /// Makes the machine of a fresh connection.
    package init(limits: WireLimits = .default) {
        receiver = MessageReceiver(limits: limits, phase: .idle)
        parser = HeadParser(limits: limits)
    }

    // MARK: The request

    /// Starts an exchange. Legal at first, and whenever ``isReusable``.
    ///
    /// - Parameters:
    ///   - method: the method: HEAD and CONNECT change how the response is framed.
    ///   - expectsContinue: whether the request has `Expect: 100-continue`.
    ///   - wantsKeepAlive: false when the request has `Connection: close` or the owner will not reuse.
    ///   - version: the version in the request line.
    ///   - ignoresLength: whether the response's `Content-Length` is passed over, so that its body ends with the
    ///     connection unless it is chunked.
    package mutating func startRequest(
        method: String, expectsContinue: Bool = false, wantsKeepAlive: Bool = true,
        version: WireVersion = .http11, ignoresLength: Bool = false
    ) {
        guard receiver.phase == .idle || isReusable else {
            receiver.fail(WireError(.illegalEvent, at: 0))
            return
        }
        receiver.start()
        parser.reset()
        kind = ResponseKind(method: method)
        requestVersion = version
        self.wantsKeepAlive = wantsKeepAlive
        self.ignoresLength = ignoresLength
        isAwaitingContinue = expectsContinue
        isRequestFinished = false
        isRequestAborted = false
        responsePersists = false
        informationalCount = 0
        hasReceivedAnyByte = false
    }

    /// Notes that the last byte of the request was handed to the socket.
    package mutating func requestFinished() { isRequestFinished = true }

    /// Notes that the request's body will not be completed: the connection cannot be used again.
    package mutating func requestAborted() { isRequestAborted = true }

    // MARK: The response

    /// Reads on, up to the first event.
    ///
    /// - Parameter unread: the bytes not used yet. While a head is due it starts with the head's first byte.
    /// - Throws: what is wrong with the response, or the limit it exceeds; the same again on every later
    ///   call.
    package mutating func receive(_ unread: Span<UInt8>) throws(WireError) -> Received {
        do throws(WireError) {
            if receiver.isHeadDue { return try receiveHead(unread) }
            if !unread.isEmpty, receiver.isBetweenMessages { throw WireError(.unsolicitedBytes, at: 0) }
            return try receiver.receiveBody(unread)
        } catch {
            throw receiver.fail(error)
        }
    }

    private mutating func receiveHead(_ unread: Span<UInt8>) throws(WireError) -> Received {
        if unread.isEmpty { return receiver.awaitHead(0) }
        hasReceivedAnyByte = true
        guard let head = try parser.head(unread) else { return receiver.awaitHead(unread.count) }
        let byteCount = parser.consumedByteCount
        if head.isInformational {
            try noteInformational(head.status)
            return receiver.pass(head, byteCount: byteCount)
        }
        isAwaitingContinue = false
        return receiver.pass(head, try decide(head), byteCount: byteCount)
    }

    private mutating func noteInformational(_ status: Int) throws(WireError) {
        if status == 101 { throw WireError(.unexpectedUpgrade, at: 0) }
        informationalCount += 1
        let limit = receiver.limits.informationalResponseLimit
        if informationalCount > limit { throw WireError(.tooManyInformationalResponses(limit: limit), at: 0) }
        if status == 100 { isAwaitingContinue = false }
        parser.reset()
    }

    /// Decides how the body is framed and whether the connection may live on.
    private mutating func decide(_ head: ResponseHead) throws(WireError) -> BodyFraming {
        let decision = try FramingDecision.response(
            kind, head: head, limits: receiver.limits, ignoresLength: ignoresLength)
        let fields = head.fields
        keepAlive = KeepAliveHint(fields)
        responsePersists =
            decision.permitsReuse && PersistenceRule.persists(version: head.version, fields: fields)
            && (requestVersion == .http11 || fields.contains("Connection", token: "keep-alive"))
            && keepAlive.remainingUses != 0
        return decision.framing
    }

    // MARK: Payload past the machine

    /// How many of the next bytes are payload for certain, and may be received straight into the consumer's
    /// buffer once no unread byte is left: what is left of the body or chunk, `UInt64.max` for a body that
    /// ends with the connection, 0 when the next byte is framing or none is due.
    package var directPayloadByteCount: UInt64 { receiver.directPayloadByteCount }

    /// What is left of a body of known length; `nil` when the body is framed otherwise, or none is due.
    package var remainingLength: UInt64? {
        if case .length(let remaining) = receiver.phase { remaining } else { nil }
    }

    /// Notes payload that was received without passing through ``receive(_:)``.
    ///
    /// - Parameter count: bytes, at most ``directPayloadByteCount``; more is a mistake of the owner, after
    ///   which every call throws.
    /// - Returns: ``MessageReceiver/Event/end(trailers:)`` when that completed a body of known length, else nil.
    package mutating func receivedDirectly(_ count: Int) -> Event? { receiver.receivedDirectly(count) }

    // MARK: The end

    /// Notes that the stream ended, after all unread bytes were offered to ``receive(_:)``.
    ///
    /// - Parameter isClean: whether it ended in order: FIN without TLS, `close_notify` with it.
    /// - Returns: ``MessageReceiver/Event/end(trailers:)`` when nothing is missing, also between exchanges.
    /// - Throws: `emptyResponse` or `truncated`, with the bytes that came and those that were due.
    package mutating func receiveEndOfStream(isClean: Bool) throws(WireError) -> Event {
        hasLeftover = true  // Whatever came before: this connection carries no further exchange.
        // Interim responses alone answer nothing.
        if receiver.isBeforeHead { throw receiver.fail(WireError(.emptyResponse, at: 0)) }
        return try receiver.receiveEndOfStream(isClean: isClean)
    }

    /// Notes what was left unread after ``MessageReceiver/Event/end(trailers:)``: bytes nobody asked for, which must never
    /// become the next response, so the connection is not reusable if there are any.
    ///
    /// - Parameter leftoverByteCount: the unread bytes.
    package mutating func finish(leftoverByteCount: Int) { if leftoverByteCount > 0 { hasLeftover = true } }

    // MARK: The verdict

    /// Whether the response was reported complete.
    package var isResponseFinished: Bool { receiver.phase == .finished }

    /// Whether the connection may carry another exchange: response and request complete, nothing left unread,
    /// and neither side nor the framing asks for a close (RFC 9112 §9.3).
    package var isReusable: Bool {
        isResponseFinished && isRequestFinished && !isRequestAborted && !hasLeftover && wantsKeepAlive
            && responsePersists
    }

    /// Seconds the server keeps the connection idle (`Keep-Alive: timeout=N`), or nil when it does not say.
    package var keepAliveTimeout: Int? { keepAlive.timeout }
}
