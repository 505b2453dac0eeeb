import MartletTransport
import Synchronization

/// The open connections of an origin or a proxy with their tasks; none outlives ``stop()``.
final class ConnectionRegister: Sendable {
    private struct Connection {
        /// Ends the connection at once; any thread may call it.
        var end: @Sendable () -> Void
        var task: Task<Void, Never>
    }

    private struct State {
        var connections: [Int: Connection] = [:]
        var isStopped = false
    }

    /// Guards the connections; touched by their tasks, the accepting task, and the task that stops the server.
    private let state = Mutex(State())

    /// Starts the task of a connection, unless the register is stopped.
    /// - Returns: Whether it was started; if not, the connection has been ended.
    func start(
        _ number: Int, end: @escaping @Sendable () -> Void, _ body: @escaping @Sendable () async -> Void
    ) -> Bool {
        let isTaken = state.withLock { state in
            if state.isStopped { return false }
            // Unstructured, since connections end in any order; `stop` cancels them and waits for them.
            let task = Task {
                await body()
                self.state.withLock { _ = $0.connections.removeValue(forKey: number) }
            }
            state.connections[number] = Connection(end: end, task: task)
            return true
        }
        if !isTaken { end() }
        return isTaken
    }

    /// Replaces the closure that ends a connection; calls it if the register is stopped.
    func setEnd(of number: Int, _ end: @escaping @Sendable () -> Void) {
        let isStopped = state.withLock { state in
            state.connections[number]?.end = end
            return state.isStopped
        }
        if isStopped { end() }
    }

    /// Cancels the task of a connection.
    func cancel(_ number: Int) { state.withLock { $0.connections[number]?.task }?.cancel() }

    /// Ends every open connection at once, whatever it is doing.
    /// - Parameter isFinal: Whether later connections end at once, too.
    func endAll(isFinal: Bool = false) {
        let connections = state.withLock { state in
            if isFinal { state.isStopped = true }
            return Array(state.connections.values)
        }
        for connection in connections {
            connection.end()
            connection.task.cancel()
        }
    }

    /// Ends every connection, takes no more, and waits until all their tasks are over.
    func stop() async {
        while true {
            endAll(isFinal: true)
            let tasks = state.withLock { $0.connections.values.map(\.task) }
            if tasks.isEmpty { return }
            for task in tasks { await task.value }
        }
    }
}

extension Listener {
    /// Gives each connection to a closure, until the listener is closed or the task is cancelled.
    func acceptAll(on loop: EventLoop, _ take: (Socket) -> Void) async {
        while true {
            do throws(TransportError) {
                take(try await accept(loop: loop))
            } catch {
                // Without a descriptor left the connection stays in the queue, until one is free.
                guard case .system = error else { return }
                do {
                    try await Task.sleep(for: .milliseconds(10))
                } catch {
                    return
                }
            }
        }
    }
}
