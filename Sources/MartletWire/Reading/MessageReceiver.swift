/// The receiving half of a connection's machine: where the present message stands, and the bytes behind its head.
///
/// The machine reads heads, which differ, and gives the receiver each final one; ``ClientMachine`` and ``ServerMachine``
/// share the rest. After a fault the receiver throws the same fault again.
package struct MessageReceiver<Head: Equatable & Sendable, Interim: Equatable & Sendable>: Sendable {
    /// What received bytes came to. One event a call; callers go on calling until
    /// ``needMoreBytes`` or ``end(trailers:)``, also when no byte is left unread.
    package enum Event: Equatable, Sendable {
        /// All input that can be used was used.
        case needMoreBytes
        /// An interim response other than 101 (RFC 9110 §15.2).
        case informational(Interim)
        /// A final head and how its body is framed. ``end(trailers:)`` follows even when there is no body.
        case head(Head, BodyFraming)
        /// Payload of the body, at this range of the given span.
        case body(Range<Int>)
        /// The message is complete. Trailers are never merged into the head (RFC 9110 §6.5).
        case end(trailers: FieldBlock?)
    }

    /// An event and the bytes used up to it, payload included.
    package struct Received: Equatable, Sendable {
        /// The bytes to drop from the start of the unread ones before the next call.
        package let consumed: Int
        /// What they came to.
        package let event: Event
    }

    /// Where the message stands. No case carries a buffer, so changing the phase copies nothing.
    enum Phase: Equatable, Sendable {
        /// No exchange was started yet.
        case idle
        /// A head must come; the machine's parser holds what was looked at.
        case head
        /// A body of known length; so many bytes are left. Leaves with the last of them.
        case length(UInt64)
        /// A chunked body; `chunks` knows where it stands.
        case chunked
        /// A body that ends with the connection.
        case untilClose
        /// The end was reported; the next message may start.
        case finished
        /// A fault was thrown; nothing leaves this.
        case failed(WireError)
    }

    let limits: WireLimits
    private(set) var phase: Phase
    private var chunks: ChunkedDecoder
    /// Unread bytes at the last call while a head was due, for the error when no more come.
    private var pendingHeadByteCount = 0
    private var bodyLength: UInt64 = 0
    private var bodyByteCount: UInt64 = 0

    /// Makes the receiver of a fresh connection.
    init(limits: WireLimits, phase: Phase) {
        self.limits = limits
        self.phase = phase
        chunks = ChunkedDecoder(limits: limits)
    }

    /// Whether no message has begun, or the last one is complete.
    var isBetweenMessages: Bool {
        switch phase {
        case .idle, .finished: true
        case .head, .length, .chunked, .untilClose, .failed: false
        }
    }

    /// Whether a head is due.
    var isHeadDue: Bool { if case .head = phase { true } else { false } }

    /// Whether a head is due of which no byte has come.
    var isBeforeHead: Bool { isHeadDue && pendingHeadByteCount == 0 }

    /// Makes ready for a head.
    mutating func start() {
        phase = .head
        pendingHeadByteCount = 0
        bodyLength = 0
        bodyByteCount = 0
    }

    /// Notes a fault for good, and returns it.
    @discardableResult
    mutating func fail(_ error: WireError) -> WireError {
        if case .failed = phase { return error }
        phase = .failed(error)
        return error
    }

    // MARK: The head

    /// Notes how much of an incomplete head is there.
    mutating func awaitHead(_ byteCount: Int) -> Received {
        pendingHeadByteCount = byteCount
        return Received(consumed: 0, event: .needMoreBytes)
    }

    /// Passes on an interim head, behind which another head is due.
    mutating func pass(_ head: Interim, byteCount: Int) -> Received {
        pendingHeadByteCount = 0
        return Received(consumed: byteCount, event: .informational(head))
    }

    /// Passes on the final head, behind which its body is due.
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

    /// Reads on behind the head, up to the first event.
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

    /// How many of the next bytes are payload for certain; see ``ClientMachine/directPayloadByteCount``.
    var directPayloadByteCount: UInt64 {
        switch phase {
        case .length(let remaining): remaining
        case .chunked: chunks.directPayloadByteCount
        case .untilClose: .max
        case .idle, .head, .finished, .failed: 0
        }
    }

    /// Notes payload that was not received through the machine; see ``ClientMachine/receivedDirectly(_:)``.
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

    /// Notes that the stream ended.
    ///
    /// - Parameter isClean: whether it ended in order.
    /// - Throws: `truncated` where something is missing.
    mutating func receiveEndOfStream(isClean: Bool) throws(WireError) -> Event {
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
        case .head: truncation = .head(received: pendingHeadByteCount)
        case .length: truncation = .length(expected: bodyLength, received: bodyByteCount)
        case .chunked: truncation = .chunked(received: chunks.payloadByteCount)
        case .untilClose: truncation = .untilClose(received: bodyByteCount)
        }
        throw fail(WireError(.truncated(truncation), at: pendingHeadByteCount))
    }
}
