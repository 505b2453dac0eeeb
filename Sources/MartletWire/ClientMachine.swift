/// The client's side of a connection: one exchange after the other, from the first byte of a request to the decision
/// whether the connection may carry another (RFC 9112 §9). It handles bytes and events only; its owner has the socket
/// and the clock. After an error every later call throws the same error, so that no later bytes are interpreted.
package struct ClientMachine: ~Copyable, Sendable {
    /// The result of parsing received bytes.
    package typealias Event = MessageReceiver<ResponseHead, ResponseHead>.Event
    /// An event and the number of bytes used up to it, payload included.
    package typealias Received = MessageReceiver<ResponseHead, ResponseHead>.Received

    private enum RequestState { case open, finished, aborted }

    private var receiver: MessageReceiver<ResponseHead, ResponseHead>
    private var parser: HeadParser
    private var request = RequestState.open
    /// The effect of the method on the response's framing.
    private var kind = ResponseKind.ordinary
    private var requestVersion = WireVersion.http11
    private var ignoresLength = false
    private var acceptsProgress = false
    private var acceptsUpgrade = false
    private var informationalCount = 0
    private var progressCount = 0
    /// The maximum number of responses with the status 104 to a request that accepts them.
    private static let progressLimit = 1_000_000
    /// Whether the connection can still persist. Once `false`, it stays `false` for all later exchanges.
    private var persists = true

    /// Whether a byte of the current response has arrived. Until then, an idempotent request can be retried.
    package private(set) var hasReceivedAnyByte = false

    /// The `Keep-Alive` hint in the latest final response head.
    package private(set) var keepAlive = KeepAliveHint(FieldBlock())

    package init(limits: WireLimits = .default) {
        receiver = MessageReceiver(limits: limits, phase: .idle)
        parser = HeadParser(limits: limits)
    }

    // MARK: The request

    /// Starts an exchange. Allowed initially, and whenever ``isReusable`` is `true`.
    /// - Parameters:
    ///   - method: The method: HEAD and CONNECT change the framing of the response.
    ///   - wantsKeepAlive: `false` if the request has `Connection: close` or the owner will not reuse the connection.
    ///   - version: The version in the request line.
    ///   - ignoresLength: Whether `Content-Length` is ignored, so that an unchunked body ends with the connection.
    ///   - acceptsProgress: Whether responses with the status 104 do not count as informational ones.
    ///   - acceptsUpgrade: Whether a 101 is accepted as the final response. All later bytes are its body.
    package mutating func startRequest(
        method: String, wantsKeepAlive: Bool = true, version: WireVersion = .http11, ignoresLength: Bool = false,
        acceptsProgress: Bool = false, acceptsUpgrade: Bool = false
    ) {
        guard receiver.phase == .idle || isReusable else {
            receiver.fail(WireError(.illegalEvent, at: 0))
            return
        }
        receiver.start()
        parser.reset()
        request = .open
        kind = ResponseKind(method: method)
        requestVersion = version
        self.ignoresLength = ignoresLength
        (informationalCount, progressCount) = (0, 0)
        (self.acceptsProgress, self.acceptsUpgrade) = (acceptsProgress, acceptsUpgrade)
        hasReceivedAnyByte = false
        if !wantsKeepAlive { persists = false }
    }

    /// Records that the last byte of the request was passed to the socket.
    package mutating func requestFinished() { if request == .open { request = .finished } }

    /// Records that the request's body will not be completed: the connection cannot be used again.
    package mutating func requestAborted() { request = .aborted }

    // MARK: The response

    /// Parses bytes up to the first event.
    /// - Parameter unread: The unused bytes. While a head is due, they start with the head's first byte.
    /// - Throws: An error in the response, or an exceeded limit. Every later call throws the same error.
    package mutating func receive(_ unread: Span<UInt8>) throws(WireError) -> Received {
        do throws(WireError) {
            if receiver.isHeadDue { return try receiveHead(unread) }
            if !unread.isEmpty, receiver.isBetweenMessages { throw WireError(.unsolicitedBytes, at: 0) }
            return try receiver.receiveBody(unread)
        } catch { throw receiver.fail(error) }
    }

    private mutating func receiveHead(_ unread: Span<UInt8>) throws(WireError) -> Received {
        if unread.isEmpty { return receiver.awaitHead(0) }
        hasReceivedAnyByte = true
        guard let head = try parser.parse(unread) else { return receiver.awaitHead(unread.count) }
        let byteCount = parser.consumedByteCount
        guard head.isInformational else { return receiver.pass(head, try decide(head), byteCount: byteCount) }
        if head.status == 101 {
            guard acceptsUpgrade else { throw WireError(.unexpectedUpgrade, at: 0) }
            // The fields describe no body: all later bytes belong to the new protocol (RFC 9110 §7.8).
            persists = false
            return receiver.pass(head, .untilClose, byteCount: byteCount)
        }
        // The number of reports of progress (104) grows with the duration of an upload.
        let isProgress = acceptsProgress && head.status == 104
        if isProgress { progressCount += 1 } else { informationalCount += 1 }
        let limit = isProgress ? ClientMachine.progressLimit : receiver.limits.informationalResponseLimit
        if (isProgress ? progressCount : informationalCount) > limit {
            throw WireError(.tooManyInformationalResponses(limit: limit), at: 0)
        }
        parser.reset()
        return receiver.pass(head, byteCount: byteCount)
    }

    /// Decides on the framing of the body, and whether the connection may persist.
    private mutating func decide(_ head: borrowing ResponseHead) throws(WireError) -> BodyFraming {
        let decision = try FramingDecision.response(
            kind, head: head, limits: receiver.limits, ignoresLength: ignoresLength)
        keepAlive = KeepAliveHint(head.fields)
        persists =
            persists && decision.permitsReuse && PersistenceRule.persists(version: head.version, fields: head.fields)
            && (requestVersion == .http11 || head.fields.contains("Connection", token: "keep-alive"))
            && keepAlive.remainingUses != 0
        return decision.framing
    }

    // MARK: Payload that bypasses the machine

    /// Whether a head is expected. Without unread bytes, ``receive(_:)`` then has no effect.
    package var isHeadDue: Bool { receiver.isHeadDue }

    /// The number of bytes that are payload for certain, and may be received directly into the consumer's buffer once
    /// no unread byte is left: the rest of the body or chunk, `UInt64.max` for a body that ends with the connection, 0
    /// if the next byte is framing or no body is due.
    package var directPayloadByteCount: UInt64 { receiver.directPayloadByteCount }

    /// The number of bytes left of a body of known length; `nil` for another framing, and if no body is due.
    package var remainingLength: UInt64? { if case .length(let remaining) = receiver.phase { remaining } else { nil } }

    /// Records payload that was received without passing through ``receive(_:)``.
    /// - Parameter count: The number of bytes, at most ``directPayloadByteCount``: after more, all calls throw.
    /// - Returns: ``MessageReceiver/Event/end(trailers:)`` if that completed a body of known length.
    package mutating func receivedDirectly(_ count: Int) -> Event? { receiver.receivedDirectly(count) }

    // MARK: The end

    /// Records that the stream ended, after all unread bytes were passed to ``receive(_:)``.
    /// - Parameter isClean: Whether the peer closed it in order: by FIN, or over TLS by `close_notify`.
    /// - Returns: ``MessageReceiver/Event/end(trailers:)`` if nothing is missing, also between exchanges.
    /// - Throws: `emptyResponse` or `truncated`, with the received and the expected number of bytes.
    package mutating func receiveEndOfStream(isClean: Bool) throws(WireError) -> Event {
        persists = false
        // Interim responses alone are not a complete response.
        if receiver.isBeforeHead { throw receiver.fail(WireError(.emptyResponse, at: 0)) }
        return try receiver.receiveEndOfStream(isClean: isClean)
    }

    /// Records the number of unread bytes after ``MessageReceiver/Event/end(trailers:)``. Such bytes are unsolicited
    /// and must never be parsed as the next response, so the connection is then not reusable.
    package mutating func finish(leftoverByteCount: Int) { if leftoverByteCount > 0 { persists = false } }

    /// Whether the end of the response was reported.
    package var isResponseFinished: Bool { receiver.phase == .finished }

    /// Whether the connection may carry another exchange: response and request are complete, no byte is unread, and
    /// neither side nor the framing requires a close (RFC 9112 §9.3).
    @inline(__always) package var isReusable: Bool { isResponseFinished && request == .finished && persists }
}

