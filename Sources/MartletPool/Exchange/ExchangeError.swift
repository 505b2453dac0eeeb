package import MartletTransport
package import MartletWire

/// The failure of an exchange, or of the wait for its connection.
package struct ExchangeError: Error, Sendable {
    package enum Cause: Sendable {
        case transport(TransportError)
        /// The peer's bytes were invalid or incomplete, or the request could not be written as HTTP.
        case wire(WireError)
        /// A proxy did not connect to the server.
        case proxy(ProxyHandshakeError)
        /// The response's content coding cannot be decoded.
        case coding(any Error & CustomStringConvertible)
        /// A ``ContentVerifier`` rejected the content of the response.
        case content(ContentRejection)
        case source(any Error)
        /// The body's source produced fewer or more bytes than announced.
        case lengthMismatch(announced: UInt64, actual: UInt64)
        case timedOut(Timeout)
        case cancelled
    }

    /// The timeouts that apply to an exchange.
    package enum Timeout: Sendable {
        /// The wait for a free connection.
        case poolWait
        /// The opening of a connection.
        case connect
        /// The wait for the final head, once the request is sent.
        case head
        /// The wait for a byte in either direction.
        case idle
        /// The duration of the whole call.
        case total
    }

    package enum Phase: Sendable {
        case waiting
        /// Opening a connection: the name is resolved.
        case resolving
        case connecting
        /// Opening a connection: the tunnel through a proxy is established.
        case tunneling
        /// Opening a connection: the TLS handshake is performed.
        case tlsHandshake
        case sending
        case awaitingHead
        case receivingBody
        /// Using the connection after a 101.
        case upgraded
    }

    package struct Details: Sendable {
        package var cause: Cause
        package var phase: Phase
        /// Whether any byte of the request may have reached the peer.
        package var wasSent: Bool
        /// The duration of the wait that ended in a timeout.
        package var waited: Duration?
        /// The proxy that the failure concerns; `nil` if it concerns the server, or neither.
        package var proxy: ProxyServer?
        /// The reason why the request waited for a connection, if it failed during that wait.
        package var shortage: String?
        /// The connection that was established before the failure; `nil` without one, or if an exchange used it.
        package var reached: ReachedConnection?
        /// The heads of a proxy's responses to CONNECT, if its tunnel was established and a later step failed.
        package var tunnelHeads: [ResponseHead] = []
    }

    /// A reference to the details, so that the frames of functions that may throw the error stay small.
    private final class Box: Sendable {
        let details: Details

        init(_ details: Details) { self.details = details }
    }

    private var box: Box

    package var details: Details {
        get { box.details }
        set { box = Box(newValue) }
    }

    // Not `@dynamicMemberLookup`: key paths need much code at each use.
    package var cause: Cause { box.details.cause }
    package var phase: Phase { box.details.phase }
    package var wasSent: Bool { box.details.wasSent }
    package var waited: Duration? { box.details.waited }
    package var proxy: ProxyServer? { box.details.proxy }
    package var shortage: String? { box.details.shortage }
    package var reached: ReachedConnection? { box.details.reached }
    package var tunnelHeads: [ResponseHead] { box.details.tunnelHeads }

    package init(
        cause: Cause, phase: Phase, wasSent: Bool, waited: Duration? = nil, proxy: ProxyServer? = nil,
        shortage: String? = nil
    ) {
        box = Box(
            Details(cause: cause, phase: phase, wasSent: wasSent, waited: waited, proxy: proxy, shortage: shortage))
    }

    /// Creates the error of a connection that could not be opened.
    /// - Parameter proxy: The proxy that the connection was opened to; `nil` for the server.
    package init(_ error: DialError, proxy: ProxyServer? = nil) {
        let phase: Phase =
            switch error.phase {
            case .resolving: .resolving
            case .connecting: .connecting
            case .tlsHandshake: .tlsHandshake
            }
        let cause: Cause =
            switch error.cause {
            case .timedOut: .timedOut(.connect)
            case .interrupted: .cancelled
            default: .transport(error.cause)
            }
        self.init(cause: cause, phase: phase, wasSent: false, waited: error.elapsed, proxy: proxy)
        details.reached = error.reached
    }

    /// Whether the connection, not the message on it, ended or failed. On a reused connection this can happen although
    /// neither side made an error (RFC 9112 §9.3.1).
    package var isConnectionLoss: Bool {
        switch self.cause {
        case .transport(.system), .transport(.closed), .transport(.addressLost), .transport(.tls): true
        case .wire(let error): error.code == .emptyResponse
        default: false
        }
    }
}
