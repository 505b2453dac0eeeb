/// The server's side of a connection, as the test origin needs it: one request after the other, strict about
/// framing, with the verdict whether the connection may live on.
///
/// Unread bytes behind ``Event/end(trailers:)`` are the next request: they are offered again after
/// ``nextRequest()``.
package struct ServerMachine: ~Copyable, Sendable {
    /// What received bytes came to. One event a call; callers go on calling until
    /// ``needMoreBytes`` or ``end(trailers:)``, also when no byte is left unread.
    package enum Event: Equatable, Sendable {
        /// All input that can be used was used.
        case needMoreBytes
        /// A head and how its body is framed. ``end(trailers:)`` follows even when there is no body.
        case head(RequestHead, BodyFraming)
        /// Payload of the body, at this range of the given span.
        case body(Range<Int>)
        /// The request is complete.
        case end(trailers: FieldBlock?)
        /// The client closed the connection between requests.
        case closed
    }

    /// An event and the bytes used up to it, payload included.
    package struct Received: Equatable, Sendable {
        /// The bytes to drop from the start of the unread ones before the next call.
        package let consumed: Int
        /// What they came to.
        package let event: Event
    }

    /// Where the request stands. No case carries a buffer, so changing the phase copies nothing.
    private enum Phase: Equatable, Sendable {
        /// A head must come; `parser` holds what was looked at.
        case head
        /// A body of known length; so many bytes are left.
        case length(UInt64)
        /// A chunked body; `chunks` knows where it stands.
        case chunked
        /// The end was reported; ``nextRequest()`` leaves this.
        case finished
        /// A fault was thrown; nothing leaves this.
        case failed(WireError)
    }

    private let limits: WireLimits
    private var phase = Phase.head
    private var parser: RequestHeadParser
    private var chunks: ChunkedDecoder
    private var pendingHeadByteCount = 0
    private var bodyLength: UInt64 = 0

    /// Whether the client waits for 100 before it sends the body (RFC 9110 §10.1.1).
    package private(set) var isExpectingContinue = false

    /// Whether the client is content with the connection living on behind the answer (RFC 9112 §9.3).
    package private(set) var persists = false

    /// Makes the machine of a fresh connection.
    package init(limits: WireLimits = .default) {
        self.limits = limits
        parser = RequestHeadParser(limits: limits)
        chunks = ChunkedDecoder(limits: limits)
    }

    /// Makes ready for the next request; legal after ``Event/end(trailers:)``.
    package mutating func nextRequest() {
        guard phase == .finished else {
            fail(WireError(.illegalEvent, at: 0))
            return
        }
        phase = .head
        parser.reset()
        pendingHeadByteCount = 0
        isExpectingContinue = false
        persists = false
    }

    /// Reads on, up to the first event.
    ///
    /// - Parameter unread: the bytes not used yet. While a head is due it starts with the head's first byte.
    /// - Throws: what is wrong with the request, or the limit it exceeds; the same again on every later call.
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
            phase = .length(remaining - UInt64(count))
            return Received(consumed: count, event: .body(0..<count))
        case .chunked:
            return try receiveChunks(unread)
        case .finished:
            break
        case .failed(let error):
            throw error
        }
        return Received(consumed: 0, event: .needMoreBytes)
    }

    private mutating func receiveHead(_ unread: Span<UInt8>) throws(WireError) -> Received {
        pendingHeadByteCount = unread.count
        guard let parsed = try parser.parse(unread) else {
            return Received(consumed: 0, event: .needMoreBytes)
        }
        pendingHeadByteCount = 0
        let head = parsed.head
        let framing = try FramingDecision.request(head, limits: limits).framing
        persists = PersistenceRule.persists(version: head.version, fields: head.fields)
        isExpectingContinue =
            head.version == .http11 && framing != .none && framing != .length(0)
            && head.fields.contains("Expect", token: "100-continue")
        switch framing {
        case .none, .untilClose: phase = .length(0)
        case .length(let length): phase = .length(length)
        case .chunked:
            chunks = ChunkedDecoder(limits: limits, offset: parsed.byteCount)
            phase = .chunked
        }
        if case .length(let length) = phase { bodyLength = length }
        return Received(consumed: parsed.byteCount, event: .head(head, framing))
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

    /// Notes that the client sends no more, after all unread bytes were offered to ``receive(_:)``.
    ///
    /// - Returns: ``Event/closed`` between requests, ``Event/end(trailers:)`` when only that was still to be
    ///   reported.
    /// - Throws: `truncated` inside a request.
    package mutating func receiveEndOfStream() throws(WireError) -> Event {
        persists = false
        let truncation: Truncation
        switch phase {
        case .failed(let error): throw error
        case .finished: return .closed
        case .head where pendingHeadByteCount == 0: return .closed
        case .length(0):
            phase = .finished
            return .end(trailers: nil)
        case .head: truncation = .head(received: pendingHeadByteCount)
        case .length(let left): truncation = .length(expected: bodyLength, received: bodyLength - left)
        case .chunked: truncation = .chunked(received: chunks.payloadByteCount)
        }
        let error = WireError(.truncated(truncation), at: pendingHeadByteCount)
        fail(error)
        throw error
    }

    private mutating func fail(_ error: WireError) {
        if case .failed = phase { return }
        phase = .failed(error)
    }
}
