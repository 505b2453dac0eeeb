import Synchronization

/// Where a connection leads, as far as the network is concerned.
package struct Destination: Hashable, Sendable {
    /// Whether TLS is spoken.
    package var isSecure: Bool
    /// An ASCII host name, or an address literal without brackets.
    package var host: String
    /// 1–65535.
    package var port: Int

    /// A destination.
    package init(isSecure: Bool, host: String, port: Int) {
        self.isSecure = isSecure
        self.host = host
        self.port = port
    }
}

/// The sockets of one dial, so that cancelling it can interrupt whatever it waits for.
final class DialControl: Sendable {
    private struct State {
        var isCancelled = false
        var sockets: [Socket] = []
    }

    private let state = Mutex(State())

    /// Has a socket interrupted when the dial is cancelled; at once, when it has been.
    func add(_ socket: Socket) {
        let isCancelled = state.withLock { state in
            state.sockets.append(socket)
            return state.isCancelled
        }
        if isCancelled { socket.readiness.interrupt() }
    }

    /// Interrupts all sockets, now and later.
    func cancel() {
        let sockets = state.withLock { state in
            state.isCancelled = true
            return state.sockets
        }
        for socket in sockets { socket.readiness.interrupt() }
    }

    /// Whether the dial was cancelled.
    var isCancelled: Bool { state.withLock { $0.isCancelled } }
}

/// A connection that could not be opened.
package struct DialError: Error, Sendable {
    /// The step that failed.
    package enum Phase: Sendable {
        /// Looking up the name.
        case resolving
        /// Connecting the transport.
        case connecting
        /// Loading trust roots and identities, and the TLS handshake.
        case securing
    }

    /// The step that failed.
    package var phase: Phase
    /// Why.
    package var cause: TransportError
    /// How long the dial had taken.
    package var elapsed: Duration
    /// The connection on which it failed; `nil` where there was none yet.
    package var reached: ReachedConnection?
}

/// When the steps of opening a connection began and ended.
package struct DialTimings: Sendable {
    /// When the dial began.
    package var start: MonotonicTime
    /// When the name was resolved; `nil` where there was nothing to resolve.
    package var resolved: MonotonicTime?
    /// When the transport's connection stood.
    package var connected: MonotonicTime?
    /// When the tunnel through a proxy stood; `nil` where there is none.
    package var tunnelled: MonotonicTime?
    /// When the TLS handshake was done; `nil` on a plain connection.
    package var secured: MonotonicTime?

    /// Timings that begin now.
    package init(start: MonotonicTime) { self.start = start }
}

/// A connection that stood when the dial failed: TLS on it, or the way through a proxy, came to nothing.
///
/// A class, so that errors that have none stay small.
package final class ReachedConnection: Sendable {
    /// The addresses of both ends.
    package let information: ConnectionInformation
    /// When its parts were done.
    package let timings: DialTimings

    /// A connection that was given up.
    package init(information: ConnectionInformation, timings: DialTimings) {
        self.information = information
        self.timings = timings
    }
}

/// Connects in place of the network: what a mock transport is, seen from below.
package protocol StreamConnector: Sendable {
    /// Opens a stream to a destination. TLS, where the destination wants it, is the connector's business.
    func connect(to destination: Destination) async throws(TransportError) -> any ByteStream
}
