import MartletCore
import Synchronization

/// The bytes under a connection: an upgraded connection, or one in memory for tests. One task reads while another one
/// writes.
package protocol WebSocketTransport: Sendable {
    /// Returns the next bytes; empty at the end. Throws after ``close()``, and when the task is cancelled.
    func read(upTo byteCount: Int) async throws -> [UInt8]
    /// Writes all bytes. An error, also by cancellation, leaves the connection unusable.
    func write(_ bytes: [UInt8]) async throws
    /// Ends the writing direction.
    func closeWriting() async throws
    /// Closes the connection immediately; waiting reads and writes throw.
    func close()
}

/// A connection after its opening handshake. It runs in one task from ``run()`` until its end: a reader, which fills
/// the inbox as far as it has room; a writer of control frames, which never waits for the reader; and pings. Messages are
/// written by their senders.
final class WebSocketConnection: Sendable {
    /// The end of a connection as its user sees it.
    enum End: Hashable, Sendable {
        /// A closing handshake, started by the server, or by this client.
        case closed(WebSocketCloseCode, reason: String, byServer: Bool)
        case failed(WebSocketError)

        /// The error of sending after the end.
        var error: WebSocketError {
            switch self {
            case .closed(let code, let reason, _): .closed(code, reason: reason)
            case .failed(let error): error
            }
        }
    }

    private struct State {
        var inbox = Inbox()
        /// The end, as soon as it is known: no more messages are sent.
        var end: End?
        /// The timeout of the closing handshake, which starts with the end.
        var closing: Task<Void, Never>?
        /// Whether messages may still arrive: also after ``WebSocketConnection/startClosing(_:_:)``.
        var isReceiving = true
        /// Whether received messages are discarded: after a failure, or if the inbox is full while the connection closes.
        var isDiscarding = false
        /// Whether a task continues to read while the connection is closing, so that no message is discarded.
        var keepsMessages = false
        /// Whether the Close frame was written, or cannot be.
        var isCloseWritten = false
        /// The payloads of control frames to be written.
        var close: [UInt8]?
        var pongs: [[UInt8]] = []
        var pings: [[UInt8]] = []
        /// Pings that wait for their Pong frames, in the order of writing.
        var pinging: [(payload: [UInt8], turn: OneShot<Void>)] = []
        var lastPing: UInt64 = 0
        /// The task that waits for a message, and whether a task reads.
        var taker: OneShot<Void>?
        var isReading = false
        /// The reader's wait for room in the inbox.
        var room: OneShot<Void>?
        /// The number of reads that returned bytes, and of waits for room: both show that the server may be alive.
        var activity: UInt64 = 0
    }

    private let transport: any WebSocketTransport
    private let options: WebSocketOptions
    private let negotiation: DeflateNegotiation?
    private let writer: MessageWriter
    /// Held while a message is sent, from its first fragment to its last.
    private let messageLane = AsyncLane()
    /// Held while a frame is written.
    private let frameLane = AsyncLane()
    /// Guards the inbox, the control frames, and the end.
    private let state = Mutex(State())
    /// Counts the changes of the control frames to be written.
    private let controls = CurrentValue<UInt64>(0)
    private let isOver = CurrentValue(false)

    init(_ transport: any WebSocketTransport, _ options: WebSocketOptions, _ negotiation: DeflateNegotiation?) {
        (self.transport, self.options, self.negotiation) = (transport, options, negotiation)
        writer = MessageWriter(negotiation, options.compression)
    }

    /// The end of the connection; `nil` while it is open.
    var end: End? { state.withLock { $0.end } }

    // MARK: Running

