package import MartletTransport

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