/// The receiving part that ``ClientMachine`` and ``ServerMachine`` share. It stores the position in the current
/// message, and parses the bytes after the head. The machines parse the heads, which differ for requests and responses,
/// and pass each head to the receiver. After an error every call throws the same error.
package struct MessageReceiver<Head: Equatable & Sendable, Interim: Equatable & Sendable>: Sendable {
    /// The result of parsing received bytes. Each call returns one event. Callers repeat the call until
    /// ``needMoreBytes`` or ``end(trailers:)``, even if no byte is left.
    package enum Event: Equatable, Sendable {
        /// The input ends before the next event, or the message has ended.
        case needMoreBytes
        /// An interim response other than 101 (RFC 9110 §15.2).
        case informational(Interim)
        /// A final head and the framing of its body. ``end(trailers:)`` follows even if there is no body.
        case head(Head, BodyFraming)
        /// Payload of the body, at this range of the given span.
        case body(Range<Int>)
        /// The message is complete. Trailers are never merged into the head (RFC 9110 §6.5).
        case end(trailers: FieldBlock?)
    }

    /// An event and the number of bytes used up to it, payload included.
    package struct Received: Equatable, Sendable {
        /// The number of unread bytes to remove before the next call.
        package let consumed: Int
        package let event: Event
    }

    /// The position in the message. No case carries a buffer, so changing the phase copies nothing.
    enum Phase: Equatable, Sendable {
        /// No exchange was started yet.
        case idle
        /// A head is expected, and the machine's parser stores its progress.
        case head
        /// A body of known length, with the number of bytes left.
        case length(UInt64)
        /// A chunked body; `chunks` has the position.
        case chunked
        /// A body that ends with the connection.
        case untilClose
        /// The end was reported; the next message may start.
        case finished
        /// An error was thrown, and every later call throws it again. Final.
        case failed(WireError)
    }

    let limits: WireLimits
    private(set) var phase: Phase
    private var chunks: ChunkedDecoder
    /// The number of bytes of an incomplete head at the last call, for the error if the stream ends.
    private var pendingHeadByteCount = 0
    private var bodyLength: UInt64 = 0
    private var bodyByteCount: UInt64 = 0

    init(limits: WireLimits, phase: Phase) {
        (self.limits, self.phase) = (limits, phase)
        chunks = ChunkedDecoder(limits: limits)
    }

    /// Whether no message has started, or the last one is complete.
    var isBetweenMessages: Bool {
        switch phase {
        case .idle, .finished: true
        case .head, .length, .chunked, .untilClose, .failed: false
        }
    }

    var isHeadDue: Bool { if case .head = phase { true } else { false } }

    /// Whether a head is due, and none of its bytes has arrived.
    var isBeforeHead: Bool { isHeadDue && pendingHeadByteCount == 0 }

    mutating func start() {
        phase = .head
        pendingHeadByteCount = 0
        bodyLength = 0
        bodyByteCount = 0
    }

    /// Enters the final state ``Phase/failed(_:)``, and returns the error.
    @discardableResult mutating func fail(_ error: WireError) -> WireError {
        if case .failed = phase { return error }
        phase = .failed(error)
        return error
    }

    // MARK: The head

    /// Records the number of received bytes of an incomplete head.
    mutating func awaitHead(_ byteCount: Int) -> Received {
        pendingHeadByteCount = byteCount
        return Received(consumed: 0, event: .needMoreBytes)
    }

    /// Reports an interim head, after which another head is due.
    mutating func pass(_ head: Interim, byteCount: Int) -> Received {
        pendingHeadByteCount = 0
        return Received(consumed: byteCount, event: .informational(head))
    }

    /// Reports the final head, after which its body is due.
    mutating func pass(_ head: Head, _ framing: BodyFraming, byteCount: Int) -> Received {
        pendingHeadByteCount = 0
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

    // MARK: The body

    /// Parses bytes after the head, up to the first event.
    mutating func receiveBody(_ unread: Span<UInt8>) throws(WireError) -> Received {
        switch phase {
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
            let step = try chunks.decode(unread)
            switch step.event {
            case .needMoreBytes: return Received(consumed: step.consumed, event: .needMoreBytes)
            case .payload(let range): return Received(consumed: step.consumed, event: .body(range))
            case .end(let trailers):
                phase = .finished
                return Received(consumed: step.consumed, event: .end(trailers: trailers))
            }
        case .untilClose:
            if unread.isEmpty { break }
            bodyByteCount &+= UInt64(unread.count)
            return Received(consumed: unread.count, event: .body(0..<unread.count))
        case .idle, .head, .finished: break
        case .failed(let error): throw error
        }
        return Received(consumed: 0, event: .needMoreBytes)
    }

    /// The number of the next bytes that are certainly payload; see ``ClientMachine/directPayloadByteCount``.
    var directPayloadByteCount: UInt64 {
        switch phase {
        case .length(let remaining): remaining
        case .chunked: chunks.directPayloadByteCount
        case .untilClose: .max
        case .idle, .head, .finished, .failed: 0
        }
    }

    /// Records payload that was not received through the machine; see ``ClientMachine/receivedDirectly(_:)``.
    mutating func receivedDirectly(_ count: Int) -> Event? {
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
        case .chunked: chunks.receivedDirectly(count)
        case .untilClose: bodyByteCount &+= UInt64(count)
        case .idle, .head, .finished, .failed: break
        }
        return nil
    }

    // MARK: The end

    /// Records that the stream ended.
    /// - Parameter isClean: Whether the peer closed it in order.
    /// - Throws: `truncated` if bytes are missing.
    mutating func receiveEndOfStream(isClean: Bool) throws(WireError) -> Event {
        let truncation: Truncation
        switch phase {
        case .failed(let error): throw error
        case .idle, .finished: return .end(trailers: nil)
        case .length(0),
            .untilClose where isClean:
            phase = .finished
            return .end(trailers: nil)
        case .head: truncation = .head(received: pendingHeadByteCount)
        case .length: truncation = .length(expected: bodyLength, received: bodyByteCount)
        case .chunked: truncation = .chunked(received: chunks.payloadByteCount)
        case .untilClose: truncation = .untilClose(received: bodyByteCount)
        }
        throw fail(WireError(.truncated(truncation), at: pendingHeadByteCount))
    }
}
