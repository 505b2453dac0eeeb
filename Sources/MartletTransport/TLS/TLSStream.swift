import Synchronization

/// A stream over TLS on a socket.
///
/// Writing after a write that would block: the bytes must begin with those that were tried, since OpenSSL has
/// encrypted them already; everyone who goes on at the same place does so.
package final class TLSStream: SocketStream {
    private struct State {
        /// `nil` once the stream is closed.
        var engine: TLSEngine?
        var information: ConnectionInformation
        var requestedServerName: String?
        /// The last read, or a look, left bytes inside OpenSSL, of which the socket will not tell.
        var holdsBytes = false
        /// The reader cannot go on, or has something left to do, before the socket takes what is to be written: an
        /// answer to a renewal of keys, or the `close_notify`.
        var readNeedsWriting = false
        /// A `close_notify` that the socket has not taken yet.
        var owesCloseNotify = false
    }

    /// Guards the engine: OpenSSL allows one call at a time on a connection. Every call under it returns
    /// without waiting.
    private let state: Mutex<State>
    /// The socket.
    package let socket: Socket
    /// What lies between this stream and the socket: TLS with a proxy. Its lock is only ever taken under this one's.
    private let carrier: TLSStream?

    /// A stream on a socket, both of which are closed where its engine cannot be made.
    private init(
        on socket: Socket, _ carrier: TLSStream?, _ remoteAddress: SocketAddress?,
        _ makeEngine: () throws(TLSError) -> sending TLSEngine
    ) throws(TransportError) {
        let engine: TLSEngine
        do throws(TLSError) {
            engine = try makeEngine()
        } catch {
            carrier?.close()
            socket.close()
            throw .tls(error)
        }
        self.socket = socket
        self.carrier = carrier
        state = Mutex(
            State(
                engine: engine,
                information: ConnectionInformation(
                    remoteAddress: remoteAddress?.description ?? carrier?.information.remoteAddress ?? "",
                    localAddress: socket.localAddress?.description ?? "")))
    }

    /// The most that one call encrypts, so that a reader never waits long for the lock.
    private static let writeLimit = 256 << 10

    // MARK: Handshakes

    /// Opens TLS on a connected socket as the client.
    ///
    /// Ends early when the socket is interrupted. When it fails the socket is closed.
    /// - Parameters:
    ///   - serverName: The host's ASCII name, sent as SNI, or its address: whom the certificate must name.
    ///   - carrier: TLS with a proxy that stands on the socket, through which the records go; closed with the stream.
    ///   - port: The port that sessions are kept under.
    ///   - proxy: The proxy that sessions are kept under; empty where there is none.
    /// - Throws: `.tls`, `.system`, `.timedOut`, `.interrupted`, `.closed`.
    package static func connect(
        socket: Socket, carrier: TLSStream? = nil, remoteAddress: SocketAddress? = nil, context: TLSContext,
        serverName: String, port: Int, proxy: String = "", deadline: MonotonicTime
    ) async throws(TransportError) -> TLSStream {
        let stream = try TLSStream(on: socket, carrier, remoteAddress) { () throws(TLSError) in
            try TLSEngine(
                client: socket, carrier: carrier, context: context, serverName: serverName, port: port,
                proxy: proxy)
        }
        try await stream.shakeHands(until: deadline)
        // OpenSSL lets a server choose what was not offered.
        if let chosen = stream.information.tls?.applicationProtocol,
            !context.applicationProtocols.contains(chosen)
        {
            stream.close()
            throw .tls(
                TLSError(
                    .handshake(reason: "the server chose a protocol that was not offered"), host: serverName))
        }
        return stream
    }

    /// Opens TLS on an accepted socket as the server; else as `connect`.
    package static func accept(
        socket: Socket, carrier: TLSStream? = nil, remoteAddress: SocketAddress? = nil, context: TLSContext,
        deadline: MonotonicTime
    ) async throws(TransportError) -> TLSStream {
        let stream = try TLSStream(on: socket, carrier, remoteAddress) { () throws(TLSError) in
            try TLSEngine(server: socket, carrier: carrier, context: context)
        }
        try await stream.shakeHands(until: deadline)
        return stream
    }

    private func shakeHands(until deadline: MonotonicTime) async throws(TransportError) {
        do throws(TransportError) {
            while let pause = try withEngine({ engine, _ throws(TransportError) in try engine.handshake() }) {
                // Looked at here too: a peer that always sends a little more never makes the wait reach it.
                if MonotonicTime.now() >= deadline { throw TransportError.timedOut }
                switch pause {
                case .wantsRead: try await waitForArrival(until: deadline)
                case .wantsWrite: try await socket.wait(for: .write, until: deadline)
                case .wantsDecision: try await askForDecision(until: deadline)
                }
            }
            try withEngine { engine, state throws(TransportError) in
                state.information = state.information.secured(engine.information)
                state.requestedServerName = engine.requestedServerName
            }
        } catch {
            switch error {
            // Of silence, too: what swallows an offer says nothing.
            case .tls, .system, .timedOut:
                state.withLock { state in
                    guard let engine = state.engine else { return }
                    engine.forgetOfferedSessions()
                }
            case .interrupted, .closed, .resolution, .connect, .addressLost: break
            }
            close()
            throw error
        }
    }

    /// Asks the custom trust policy, without the lock and for no longer than the handshake may take.
    private func askForDecision(until deadline: MonotonicTime) async throws(TransportError) {
        let asked = try withEngine { engine, _ in engine.question }
        guard let asked else { throw .closed }
        let answer = OneShot<TrustDecision>()
        // A task of its own, which is cancelled at the deadline: the closure may know of none.
        let task = Task { answer.fulfil(await asked.evaluator.decide(asked.chain, asked.chain.host)) }
        defer { task.cancel() }
        let outcome = await answer.waitUnlessCancelled(until: deadline, on: socket.loop)
        switch outcome {
        case .value(let decision): try withEngine { engine, _ in engine.decide(decision) }
        case .timedOut: throw .timedOut
        case .interrupted: throw .interrupted
        }
    }

    /// Calls a closure with the engine, under the lock.
    private func withEngine<Value: Sendable>(
        _ body: (TLSEngine, inout State) throws(TransportError) -> Value
    ) throws(TransportError) -> Value {
        try state.withLock { state throws(TransportError) in
            guard let engine = state.engine else { throw .closed }
            return try body(engine, &state)
        }
    }

    // MARK: Bytes

    package func read(into buffer: UnsafeMutableRawBufferPointer) throws(TransportError) -> ReadOutcome {
        try withEngine { engine, state throws(TransportError) in
            if state.owesCloseNotify { state.owesCloseNotify = engine.shutdown() }
            state.holdsBytes = false
            // Cleared where OpenSSL may stop before it asks the socket, or an edge that does not help would make the
            // reader spin.
            if state.readNeedsWriting { _ = socket.readiness.beginRead() }
            var outcome = unsafe try engine.read(into: buffer)
            if case .paused(.wantsWrite) = outcome, needWriting(true, &state) {
                _ = socket.readiness.beginRead()
                outcome = unsafe try engine.read(into: buffer)
            }
            switch outcome {
            case .moved(let count):
                needWriting(state.owesCloseNotify, &state)
                state.holdsBytes = engine.hasPendingBytes || socket.readiness.isWorthReading
                return .bytes(count)
            case .paused(let pause):
                needWriting(pause == .wantsWrite || state.owesCloseNotify, &state)
                return .wouldBlock
            case .endOfStream(let isClean): return .endOfStream(isClean: isClean)
            }
        }
    }

    /// Notes whether reading needs the socket to take something first, and has the reader woken by that.
    /// - Returns: Whether that is new, so that an edge may have come unseen and the call is to be tried again.
    @discardableResult
    private func needWriting(_ isNeeded: Bool, _ state: inout State) -> Bool {
        guard state.readNeedsWriting != isNeeded else { return false }
        state.readNeedsWriting = isNeeded
        socket.readiness.letWritingWakeReader(isNeeded)
        return isNeeded
    }

    package func write(_ buffer: UnsafeRawBufferPointer) throws(TransportError) -> Int {
        try withEngine { engine, state throws(TransportError) in
            let piece = unsafe UnsafeRawBufferPointer(rebasing: buffer.prefix(TLSStream.writeLimit))
            switch unsafe try engine.write(piece) {
            case .moved(let count): return count
            case .paused:
                // Never for want of bytes to read: the handshake is over, and renegotiation is off.
                return 0
            case .endOfStream: throw .closed
            }
        }
    }

    package func shutdownWriting() {
        state.withLock { state in
            guard let engine = state.engine else { return }
            state.owesCloseNotify = engine.shutdown()
            if state.owesCloseNotify, needWriting(true, &state) { state.owesCloseNotify = engine.shutdown() }
        }
    }

    // MARK: Waiting

    package func waitUntilReadable(until deadline: MonotonicTime) async throws(TransportError) {
        guard state.withLock({ $0.holdsBytes }) else {
            try await waitForArrival(until: deadline)
            return
        }
        // No waiting, but a stream that was interrupted or closed still says so.
        do throws(TransportError) {
            try await socket.wait(for: .read, until: MonotonicTime(nanoseconds: 0))
        } catch {
            guard case .timedOut = error else { throw error }
        }
    }

    /// Waits until bytes have come from below; what lies between may hold some that the socket has told of before.
    private func waitForArrival(until deadline: MonotonicTime) async throws(TransportError) {
        if let carrier {
            try await carrier.waitUntilReadable(until: deadline)
        } else {
            try await socket.wait(for: .read, until: deadline)
        }
    }

    package func endIdleWatch() -> Bool {
        // What OpenSSL holds already makes no edge.
        let holdsBytes = state.withLock { $0.engine?.hasPendingBytes ?? true }
        let isStirred = carrier?.endIdleWatch() ?? socket.readiness.endIdleWatch()
        return isStirred || holdsBytes
    }

    package var readLatch: Readiness? {
        if state.withLock({ $0.holdsBytes }) { return nil }
        return carrier == nil ? socket.readiness : carrier?.readLatch
    }

    package var mayHaveBytes: Bool {
        // The same condition as that of the wait: else one would go on at once and the other find nothing.
        state.withLock { $0.holdsBytes || $0.readNeedsWriting || $0.engine == nil }
            || carrier?.mayHaveBytes ?? socket.readiness.isWorthReading
    }

    /// Tickets and key updates that came meanwhile are taken in and are no reason to give the stream up.
    package func probe() -> IdleState {
        state.withLock { state in
            guard let engine = state.engine else { return .unusable }
            do throws(TransportError) {
                guard case .paused = try engine.peek() else {
                    state.holdsBytes = true
                    return .unusable
                }
                return .quiet
            } catch {
                return .unusable
            }
        }
    }

    /// Renews this side's keys and asks the peer to renew its own (RFC 8446 §4.6.3); for test origins.
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
        end(notifying: false)
        socket.resetOnClose()
        socket.close()
    }

    /// Closes the stream without a `close_notify`, as a peer that is cut off; for test origins.
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

    // MARK: What is known

    package var information: ConnectionInformation { state.withLock { $0.information } }

    /// On the server's side: the name that the client asked for by SNI; `nil` when it sent none.
    package var requestedServerName: String? { state.withLock { $0.requestedServerName } }
}
