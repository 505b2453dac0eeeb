package import MartletTransport

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
