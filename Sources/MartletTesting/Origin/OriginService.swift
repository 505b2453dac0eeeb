import MartletTransport
import Synchronization

/// Serves connections wherever they come from, and owns them: none outlives ``stop()``.
final class OriginService: Sendable {
    private struct Connection {
        /// Ends the connection at once; any thread may call it.
        var end: @Sendable () -> Void
        var task: Task<Void, Never>
    }

    private struct State {
        var connections: [Int: Connection] = [:]
        var isStopped = false
    }

    let ledger: OriginLedger
    let signals = OriginSignals()
    private let conduct: OriginConduct
    private let limits: OriginLimits
    private let handshake: OriginHandshake
    private let clock = OriginClock()
    /// Guards the register of connections; touched by their tasks, the accepting task, and whoever stops the
    /// origin.
    private let state = Mutex(State())

    init(conduct: OriginConduct, limits: OriginLimits, context: TLSContext?) {
        self.conduct = conduct
        self.limits = limits
        ledger = OriginLedger(recordLimit: limits.recordLimit)
        handshake = OriginHandshake(context: context, timeout: limits.handshakeTimeout)
    }

    deinit {
        for connection in state.withLock({ $0.connections.values }) {
            connection.end()
            connection.task.cancel()
        }
    }

    // MARK: Connections

    /// Takes an accepted socket.
    func take(_ socket: Socket) {
        start(end: { socket.close() }) { service, number in
            do throws(TransportError) {
                let opened = try await service.handshake.open(socket, number: number)
                await service.serve(opened.stream, socket: socket, peer: opened.peer)
            } catch {
                service.ledger.handshakeFailed()
            }
            socket.close()
        }
    }

    /// Takes the server's end of a stream in memory.
    func take(_ stream: any ByteStream) {
        start(end: { stream.close() }) { service, number in
            let peer = OriginHandshake.peer(number, stream.information, serverName: nil)
            await service.serve(stream, socket: nil, peer: peer)
            stream.close()
        }
    }

    private func start(
        end: @escaping @Sendable () -> Void,
        _ body: @escaping @Sendable (OriginService, Int) async -> Void
    ) {
        let number = ledger.connectionOpened()
        let isTaken = state.withLock { state in
            if state.isStopped { return false }
            // Unstructured, since connections end in any order; `stop` cancels them and waits for them.
            let task = Task {
                await body(self, number)
                self.finished(number)
            }
            state.connections[number] = Connection(end: end, task: task)
            return true
        }
        if isTaken { return }
        end()
        ledger.connectionClosed(number)
    }

    private func finished(_ number: Int) {
        state.withLock { _ = $0.connections.removeValue(forKey: number) }
        ledger.connectionClosed(number)
    }

    private func serve(_ stream: any ByteStream, socket: Socket?, peer: OriginPeer) async {
        let channel = OriginChannel(stream: stream, socket: socket, number: peer.number, ledger: ledger)
        switch conduct {
        case .handler(let handler):
            let number = peer.number
            let connection = OriginConnection(
                channel: channel, handler: handler, limits: limits, ledger: ledger, clock: clock, peer: peer
            ) { [weak self] in
                self?.cancel(number)
            }
            await connection.serve()
        case .scripts(let scripts):
            let script = scripts[min(peer.number, scripts.count) - 1]
            await ScriptRunner(channel: channel, ledger: ledger, signals: signals).run(script)
        }
    }

    private func cancel(_ number: Int) {
        let task = state.withLock { $0.connections[number]?.task }
        task?.cancel()
    }

    // MARK: Ending

    /// Ends every open connection at once, whatever it is doing, and goes on serving new ones.
    func endConnections() {
        let connections = state.withLock { Array($0.connections.values) }
        for connection in connections {
            connection.end()
            connection.task.cancel()
        }
    }

    /// Ends every connection, takes no more, and waits until all their tasks are over.
    func stop() async {
        state.withLock { $0.isStopped = true }
        while true {
            let tasks = state.withLock { $0.connections.values.map(\.task) }
            if tasks.isEmpty { return }
            endConnections()
            for task in tasks { await task.value }
        }
    }
}
