import MartletTransport

/// Serves connections, accepted or in memory, and owns them: none outlives ``ConnectionRegister/stop()``.
final class OriginService: Sendable {
    let recorder: OriginRecorder
    let signals = OriginSignals()
    let limits: OriginLimits
    let log: (@Sendable (ServedRequest) async -> Void)?
    private let behavior: OriginBehavior
    private let context: TLSContext?
    let register = ConnectionRegister()

    init(
        behavior: OriginBehavior, limits: OriginLimits, context: TLSContext?,
        log: (@Sendable (ServedRequest) async -> Void)? = nil
    ) {
        (self.behavior, self.limits, self.log, self.context) = (behavior, limits, log, context)
        recorder = OriginRecorder(recordLimit: limits.recordLimit, bodyLimit: limits.recordedBodyLimit)
    }

    deinit { register.endAll() }

    /// Serves an accepted socket, over TLS if there is a context.
    func accept(_ socket: Socket) {
        start(end: { socket.close() }) { service, number in
            do throws(TransportError) { try await service.serve(socket, number) } catch {
                service.recorder.count { $0.failedHandshakes += 1 }
            }
            socket.close()
        }
    }

    /// Serves the server's end of a stream in memory.
    /// - Parameter isSecure: Whether the client's URL has the scheme `https`.
    func accept(_ stream: any ByteStream, isSecure: Bool) {
        start(end: { stream.close() }) { service, number in
            await service.serve(stream, socket: nil, peer: OriginPeer(number, stream.information, isSecure: isSecure))
            stream.close()
        }
    }

    private func start(
        end: @escaping @Sendable () -> Void, _ body: @escaping @Sendable (OriginService, Int) async -> Void
    ) {
        let number = recorder.count { counts in
            counts.connections += 1
            counts.openConnections += 1
            return counts.connections
        }
        let isStarted = register.start(number, end: end) {
            await body(self, number)
            self.recorder.connectionClosed(number)
        }
        if !isStarted { recorder.connectionClosed(number) }
    }

    /// - Throws: The error of the TLS handshake; the socket is closed then.
    private func serve(_ socket: Socket, _ number: Int) async throws(TransportError) {
        guard let context else {
            let stream = PlainStream(socket: socket, remoteAddress: socket.remoteAddress)
            return await serve(stream, socket: socket, peer: OriginPeer(number, stream.information, isSecure: false))
        }
        let stream = try await TLSStream.accept(
            socket: socket, remoteAddress: socket.remoteAddress, context: context,
            deadline: MonotonicTime.now().advanced(by: limits.handshakeTimeout))
        let peer = OriginPeer(number, stream.information, isSecure: true, serverName: stream.requestedServerName)
        await serve(stream, socket: socket, peer: peer)
    }

    private func serve(_ stream: any ByteStream, socket: Socket?, peer: OriginPeer) async {
        let channel = OriginChannel(stream: stream, socket: socket, number: peer.number, recorder: recorder)
        switch behavior {
        case .handler(let handler):
            let connection = OriginConnection(channel, handler, self, peer) { [weak self] in
                self?.register.cancel(peer.number)
            }
            await connection.serve()
        case .scripts(let scripts):
            let script = scripts[min(peer.number, scripts.count) - 1]
            var runner = ScriptRunner(channel: channel, recorder: recorder, signals: signals, peer: peer)
            await runner.run(script)
        }
    }
}

/// The way an origin serves its connections.
enum OriginBehavior: Sendable {
    case handler(OriginHandler)
    /// Each connection plays a script: the first connection the first one, and so on; the last script repeats.
    case scripts([ServerScript])

    /// Plays scripts; without any, each connection is closed immediately.
    init(scripts: [ServerScript]) { self = .scripts(scripts.isEmpty ? [ServerScript([])] : scripts) }
}
