package import MartletTransport
package import MartletWire

/// The request of an exchange, ready for the wire.
package final class ExchangeRequest: Sendable {
    /// The encoded head, framing fields included.
    package let head: [UInt8]
    /// The method, on which the response's framing depends.
    package let method: String
    /// The version in the request line.
    package let version: WireVersion
    /// The body.
    package let body: OutgoingBody
    /// Whether the head has `Expect: 100-continue`.
    package let expectsContinue: Bool
    /// The time that the body waits for the 100 before it is sent nevertheless (RFC 9110 §10.1.1).
    package let continueWait: Duration
    /// Whether the connection may be kept; `false` if the head has `Connection: close`.
    package let wantsKeepAlive: Bool
    /// Whether the response's body is delivered as it is on the wire, chunk framing included.
    package let isRaw: Bool
    /// Whether the response's `Content-Length` is ignored.
    package let ignoresLength: Bool
    /// The trailer fields after a chunked body.
    package let trailers: [(name: String, value: String)]

    /// Creates a request.
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
package struct ExchangeTimeouts: Sendable {
    /// The time in which the final head must come once the request is sent; `nil` for no limit.
    package var head: Duration?
    /// The time in which a byte must move, either way; `nil` for no limit.
    package var idle: Duration?
    /// The end of the whole call.
    package var totalDeadline: MonotonicTime

    /// Creates clocks.
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

/// The times of an exchange's steps, and the numbers of bytes.
package struct ExchangeTimeline: Sendable {
    /// The time before the first byte of the request was written.
    package var sendingBegan: MonotonicTime?
    /// The time after the last byte of the request was written.
    package var requestSent: MonotonicTime?
    /// The time at which the final head was received.
    package var headReceived: MonotonicTime?
    /// The time at which the body was complete.
    package var bodyReceived: MonotonicTime?
    /// Bytes written: head, framing and body.
    package var sentByteCount: UInt64 = 0
    /// Bytes of the body received, before any content coding is decoded.
    package var receivedBodyByteCount: UInt64 = 0

    /// Creates an empty timeline.
    package init() {}
}

/// A request's body as an exchange sends it.
package enum OutgoingBody: Sendable {
    /// No body, and no framing field.
    case none
    /// Bytes in memory.
    case bytes([UInt8])
    /// Bytes as they come: framed by a length that must be met exactly, else in chunks.
    case source(any RequestBodySource, length: UInt64?)
}

/// The source of the bytes of a request's body.
package protocol RequestBodySource: AnyObject, Sendable {
    /// Returns the next bytes; `nil` after the last. Empty arrays are ignored.
    ///
    /// Called by one task, one call at a time. When that task is cancelled it should return or throw soon.
    func next() async throws -> [UInt8]?
}
