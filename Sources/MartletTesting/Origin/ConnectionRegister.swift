import MartletTransport
import Synchronization

/// The open connections of an origin or a proxy with their tasks; none outlives ``stop()``.
final class ConnectionRegister: Sendable {
    private struct State {
        /// The connections by their numbers. Any thread may call `end`, which ends one immediately.
        var connections: [Int: (end: @Sendable () -> Void, task: Task<Void, Never>)] = [:]
        var isStopped = false
    }

    /// Guards the connections; used by their tasks, the accepting task, and the task that stops the server.
    private let state = Mutex(State())

    /// Starts the task of a connection, unless the register is stopped.
    /// - Returns: Whether the task was started. If not, the connection has been ended.
    func start(_ number: Int, end: @escaping @Sendable () -> Void, _ body: @escaping @Sendable () async -> Void) -> Bool
    {
        let isStarted = state.withLock { state in
            if state.isStopped { return false }
            // Unstructured, since connections end in any order; `stop` cancels them and waits for them.
            let task = Task {
                await body()
                self.state.withLock { _ = $0.connections.removeValue(forKey: number) }
            }
            state.connections[number] = (end, task)
            return true
        }
        if !isStarted { end() }
        return isStarted
    }

    /// Replaces the closure that ends a connection; calls it if the register is stopped.
    func setEnd(of number: Int, _ end: @escaping @Sendable () -> Void) {
        let isStopped = state.withLock { state in
            state.connections[number]?.end = end
            return state.isStopped
        }
        if isStopped { end() }
    }

    func cancel(_ number: Int) { state.withLock { $0.connections[number]?.task }?.cancel() }

    /// Ends every open connection immediately.
    /// - Parameter isFinal: Whether later connections are ended immediately, too.
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

    /// Ends every connection, stops accepting, and waits until all tasks have ended.
    func stop() async {
        while true {
            endAll(isFinal: true)
            let tasks = state.withLock { $0.connections.values.map(\.task) }
            if tasks.isEmpty { return }
            for task in tasks { await task.value }
        }
    }
}

/// A listening socket and the task that accepts its connections. It listens until it is closed or released.
final class LoopbackServer: Sendable {
    let address: SocketAddress
    private let listener: Listener
    private let accepting: Task<Void, Never>

    /// Starts to listen, and passes each connection to a closure.
    /// - Parameter name: The name of the server in errors.
    init(_ name: String = "", on address: SocketAddress, _ accept: @escaping @Sendable (Socket) -> Void)
        throws(OriginError)
    {
        do throws(SystemError) {
            let loop = try EventLoop.shared.get()
            let listener = try Listener(address: address, loop: loop)
            (self.listener, self.address) = (listener, listener.address)
            // Unstructured, since it lives until the server stops; it holds no reference to the server.
            accepting = Task { await LoopbackServer.acceptAll(from: listener, on: loop, accept) }
        } catch { throw .cannotListen("\(name)\(address): \(error)") }
    }

    deinit { close() }

    func close() {
        listener.close()
        accepting.cancel()
    }

    /// Stops listening, and waits until accepting has ended.
    func stop() async {
        close()
        await accepting.value
    }

    private static func acceptAll(from listener: Listener, on loop: EventLoop, _ accept: (Socket) -> Void) async {
        while true {
            do throws(TransportError) { accept(try await listener.accept(loop: loop)) } catch {
                // While no descriptor is free, the connection stays in the queue.
                guard case .system = error, (try? await Task.sleep(for: .milliseconds(10))) != nil else { return }
            }
        }
    }
}

/// Runs a closure, and then a second one for cleanup, even if the first one throws.
/// - Parameter end: Receives whether the first closure threw.
func runThenEnd<Value>(_ body: () async throws -> Value, end: (_ hasFailed: Bool) async -> Void) async throws -> Value {
    do {
        let value = try await body()
        await end(false)
        return value
    } catch {
        await end(true)
        throw error
    }
}

extension [UInt8] {
    /// Consecutive pieces of a size; the last one may be shorter.
    func pieces(of size: Int) -> some Sequence<[UInt8]> {
        stride(from: 0, to: count, by: size).lazy.map { Array(self[$0...].prefix(size)) }
    }
}