    /// Runs the connection until it is closed.
    func run() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.writeControlFrames() }
            if options.pingInterval != nil { group.addTask { await self.keepAlive() } }
            await read()
            transport.close()
            group.cancelAll()
        }
        finish(.failed(.connectionLost("it was closed")))
        state.withLock { $0.closing }?.cancel()
        isOver.update { true }
    }

    private func read() async {
        do { try await receive() } catch let error as WebSocketError { fail(error) } catch { disconnect(.lost(error)) }
        let taker = state.withLock { state in
            state.isReceiving = false
            return state.taker.take()
        }
        taker?.fulfill(())
        // Both sides have said that no more messages follow, or the connection is closed. The server ends it first
        // (RFC 6455 §7.1.1).
        _ = await controls.next { [self] _ in state.withLock { $0.isCloseWritten } }
        try? await transport.closeWriting()
        while let bytes = try? await transport.read(upTo: 16 << 10), !bytes.isEmpty {}
    }

    /// Receives until the server's Close frame.
    private func receive() async throws {
        let limit = options.messageLimit.map { max(0, $0.bytes) } ?? .max
        let frameLimit = options.frameLimit.map { max(0, $0.bytes) } ?? .max
        var receiver = MessageParser(
            limits: MessageLimits(frameByteCount: frameLimit, messageByteCount: limit), inflater: negotiation?.inflater)
        while true {
            while let event = try receiver.next() {
                switch event {
                case .start, .data, .end: try await store(event)
                case .ping(let payload):
                    send { state in
                        // Only the last of several pings must be answered (RFC 6455 §5.5.3).
                        if state.pongs.count >= 32 { state.pongs.removeFirst() }
                        state.pongs.append(payload)
                    }
                case .pong(let payload): acknowledge(payload)
                case .close(let code, let reason):
                    finish(.closed(code, reason: reason, byServer: true))
                    // The reply has the same code; the reason is not repeated, because it may be a secret of the server.
                    return send { $0.close = code.payload() }
                }
            }
            // Once for all messages of a read.
            state.withLock { $0.taker.take() }?.fulfill(())
            let bytes = try await transport.read(upTo: 16 << 10)
            if bytes.isEmpty { throw TransportEnded() }
            state.withLock { $0.activity &+= 1 }
            receiver.feed(bytes)
        }
    }

    private struct TransportEnded: Error, CustomStringConvertible {
        var description: String { "the server closed it without a Close frame" }
    }

    /// Stores an event of a message once there is room; the caller resumes the task that waits for it. While the
    /// connection is closing, the first event without room and all later ones are discarded, so that the closing
    /// handshake does not depend on a reader.
    private func store(_ event: MessageParser.Event) async throws {
        while true {
            let (turn, taker) = state.withLock { state -> (OneShot<Void>?, OneShot<Void>?) in
                let isFull = self.isFull(state.inbox)
                if case .failed = state.end { state.isDiscarding = true }
                if isFull, state.end != nil, !state.keepsMessages { state.isDiscarding = true }
                if state.isDiscarding { return (nil, nil) }
                guard isFull else {
                    state.inbox.add(event)
                    return (nil, nil)
                }
                let turn = OneShot<Void>()
                state.room = turn
                state.activity &+= 1
                return (turn, state.taker.take())
            }
            taker?.fulfill(())
            guard let turn else { return }
            _ = await turn.waitUnlessCancelled()
            try Task.checkCancellation()
        }
    }

    private func isFull(_ inbox: Inbox) -> Bool { inbox.byteCount >= max(1, options.receiveBufferSize.bytes) }

    private func writeControlFrames() async {
        var seen: UInt64 = 0
        while let next = await controls.next(after: seen) {
            seen = next.version
            guard (try? await frameLane.acquire()) != nil else { return }
            let (pongs, pings, close) = state.withLock { state in
                defer { (state.pongs, state.pings) = ([], []) }
                return (state.pongs, state.pings, state.close)
            }
            var frames = pongs.flatMap { FrameHead.frame(.pong, $0) } + pings.flatMap { FrameHead.frame(.ping, $0) }
            if let close { frames += FrameHead.frame(.close, close) }
            do { if !frames.isEmpty { try await transport.write(frames) } } catch { disconnect(.lost(error)) }
            frameLane.release()
            // No frame follows a Close frame.
            if close != nil { return send { $0.isCloseWritten = true } }
        }
    }

    private func keepAlive() async {
        guard let interval = options.pingInterval.map({ max($0.bounded, .milliseconds(1)) }) else { return }
        var untilPing = interval
        /// The activity before the oldest ping that is not checked yet, and the rest of its timeout.
        var check: (activity: UInt64, left: Duration)?
        while true {
            let wait = min(untilPing, check?.left ?? untilPing)
            guard (try? await options.sleep(check?.left == wait ? .pong : .ping, wait)) != nil else { return }
            untilPing -= wait
            check?.left -= wait
            if let due = check, due.left <= .zero {
                let isSilent = state.withLock { $0.activity == due.activity && $0.room == nil && $0.end == nil }
                if isSilent { return disconnect(.pongTimedOut) }
                check = nil
            }
            guard untilPing <= .zero else { continue }
            untilPing = interval
            if check == nil { check = (state.withLock { $0.activity }, options.pongTimeout.bounded) }
            send { state in
                // A ping that is not written yet is enough.
                guard state.pings.isEmpty else { return }
                state.lastPing += 1
                state.pings.append(Self.pingPayload(state.lastPing))
            }
        }
    }

    // MARK: Ending

    /// Sets the end, unless there is one, and resumes all waiting tasks.
    private func finish(_ end: End) {
        let turns = state.withLock { state -> [OneShot<Void>?] in
            if state.end == nil {
                state.end = end
                // Unstructured, because an idle connection should not hold a task for it. It ends with the connection.
                state.closing = Task { [self] in
                    guard (try? await options.sleep(.close, options.closeTimeout.bounded)) != nil else { return }
                    disconnect(.connectionLost("the server did not close it"))
                }
            }
            // The messages before the end can still be read.
            defer { state.pinging = [] }
            return [state.taker.take(), state.room.take()] + state.pinging.map(\.turn)
        }
        for turn in turns { turn?.fulfill(()) }
        messageLane.close()
    }

    /// Ends the connection with an error, whose code is sent to the server (RFC 6455 §7.1.7).
    func fail(_ error: WebSocketError) {
        finish(.failed(error))
        send { $0.close = error.closeCode.payload() }
    }

    /// Closes the connection without a closing handshake.
    func abort() { disconnect(.connectionLost("it was cancelled")) }

    /// Closes the connection, without a Close frame from now on.
    private func disconnect(_ error: WebSocketError) {
        // Before the reader is resumed, which must not wait for room again.
        state.withLock { $0.isDiscarding = true }
        finish(.failed(error))
        transport.close()
        send { $0.isCloseWritten = true }
    }

    /// Starts the closing handshake, if the connection is open.
    /// - Throws: `.invalidArgument`.
    func startClosing(_ code: WebSocketCloseCode, _ reason: String = "", keepsMessages: Bool = false)
        throws(WebSocketError)
    {
        guard code.isAllowedInFrames || code == .noStatus, reason.utf8.count <= 123,
            reason.isEmpty || code != .noStatus
        else { throw .invalidArgument("the code \(code) or the reason cannot be sent in a Close frame") }
        if keepsMessages { state.withLock { $0.keepsMessages = true } }
        finish(.closed(code, reason: reason, byServer: false))
        send { $0.close = $0.close ?? code.payload(reason: reason) }
    }

    /// Waits for the end of the connection.
    func waitUntilOver() async throws {
        guard await isOver.becomesTrue() else {
            abort()
            throw CancellationError()
        }
    }

    /// Changes the control frames to be written.
    private func send(_ change: (inout State) -> Void) {
        state.withLock { change(&$0) }
        controls.change { $0 &+= 1 }
    }

    // MARK: Pings

    private static func pingPayload(_ number: UInt64) -> [UInt8] { Array("martlet \(number)".utf8) }

    private func acknowledge(_ payload: [UInt8]) {
        let turns = state.withLock { state -> [OneShot<Void>] in
            // A Pong frame for a ping also answers those before it (RFC 6455 §5.5.3).
            guard let last = state.pinging.firstIndex(where: { $0.payload == payload }) else { return [] }
            defer { state.pinging.removeFirst(last + 1) }
            return state.pinging[...last].map(\.turn)
        }
        for turn in turns { turn.fulfill(()) }
    }

    /// Sends a ping and waits for its Pong frame.
    func ping() async throws {
        let turn = OneShot<Void>()
        let error = state.withLock { state -> WebSocketError? in
            if let end = state.end { return end.error }
            state.lastPing += 1
            let payload = Self.pingPayload(state.lastPing)
            state.pinging.append((payload, turn))
            state.pings.append(payload)
            return nil
        }
        if let error { throw error }
        controls.change { $0 &+= 1 }
        guard case .value = await turn.waitUnlessCancelled() else {
            state.withLock { state in state.pinging.removeAll { $0.turn === turn } }
            throw CancellationError()
        }
        if let end { throw end.error }
    }

    // MARK: Messages

    /// Sends a whole message, in fragments.
    func send(_ message: WebSocketMessage) async throws {
        let bytes = message.bytes
        try await withMessageLane(of: message.kind) { send in
            for start in stride(from: 0, to: max(bytes.count, 1), by: fragmentByteCount) {
                let end = min(start + fragmentByteCount, bytes.count)
                try await send(bytes[start..<end], end == bytes.count)
            }
        }
    }

    /// Sends a message in pieces, each in one fragment, or in several ones.
    func send<Pieces: AsyncSequence>(_ kind: WebSocketMessage.Kind, _ pieces: Pieces) async throws
    where Pieces.Element: Sequence<UInt8> {
        try await withMessageLane(of: kind) { send in
            for try await piece in pieces {
                let bytes = Array(piece)
                for start in stride(from: 0, to: bytes.count, by: fragmentByteCount) {
                    try await send(bytes[start..<min(start + fragmentByteCount, bytes.count)], false)
                }
            }
            try await send([], true)
        }
    }

    private var fragmentByteCount: Int { max(1024, options.fragmentSize.bytes) }

    private func withMessageLane(
        of kind: WebSocketMessage.Kind,
        _ body: (_ send: (ArraySlice<UInt8>, _ isLast: Bool) async throws -> Void) async throws -> Void
    ) async throws {
        do { try await messageLane.acquire() } catch {
            try Task.checkCancellation()
            throw end?.error ?? error
        }
        defer { messageLane.release() }
        if let end { throw end.error }
        var hasStarted = false
        do {
            try await body { part, isLast in
                try Task.checkCancellation()
                hasStarted = true
                let frame = try await writer.frame(part, of: kind, isLast: isLast)
                try await frameLane.acquire()
                defer { frameLane.release() }
                if let end { throw end.error }
                do { try await transport.write(frame) } catch {
                    // The frame may be incomplete.
                    disconnect(.lost(error))
                    try Task.checkCancellation()
                    throw end?.error ?? .lost(error)
                }
            }
        } catch {
            // The encoder, too, is within a message.
            if hasStarted, end == nil { fail(.messageAbandoned) }
            throw error
        }
    }

    /// Waits until a closure can take a value from the inbox.
    /// - Parameter take: Returns the value; `nil` if it has not arrived.
    /// - Returns: `nil` at the end of the connection.
    func take<Value: Sendable>(_ take: (inout Inbox) throws(WebSocketError) -> Value?) async throws -> Value? {
        let isFree = state.withLock { state in
            defer { state.isReading = true }
            return !state.isReading
        }
        guard isFree else { throw WebSocketError.concurrentRead }
        defer { state.withLock { $0.isReading = false } }
        while true {
            try Task.checkCancellation()
            let (result, end, room, turn) = state.withLock {
                state -> (Result<Value?, WebSocketError>, End?, OneShot<Void>?, OneShot<Void>?) in
                let result = Result { () throws(WebSocketError) in try take(&state.inbox) }
                // After this client has closed, messages may arrive before the server's Close frame.
                let isLast = if case .closed(_, _, byServer: false) = state.end { !state.isReceiving } else { true }
                let end = isLast ? state.end : nil
                state.taker = if end == nil, case .success(.none) = result { OneShot() } else { nil }
                let room = isFull(state.inbox) ? nil : state.room.take()
                // The server had no chance to send while the buffer was full.
                if room != nil { state.activity &+= 1 }
                return (result, end, room, state.taker)
            }
            room?.fulfill(())
            if let value = try result.get() { return value }
            switch end {
            case .closed(let code, let reason, true):
                let isRegular = [.normalClosure, .goingAway, .noStatus].contains(code)
                if !isRegular { throw WebSocketError.closed(code, reason: reason) }
                return nil
            case .closed(_, _, false): return nil
            case .failed(let error): throw error
            case nil: _ = await turn?.waitUnlessCancelled()
            }
        }
    }
}
