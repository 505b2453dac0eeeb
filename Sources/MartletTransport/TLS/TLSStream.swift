import Synchronization

/// A stream over TLS on a socket. After a write that would block, the next write must begin with the same bytes, since
/// OpenSSL has already encrypted them. A writer that continues at the same position meets this requirement.
package final class TLSStream: SocketStream {
    private struct State {
        /// `nil` once the stream is closed.
        var engine: TLSEngine?
        var information: ConnectionInformation
        var requestedServerName: String?
        /// Whether a read or a probe left bytes inside OpenSSL, for which the socket reports no edge.
        var holdsBytes = false
        /// Whether the reader must wait until the socket accepts a reply to a key update, or the `close_notify`.
        var readNeedsWriting = false
        /// Whether the last read stopped before it took bytes, because the socket must accept such a reply first.
        var isReadBlocked = false
        /// Whether the socket has not accepted the `close_notify` yet.
        var hasPendingCloseNotify = false
    }

    /// Guards the engine: OpenSSL allows one call at a time on a connection. No call under it waits.
    private let state: Mutex<State>
    package let socket: Socket
    /// The stream between this one and the socket: TLS with a proxy. Lock order: this stream, then the carrier.
    private let carrier: TLSStream?

    /// Creates a stream on a socket. Closes the socket and the carrier if the engine cannot be created.
    private init(
        on socket: Socket, _ carrier: TLSStream?, _ remoteAddress: SocketAddress?,
        _ makeEngine: () throws(TLSError) -> sending TLSEngine
    ) throws(TransportError) {
        let engine: TLSEngine
        do throws(TLSError) { engine = try makeEngine() } catch {
            carrier?.close()
            socket.close()
            throw .tls(error)
        }
        (self.socket, self.carrier) = (socket, carrier)
        state = Mutex(
            State(
                engine: engine,
                information: ConnectionInformation(
                    remoteAddress: remoteAddress?.description ?? carrier?.information.remoteAddress ?? "",
                    localAddress: socket.localAddress?.description ?? "")))
    }

    /// The maximum number of bytes that one call encrypts, so that a reader never waits long for the lock.
    private static let writeLimit = 256 << 10

    // MARK: Handshakes

    /// Opens TLS on a connected socket as the client. Interrupting the socket ends the call; a failure closes it.
    /// - Parameters:
    ///   - serverName: The host's ASCII name, sent as SNI, or its address: the certificate must be issued for it.
    ///   - carrier: The TLS stream to a proxy, which carries the records; closed with the new stream.
    ///   - port: The port in the key of the session cache.
    ///   - proxy: The proxy in the key of the session cache; empty without one.
    /// - Throws: `.tls`, `.system`, `.timedOut`, `.interrupted`, `.closed`.
    package static func connect(
        socket: Socket, carrier: TLSStream? = nil, remoteAddress: SocketAddress? = nil, context: TLSContext,
        serverName: String, port: Int, proxy: String = "", deadline: MonotonicTime
    ) async throws(TransportError) -> TLSStream {
        let stream = try TLSStream(on: socket, carrier, remoteAddress) { () throws(TLSError) in
            try TLSEngine(
                client: socket, carrier: carrier, context: context, serverName: serverName, port: port, proxy: proxy)
        }
        try await stream.performHandshake(until: deadline)
        // OpenSSL allows a server to choose a protocol that was not offered.
        if let chosen = stream.information.tls?.applicationProtocol, !context.applicationProtocols.contains(chosen) {
            stream.close()
            throw .tls(
                TLSError(.handshake(reason: "the server chose a protocol that was not offered"), host: serverName))
        }
        return stream
    }

    /// Opens TLS on an accepted socket as the server, like `connect`.
    package static func accept(
        socket: Socket, carrier: TLSStream? = nil, remoteAddress: SocketAddress? = nil, context: TLSContext,
        deadline: MonotonicTime
    ) async throws(TransportError) -> TLSStream {
        let stream = try TLSStream(on: socket, carrier, remoteAddress) { () throws(TLSError) in
            try TLSEngine(server: socket, carrier: carrier, context: context)
        }
        try await stream.performHandshake(until: deadline)
        return stream
    }

    private func performHandshake(until deadline: MonotonicTime) async throws(TransportError) {
        do throws(TransportError) {
            while let pause = try advanceHandshake() {
                // Checked here too: if the peer keeps sending small pieces, the wait never reaches the deadline.
                if MonotonicTime.now() >= deadline { throw TransportError.timedOut }
                switch pause {
                case .wantsRead: try await waitForArrival(until: deadline)
                case .wantsWrite: try await socket.wait(for: .write, until: deadline)
                case .wantsDecision: try await evaluateTrust(until: deadline)
                }
            }
        } catch {
            handshakeFailed(error)
            throw error
        }
    }

    // The next two functions are not inlined, because the function above would contain several copies of them.

    /// Advances the handshake as far as possible; `nil` when it is complete.
    @inline(never) private func advanceHandshake() throws(TransportError) -> TLSEngine.Pause? {
        try withEngine { engine, state throws(TransportError) in
            if let pause = try engine.handshake() { return pause }
            state.information = ConnectionInformation(
                remoteAddress: state.information.remoteAddress, localAddress: state.information.localAddress,
                tls: engine.information)
            state.requestedServerName = engine.requestedServerName
            return nil
        }
    }

    @inline(never) private func handshakeFailed(_ error: TransportError) {
        switch error {
        // After a timeout, too: a server that does not tolerate an offered session may be silent.
        case .tls, .system, .timedOut: state.withLock { $0.engine?.forgetOfferedSessions() }
        case .interrupted, .closed, .resolution, .connect, .addressLost: break
        }
        close()
    }

    /// Calls the custom trust policy, without the lock and within the timeout of the handshake.
    private func evaluateTrust(until deadline: MonotonicTime) async throws(TransportError) {
        guard let question = try withEngine({ engine, _ in engine.question }) else { throw .closed }
        let decision = try await OneShot<TrustDecision>.run(until: deadline, on: socket.loop, question).get()
        try withEngine { engine, _ in engine.decide(decision) }
    }

    /// Calls a closure with the engine, under the lock.
    private func withEngine<Value: Sendable>(_ body: (TLSEngine, inout State) throws(TransportError) -> Value)
        throws(TransportError) -> Value
    {
        try state.withLock { state throws(TransportError) in
            guard let engine = state.engine else { throw .closed }
            return try body(engine, &state)
        }
    }

    // MARK: Bytes

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        try withEngine { engine, state throws(TransportError) in
            if state.hasPendingCloseNotify { state.hasPendingCloseNotify = engine.shutdown() }
            (state.holdsBytes, state.isReadBlocked) = (false, false)
            // Clears the latch: if OpenSSL stops before it reads the socket, an old edge would make the reader spin.
            if state.readNeedsWriting { _ = socket.readiness.beginRead() }
            var outcome = unsafe try engine.read(into: buffer)
            if case .paused(.wantsWrite) = outcome, needWriting(true, &state) {
                _ = socket.readiness.beginRead()
                outcome = unsafe try engine.read(into: buffer)
            }
            switch outcome {
            case .moved(let count):
                needWriting(state.hasPendingCloseNotify, &state)
                state.holdsBytes = engine.hasPendingBytes || socket.readiness.isWorthReading
                return .bytes(count)
            case .paused(let pause):
                state.isReadBlocked = pause == .wantsWrite
                needWriting(state.isReadBlocked || state.hasPendingCloseNotify, &state)
                return .wouldBlock
            case .endOfStream(let isClean): return .endOfStream(isClean: isClean)
            }
        }
    }

    /// Sets whether the socket must accept bytes before reading can continue: a write edge then wakes the reader.
    /// - Returns: Whether it has just been set: an edge may have been missed, so the call must be retried.
    @discardableResult private func needWriting(_ isNeeded: Bool, _ state: inout State) -> Bool {
        guard state.readNeedsWriting != isNeeded else { return false }
        state.readNeedsWriting = isNeeded
        socket.readiness.setWakesReaderOnWritable(isNeeded)
        return isNeeded
    }

    package func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        try withEngine { engine, state throws(TransportError) in
            let piece = unsafe UnsafeRawBufferPointer(rebasing: buffer.prefix(TLSStream.writeLimit))
            switch unsafe try engine.write(piece) {
            case .moved(let count): return count
            // The socket is full. A write never waits for input: the handshake is over, and renegotiation is off.
            case .paused: return 0
            case .endOfStream: throw .closed
            }
        }
    }

    package func shutdownWriting() {
        state.withLock { state in
            guard let engine = state.engine else { return }
            state.hasPendingCloseNotify = engine.shutdown()
            if state.hasPendingCloseNotify, needWriting(true, &state) {
                state.hasPendingCloseNotify = engine.shutdown()
            }
        }
    }

    package var hasPendingEnd: Bool { state.withLock { $0.hasPendingCloseNotify } }

    // MARK: Waiting

    package func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError) {
        let (holdsBytes, isReadBlocked) = state.withLock { ($0.holdsBytes, $0.isReadBlocked) }
        // Not for the carrier: the bytes that it may hold cannot be read yet.
        if isReadBlocked { return try await socket.wait(for: .read, until: deadline) }
        guard holdsBytes else { return try await waitForArrival(until: deadline) }
        // Does not wait, but reports a stream that was interrupted or closed.
        do throws(TransportError) { try await socket.wait(for: .read, until: MonotonicTime(nanoseconds: 0)) } catch {
            guard case .timedOut = error else { throw error }
        }
    }

    /// Waits until bytes have arrived. The carrier may hold bytes for which the socket reports no further edge.
    private func waitForArrival(until deadline: MonotonicTime) async throws(TransportError) {
        if let carrier {
            try await carrier.waitUntilReadable(until: deadline)
        } else {
            try await socket.wait(for: .read, until: deadline)
        }
    }

    package func stopObservingIdle() -> Bool {
        // Bytes inside OpenSSL cause no read edge.
        let holdsBytes = state.withLock { $0.engine?.hasPendingBytes ?? true }
        let hasBecomeReadable = carrier?.stopObservingIdle() ?? socket.readiness.stopObservingIdle()
        return hasBecomeReadable || holdsBytes
    }

    package var readLatch: Readiness? {
        if state.withLock({ $0.holdsBytes }) { return nil }
        return carrier == nil ? socket.readiness : carrier?.readLatch
    }

    package var mayHaveBytes: Bool {
        // `true` whenever `waitUntilReadable` returns immediately: otherwise a reader that checks this would spin.
        state.withLock { $0.holdsBytes || $0.readNeedsWriting || $0.engine == nil }
            || carrier?.mayHaveBytes ?? socket.readiness.isWorthReading
    }

    package func looksReadable() -> Bool {
        // A blocked reader leaves the bytes in the socket, so it would poll for them without end.
        if state.withLock({ $0.isReadBlocked }) { return false }
        return carrier?.looksReadable() ?? socket.looksReadable()
    }

    /// Processes messages of TLS itself, such as tickets and key updates, after which the stream is still usable.
    package func probe() -> IdleState {
        state.withLock { state in
            guard let engine = state.engine else { return .unusable }
            do throws(TransportError) {
                guard case .paused = try engine.peek() else {
                    state.holdsBytes = true
                    return .unusable
                }
                return .quiet
            } catch { return .unusable }
        }
    }

    /// Updates this side's keys, and requests that the peer updates its keys (RFC 8446 §4.6.3); for test origins.
    package func renewKeys() throws(TransportError) {
        try withEngine { engine, _ throws(TransportError) in try engine.renewKeys() }
    }

    // MARK: The end

    package func close() {
        end(notifying: true)
        carrier?.close()
        socket.close()
    }

    package func reset() {
        socket.resetOnClose()
        closeWithoutNotifying()
    }

    /// Closes the stream without a `close_notify`, as if the connection had been cut; for test origins.
    package func closeWithoutNotifying() {
        end(notifying: false)
        socket.close()
    }

    private func end(notifying: Bool) {
        state.withLock { state in
            if notifying { state.engine?.shutdown() }
            state.engine = nil
        }
    }

    // MARK: Properties

    package var information: ConnectionInformation { state.withLock { $0.information } }

    /// On the server's side: the name in the client's SNI; `nil` if it sent none.
    package var requestedServerName: String? { state.withLock { $0.requestedServerName } }
}
