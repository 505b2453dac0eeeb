/// The client's side of a connection: one exchange after the other, from the first byte of a request to the
/// verdict whether the connection may carry another (RFC 9112 §9).
///
/// It sees bytes and events only; sockets and clocks are its owner's. After it threw, it throws the same
/// error again: bytes behind a fault are never interpreted.
package struct ClientMachine: ~Copyable, Sendable {
    /// What received bytes came to. One event a call; callers go on calling until
    /// ``needMoreBytes`` or ``end(trailers:)``, also when no byte is left unread.
    package enum Event: Equatable, Sendable {
        /// All input that can be used was used.
        case needMoreBytes
        /// An interim response other than 101 (RFC 9110 §15.2).
        case informational(ResponseHead)
        /// The final head and how its body is framed. ``end(trailers:)`` follows even when there is no body.
        case head(ResponseHead, BodyFraming)
        /// Payload of the body, at this range of the given span.
        case body(Range<Int>)
        /// The response is complete. Trailers are never merged into the head (RFC 9110 §6.5).
        case end(trailers: FieldBlock?)
    }

    /// An event and the bytes used up to it, payload included.
    package struct Received: Equatable, Sendable {
        /// The bytes to drop from the start of the unread ones before the next call.
        package let consumed: Int
        /// What they came to.
        package let event: Event
    }

    /// Where the response stands. No case carries a buffer, so changing the phase copies nothing.
    private enum Phase: Equatable, Sendable {
        /// No exchange was started yet.
        case idle
        /// A request is on its way; a head must come. `parser` holds what was looked at.
        case head
        /// A body of known length; so many bytes are left. Leaves with the last of them.
        case length(UInt64)
        /// A chunked body; `chunks` knows where it stands.
        case chunked
        /// A body that ends with the connection.
        case untilClose
        /// The end was reported; the next request may start.
        case finished
        /// A fault was thrown; nothing leaves this.
        case failed(WireError)
    }

    private let limits: WireLimits
    private var phase = Phase.idle
    private var parser: HeadParser
    private var chunks: ChunkedDecoder
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
    /// Unread bytes at the last call while a head was due, for the error when no more come.
    private var pendingHeadByteCount = 0
    private var bodyLength: UInt64 = 0
    private var bodyByteCount: UInt64 = 0

    /// Whether a byte of the current response came: a request on a reused connection that broke before is
    /// safe to repeat if it is idempotent.
    package private(set) var hasReceivedAnyByte = false

    /// Whether the request announced `Expect: 100-continue` and neither 100 nor a final head came yet.
    package private(set) var isAwaitingContinue = false

    /// What the server said about keeping the connection, in the last final head.
    package private(set) var keepAlive = KeepAliveHint(FieldBlock())

    /// Makes the machine of a fresh connection.
    package init(limits: WireLimits = .default) {
        self.limits = limits
        parser = HeadParser(limits: limits)
        chunks = ChunkedDecoder(limits: limits)
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
        guard phase == .idle || isReusable else {
            fail(WireError(.illegalEvent, at: 0))
            return
        }
        phase = .head
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
        pendingHeadByteCount = 0
        bodyLength = 0
        bodyByteCount = 0
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
            return try step(unread)
        } catch {
            fail(error)
            throw error
        }
    }

    private mutating func step(_ unread: Span<UInt8>) throws(WireError) -> Received {
        switch phase {
        case .head:
            return try receiveHead(unread)
        case .length(0):
            phase = .finished
            return Received(consumed: 0, event: .end(trailers: nil))
        case .length(let remaining):
            if unread.isEmpty { break }
            let count = Int(min(remaining, UInt64(unread.count)))
            bodyByteCount &+= UInt64(count)
            phase = .length(remaining - UInt64(count))
            return Received(consumed: count, event: .body(0..<count))
        case .chunked:
            return try receiveChunks(unread)
        case .untilClose:
            if unread.isEmpty { break }
            bodyByteCount &+= UInt64(unread.count)
            return Received(consumed: unread.count, event: .body(0..<unread.count))
        case .idle, .finished:
            if !unread.isEmpty { throw WireError(.unsolicitedBytes, at: 0) }
        case .failed(let error):
            throw error
        }
        return Received(consumed: 0, event: .needMoreBytes)
    }

    private mutating func receiveHead(_ unread: Span<UInt8>) throws(WireError) -> Received {
        pendingHeadByteCount = unread.count
        if unread.isEmpty { return Received(consumed: 0, event: .needMoreBytes) }
        hasReceivedAnyByte = true
        guard let head = try parser.head(unread) else {
            return Received(consumed: 0, event: .needMoreBytes)
        }
        pendingHeadByteCount = 0
        let byteCount = parser.consumedByteCount
        if head.isInformational {
            try noteInformational(head.status)
            return Received(consumed: byteCount, event: .informational(head))
        }
        isAwaitingContinue = false
        let framing = try decide(head)
        switch framing {
        case .none: phase = .length(0)
        case .length(let length):
            bodyLength = length
            phase = .length(length)
        case .chunked:
            chunks = ChunkedDecoder(limits: limits, offset: byteCount)
            phase = .chunked
        case .untilClose: phase = .untilClose
        }
        return Received(consumed: byteCount, event: .head(head, framing))
    }

    private mutating func noteInformational(_ status: Int) throws(WireError) {
        if status == 101 { throw WireError(.unexpectedUpgrade, at: 0) }
        informationalCount += 1
        if informationalCount > limits.informationalResponseLimit {
            throw WireError(.tooManyInformationalResponses(limit: limits.informationalResponseLimit), at: 0)
        }
        if status == 100 { isAwaitingContinue = false }
        parser.reset()
    }

    /// Decides how the body is framed and whether the connection may live on.
    private mutating func decide(_ head: ResponseHead) throws(WireError) -> BodyFraming {
        let decision = try FramingDecision.response(
            kind, head: head, limits: limits, ignoresLength: ignoresLength)
        let fields = head.fields
        keepAlive = KeepAliveHint(fields)
        responsePersists =
            decision.permitsReuse && PersistenceRule.persists(version: head.version, fields: fields)
            && (requestVersion == .http11 || fields.contains("Connection", token: "keep-alive"))
            && keepAlive.remainingUses != 0
        return decision.framing
    }

    private mutating func receiveChunks(_ unread: Span<UInt8>) throws(WireError) -> Received {
        let step = try chunks.decode(unread)
        switch step.event {
        case .needMoreBytes: return Received(consumed: step.consumed, event: .needMoreBytes)
        case .payload(let range): return Received(consumed: step.consumed, event: .body(range))
        case .end(let trailers):
            phase = .finished
            return Received(consumed: step.consumed, event: .end(trailers: trailers))
        }
    }

    // MARK: Payload past the machine

    /// How many of the next bytes are payload for certain, and may be received straight into the consumer's
    /// buffer once no unread byte is left: what is left of the body or chunk, `UInt64.max` for a body that
    /// ends with the connection, 0 when the next byte is framing or none is due.
    package var directPayloadByteCount: UInt64 {
        switch phase {
        case .length(let remaining): remaining
        case .chunked: chunks.directPayloadByteCount
        case .untilClose: .max
        case .idle, .head, .finished, .failed: 0
        }
    }

    /// What is left of a body of known length; `nil` when the body is framed otherwise, or none is due.
    package var remainingLength: UInt64? {
        if case .length(let remaining) = phase { remaining } else { nil }
    }

    /// Notes payload that was received without passing through ``receive(_:)``.
    ///
    /// - Parameter count: bytes, at most ``directPayloadByteCount``; more is a mistake of the owner, after
    ///   which every call throws.
    /// - Returns: ``Event/end(trailers:)`` when that completed a body of known length, else nil.
    package mutating func receivedDirectly(_ count: Int) -> Event? {
        guard count > 0, UInt64(count) <= directPayloadByteCount else {
            if count != 0 { fail(WireError(.illegalEvent, at: 0)) }
            return nil
        }
        switch phase {
        case .length(let remaining):
            bodyByteCount &+= UInt64(count)
            let left = remaining - UInt64(count)
            phase = left == 0 ? .finished : .length(left)
            return left == 0 ? .end(trailers: nil) : nil
        case .chunked:
            chunks.receivedDirectly(count)
        case .untilClose:
            bodyByteCount &+= UInt64(count)
        case .idle, .head, .finished, .failed:
            break
        }
        return nil
    }

    // MARK: The end

    /// Notes that the stream ended, after all unread bytes were offered to ``receive(_:)``.
    ///
    /// - Parameter isClean: whether it ended in order: FIN without TLS, `close_notify` with it.
    /// - Returns: ``Event/end(trailers:)`` when nothing is missing, also between exchanges.
    /// - Throws: `emptyResponse` or `truncated`, with the bytes that came and those that were due.
    package mutating func receiveEndOfStream(isClean: Bool) throws(WireError) -> Event {
        hasLeftover = true  // Whatever came before: this connection carries no further exchange.
        let truncation: Truncation
        switch phase {
        case .failed(let error): throw error
        case .idle, .finished: return .end(trailers: nil)
        case .length(0):
            phase = .finished
            return .end(trailers: nil)
        case .untilClose where isClean:
            phase = .finished
            return .end(trailers: nil)
        // Interim responses alone answer nothing.
        case .head where pendingHeadByteCount == 0:
            let error = WireError(.emptyResponse, at: 0)
            fail(error)
            throw error
        case .head: truncation = .head(received: pendingHeadByteCount)
        case .length: truncation = .length(expected: bodyLength, received: bodyByteCount)
        case .chunked: truncation = .chunked(received: chunks.payloadByteCount)
        case .untilClose: truncation = .untilClose(received: bodyByteCount)
        }
        let error = WireError(.truncated(truncation), at: pendingHeadByteCount)
        fail(error)
        throw error
    }

    /// Notes what was left unread after ``Event/end(trailers:)``: bytes nobody asked for, which must never
    /// become the next response, so the connection is not reusable if there are any.
    ///
    /// - Parameter leftoverByteCount: the unread bytes.
    package mutating func finish(leftoverByteCount: Int) {
        if leftoverByteCount > 0 { hasLeftover = true }
    }

    private mutating func fail(_ error: WireError) {
        if case .failed = phase { return }
        phase = .failed(error)
    }

    // MARK: The verdict

    /// Whether the response was reported complete.
    package var isResponseFinished: Bool { phase == .finished }

    /// Whether the connection may carry another exchange: response and request complete, nothing left unread,
    /// and neither side nor the framing asks for a close (RFC 9112 §9.3).
    package var isReusable: Bool {
        phase == .finished && isRequestFinished && !isRequestAborted && !hasLeftover && wantsKeepAlive
            && responsePersists
    }

    /// Seconds the server keeps the connection idle (`Keep-Alive: timeout=N`), or nil when it does not say.
    package var keepAliveTimeout: Int? { keepAlive.timeout }
}
