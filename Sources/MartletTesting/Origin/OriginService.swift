import MartletTransport

/// Serves connections wherever they come from, and owns them: none outlives ``stop()``.
final class OriginService: Sendable {
    let ledger: OriginLedger
    let signals = OriginSignals()
    private let conduct: OriginConduct
    private let limits: OriginLimits
    private let handshake: OriginHandshake
    private let clock = OriginClock()
    private let register = ConnectionRegister()

    init(conduct: OriginConduct, limits: OriginLimits, context: TLSContext?) {
        self.conduct = conduct
        self.limits = limits
        ledger = OriginLedger(recordLimit: limits.recordLimit)
        handshake = OriginHandshake(context: context, timeout: limits.handshakeTimeout)
    }

    deinit { register.endAll() }

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
        end: @escaping @Sendable () -> Void, _ body: @escaping @Sendable (OriginService, Int) async -> Void
    ) {
        let number = ledger.connectionOpened()
        let isTaken = register.start(number, end: end) {
            await body(self, number)
            self.ledger.connectionClosed(number)
        }
        if !isTaken { ledger.connectionClosed(number) }
    }

    private func serve(_ stream: any ByteStream, socket: Socket?, peer: OriginPeer) async {
        let channel = OriginChannel(stream: stream, socket: socket, number: peer.number, ledger: ledger)
        switch conduct {
        case .handler(let handler):
            let number = peer.number
            let connection = OriginConnection(
                channel: channel, handler: handler, limits: limits, ledger: ledger, clock: clock, peer: peer
            ) { [weak self] in self?.register.cancel(number) }
            await connection.serve()
        case .scripts(let scripts):
            let script = scripts[min(peer.number, scripts.count) - 1]
            await ScriptRunner(channel: channel, ledger: ledger, signals: signals).run(script)
        }
    }

    // MARK: Ending

    /// Ends every open connection at once, whatever it is doing, and goes on serving new ones.
    func endConnections() { register.endAll() }

    /// Ends every connection, takes no more, and waits until all their tasks are over.
    func stop() async { await register.stop() }
}
