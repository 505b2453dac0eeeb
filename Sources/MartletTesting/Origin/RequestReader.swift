import MartletTransport
import MartletWire
import Synchronization

/// Reads the requests of one connection: heads for the origin, bodies for its handlers.
final class RequestReader: Sendable {
    /// A head and how its body is framed.
    struct Head: Sendable {
        let head: RequestHead
        let framing: BodyFraming
        let serial: Int
    }

    private struct State: ~Copyable {
        var machine = ServerMachine()
        /// The number of the request on this connection; a body's reader with another number came too late.
        var serial = 0
        var isComplete = true
        var isReading = false
        /// Whether a handler is at work on the request.
        var isAwaitingAnswer = false
        /// Whether the client waits for a 100 that was not sent yet.
        var owesContinue = false
        var trailers: FieldBlock?
        var remaining: UInt64?
    }

    private struct Step: Sendable {
        let event: ServerMachine.Event
        let payload: [UInt8]
    }

    private let channel: OriginChannel
    private let state = Mutex(State())
    /// Called when a handler has read its request to the end, from when on the client's leaving can be
    /// watched for.
    private let onComplete: @Sendable () -> Void

    init(channel: OriginChannel, onComplete: @escaping @Sendable () -> Void) {
        self.channel = channel
        self.onComplete = onComplete
    }

    private func step() throws(WireError) -> Step {
        try state.withLock { state throws(WireError) in
            let step = try channel.withUnread { span throws(WireError) -> (consumed: Int, value: Step) in
                let received = try state.machine.receive(span)
                var payload: [UInt8] = []
                if case .body(let range) = received.event { payload = OriginChannel.copy(range, of: span) }
                return (received.consumed, Step(event: received.event, payload: payload))
            }
            switch step.event {
            case .head(_, let framing):
                state.isComplete = false
                state.owesContinue = state.machine.isExpectingContinue
                state.trailers = nil
                state.remaining =
                    switch framing {
                    case .none, .untilClose: 0
                    case .length(let length): length
                    case .chunked: nil
                    }
            case .body: state.remaining? -= UInt64(step.payload.count)
            case .end(let trailers):
                state.isComplete = true
                state.trailers = trailers
            case .needMoreBytes: break
            }
            return step
        }
    }

    /// Waits for the next request's head.
    /// - Returns: `nil` when the client has closed the connection.
    func nextHead() async throws -> Head? {
        state.withLock { state in
            if state.serial > 0 { state.machine.nextRequest() }
            state.serial += 1
            state.isAwaitingAnswer = true
        }
        while true {
            let step = try step()
            switch step.event {
            case .head(let head, let framing):
                if framing == .none || framing == .length(0) { _ = try self.step() }
                return Head(head: head, framing: framing, serial: state.withLock { $0.serial })
            case .needMoreBytes, .body, .end: guard try await fill() else { return nil }
            }
        }
    }

    /// Waits for bytes.
    /// - Returns: `false` when the client has ended between two requests.
    private func fill() async throws -> Bool {
        if try await channel.fill() { return true }
        return try state.withLock { state throws(WireError) in try state.machine.receiveEndOfStream() } != nil
    }

    // MARK: The body

    /// The next piece of a request's body; `nil` at its end.
    func nextChunk(serial: Int) async throws -> [UInt8]? {
        let (mayRead, owesContinue) = state.withLock { state -> (Bool, Bool) in
            guard state.serial == serial, !state.isReading else { return (false, false) }
            state.isReading = true
            return (true, state.owesContinue && !state.isComplete)
        }
        guard mayRead else { throw OriginError.bodyNotReadable }
        defer { state.withLock { $0.isReading = false } }
        do {
            if owesContinue { try await sendContinue() }
            let chunk = try await nextChunk()
            if chunk == nil, state.withLock({ $0.isAwaitingAnswer }) { onComplete() }
            return chunk
        } catch let error as WireError {
            throw OriginError.malformedRequest("\(error)")
        } catch let error as TransportError {
            throw OriginError.disconnected("\(error)")
        }
    }

    private func nextChunk() async throws -> [UInt8]? {
        while !isComplete {
            let step = try step()
            switch step.event {
            case .body: return step.payload
            case .end: break
            case .head, .needMoreBytes: _ = try await fill()
            }
        }
        return nil
    }

    private func sendContinue() async throws(TransportError) {
        state.withLock { $0.owesContinue = false }
        try await channel.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
    }

    /// Notes that the handler has answered; its response's body may still read on.
    func answered() { state.withLock { $0.isAwaitingAnswer = false } }

    /// Notes that a 100 was sent otherwise.
    func continueWasSent() { state.withLock { $0.owesContinue = false } }

    /// Whether the request was read to its end.
    var isComplete: Bool { state.withLock { $0.isComplete } }

    /// Whether the client asks for the connection to live on.
    var persists: Bool { state.withLock { $0.machine.persists } }

    /// Whether what is left of the body will come without a further word, and is short enough to be read
    /// away.
    /// - Parameter limit: The most bytes worth reading; a chunked body is tried.
    func canDrain(limit: UInt64) -> Bool {
        state.withLock { state in state.isComplete || !state.owesContinue && (state.remaining ?? 0) <= limit }
    }

    /// Reads the rest of the body away.
    /// - Returns: Whether its end came within the limit, in bytes.
    func drain(limit: UInt64) async -> Bool {
        var count: UInt64 = 0
        do {
            while let chunk = try await nextChunk() {
                count += UInt64(chunk.count)
                if count > limit { return false }
            }
            return true
        } catch {
            return false
        }
    }

    /// The fields behind a request's body.
    func trailers(serial: Int) -> OriginFields {
        state.withLock { state in
            guard state.serial == serial, let trailers = state.trailers else { return [:] }
            return OriginFields(trailers)
        }
    }
}
