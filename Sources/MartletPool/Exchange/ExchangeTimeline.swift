package import MartletTransport

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

    package init() {}
}
