import Synchronization

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
    var isCancelled: Bool {
        state.withLock { $0.isCancelled }
    }
}
