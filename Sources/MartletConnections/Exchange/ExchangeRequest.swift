package import MartletTransport
package import MartletWire

/// What an exchange sends, ready for the wire.
package final class ExchangeRequest: Sendable {
    /// The encoded head, framing fields included.
    package let head: [UInt8]
    /// The method, on which the response's framing depends.
    package let method: String
    /// The version in the request line.
    package let version: WireVersion
    /// The body.
    package let body: OutgoingBody
    /// Whether the head says `Expect: 100-continue`.
    package let expectsContinue: Bool
    /// How long the body waits for the 100 before it goes out all the same (RFC 9110 §10.1.1).
    package let continueWait: Duration
    /// Whether the connection may be kept; `false` when the head says `Connection: close`.
    package let wantsKeepAlive: Bool
    /// Whether the body is handed over as it stands on the wire, chunk framing included.
    package let isRaw: Bool
    /// Whether the response's `Content-Length` is passed over.
    package let ignoresLength: Bool
    /// Trailer fields that a chunked body is followed by.
    package let trailers: [(name: String, value: String)]

    /// A request.
    package init(
        head: [UInt8], method: String, version: WireVersion = .http11, body: OutgoingBody = .none,
        expectsContinue: Bool = false, continueWait: Duration = .seconds(1), wantsKeepAlive: Bool = true,
        isRaw: Bool = false, ignoresLength: Bool = false, trailers: [(name: String, value: String)] = []
    ) {
        self.head = head
        self.method = method
        self.version = version
        self.body = body
        self.expectsContinue = expectsContinue
        self.continueWait = continueWait
        self.wantsKeepAlive = wantsKeepAlive
        self.isRaw = isRaw
        self.ignoresLength = ignoresLength
        self.trailers = trailers
    }
}

/// The clocks of an exchange, as instants and spans.
package struct ExchangeClocks: Sendable {
    /// How long the final head may take once the request is sent; `nil` for ever.
    package var head: Duration?
    /// How long no byte may move, either way; `nil` for ever.
    package var idle: Duration?
    /// When the whole call must be over.
    package var totalDeadline: MonotonicTime

    /// Clocks.
    package init(head: Duration? = nil, idle: Duration? = nil, totalDeadline: MonotonicTime = .distantFuture)
    {
        self.head = head
        self.idle = idle
        self.totalDeadline = totalDeadline
    }

    /// The deadline of a wait that begins now, and the clock it belongs to.
    func deadline(
        _ span: Duration?, _ clock: ExchangeError.Clock, from now: MonotonicTime = MonotonicTime.now()
    ) -> (MonotonicTime, ExchangeError.Clock) {
        guard let span else { return (totalDeadline, .total) }
        let instant = now.advanced(by: span)
        return instant < totalDeadline ? (instant, clock) : (totalDeadline, .total)
    }
}

/// When the parts of an exchange happened, and how many bytes moved.
package struct ExchangeTimeline: Sendable {
    /// When the first byte of the request was about to be written.
    package var sendingBegan: MonotonicTime?
    /// When the last byte of the request had been written.
    package var requestSent: MonotonicTime?
    /// When the final head had come.
    package var headReceived: MonotonicTime?
    /// When the body was complete.
    package var bodyReceived: MonotonicTime?
    /// Bytes written: head, framing and body.
    package var sentByteCount: UInt64 = 0
    /// Bytes of the body received, before any content coding is undone.
    package var receivedBodyByteCount: UInt64 = 0

    /// A timeline on which nothing has happened.
    package init() {}
}

/// Where the bytes of a request's body come from.
package protocol BodySource: AnyObject, Sendable {
    /// The next bytes; `nil` after the last. Empty arrays are passed over.
    ///
    /// Called by one task, one call at a time. When that task is cancelled it should return or throw soon.
    func next() async throws -> [UInt8]?
}

/// A request's body as an exchange sends it.
package enum OutgoingBody: Sendable {
    /// No body, and no framing field.
    case none
    /// Bytes in memory.
    case bytes([UInt8])
    /// Bytes as they come: framed by a length that must be met exactly, else in chunks.
    case source(any BodySource, length: UInt64?)
}

/// What pauses a transfer: asked before each write and each read.
///
/// A paused transfer reads nothing, so that the peer is held by the TCP window (RFC 9293 §3.8.6).
package protocol TransferGate: AnyObject, Sendable {
    /// Whether the transfer is paused now.
    var isPaused: Bool { get }

    /// Returns when the transfer is not paused, or was cancelled, or the deadline has passed, or the waiting task was
    /// cancelled.
    func waitWhilePaused(until deadline: MonotonicTime, on loop: EventLoop) async
}
