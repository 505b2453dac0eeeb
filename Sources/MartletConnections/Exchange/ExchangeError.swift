package import MartletTransport
package import MartletWire

/// Why an exchange on a connection came to nothing.
@dynamicMemberLookup
package struct ExchangeError: Error, Sendable {
    /// What happened.
    package enum Cause: Sendable {
        /// Bytes could not be moved.
        case transport(TransportError)
        /// The peer's bytes were wrong, or too few, or the request could not be written as HTTP.
        case wire(WireError)
        /// A proxy did not open a way to the server.
        case proxy(ProxyFault)
        /// The response's content coding cannot be undone.
        case coding(any Error & CustomStringConvertible)
        /// The body's source threw.
        case source(any Error)
        /// The body's source gave fewer or more bytes than it had announced.
        case lengthMismatch(announced: UInt64, actual: UInt64)
        /// A clock ran out.
        case timedOut(Clock)
        /// The exchange was cancelled.
        case cancelled
    }

    /// The clocks that run while an exchange does.
    package enum Clock: Sendable {
        /// Waiting for a connection to be free.
        case poolWait
        /// Opening a connection.
        case connect
        /// Waiting for the final head, once the request is sent.
        case head
        /// Waiting for any byte to move.
        case idle
        /// The whole call.
        case total
    }

    /// Where the exchange stood.
    package enum Phase: Sendable {
        /// Waiting for a connection.
        case waiting
        /// Opening one: look-up.
        case resolving
        /// Opening one: transport.
        case connecting
        /// Opening one: the way through a proxy.
        case tunnelling
        /// Opening one: TLS.
        case securing
        /// Sending the request.
        case sending
        /// Waiting for the head of the response.
        case awaitingHead
        /// Receiving the body.
        case receivingBody
    }

    /// What an error says.
    package struct Details: Sendable {
        /// What happened.
        package var cause: Cause
        /// Where the exchange stood.
        package var phase: Phase
        /// Whether any byte of the request may have reached the peer.
        package var wasSent: Bool
        /// How long the wait was that a clock ended.
        package var waited: Duration?
        /// The reason why a request waited for a connection, if that is where it ended.
        package var shortage: PoolShortage?
        /// The proxy that the failure is about; `nil` where it is about the server, or nobody.
        package var proxy: ProxyServer?
        /// The connection that stood before opening the way failed; `nil` where there was none, or an exchange had it.
        package var reached: ReachedConnection?
        /// The heads of what a proxy had answered to CONNECT, where its tunnel stood and what followed failed.
        package var tunnelHeads: [ResponseHead] = []
    }

    /// One reference, so that the frames of functions that may throw it stay small.
    private final class Box: Sendable {
        let details: Details

        init(_ details: Details) { self.details = details }
    }

    private var box: Box

    /// What the error says.
    package subscript<Value>(dynamicMember path: WritableKeyPath<Details, Value>) -> Value {
        get { box.details[keyPath: path] }
        set {
            var details = box.details
            details[keyPath: path] = newValue
            box = Box(details)
        }
    }

    /// An error.
    package init(
        cause: Cause, phase: Phase, wasSent: Bool, waited: Duration? = nil, proxy: ProxyServer? = nil,
        shortage: PoolShortage? = nil
    ) {
        box = Box(
            Details(
                cause: cause, phase: phase, wasSent: wasSent, waited: waited, shortage: shortage, proxy: proxy
            ))
    }

    /// A connection that could not be opened.
    /// - Parameter proxy: The proxy it was to lead to; `nil` where it was to lead to the server.
    package init(_ error: DialError, proxy: ProxyServer? = nil) {
        let phase: Phase =
            switch error.phase {
            case .resolving: .resolving
            case .connecting: .connecting
            case .securing: .securing
            }
        let cause: Cause =
            switch error.cause {
            case .timedOut: .timedOut(.connect)
            case .interrupted: .cancelled
            default: .transport(error.cause)
            }
        box = Box(
            Details(
                cause: cause, phase: phase, wasSent: false, waited: error.elapsed, proxy: proxy,
                reached: error.reached))
    }

    /// Whether the connection ended or failed, as against what it carried: what a request on a reused connection may
    /// meet through no fault of anybody (RFC 9112 §9.3.1).
    package var isConnectionLoss: Bool {
        switch self.cause {
        case .transport(.system), .transport(.closed), .transport(.addressLost), .transport(.tls): true
        case .wire(let error): error.code == .emptyResponse
        default: false
        }
    }
}
