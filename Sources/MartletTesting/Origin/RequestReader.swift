import MartletTransport
import MartletWire
import Synchronization

/// Reads the requests of one connection: heads for the origin, bodies for its handlers.
final class RequestReader: Sendable {
    private struct State: ~Copyable {
        var machine = ServerMachine()
        /// The position of the current request on its connection. Bodies of earlier requests can no longer be read.
        var serial = 0
        var isComplete = true
        var isReading = false
        /// Whether a handler has started to read the body.
        var wasRead = false
        var record = 0
        var isHandling = false
        /// Whether the client waits for a 100 that was not sent yet.
        var awaits100 = false
        var trailers: FieldBlock?
        var remaining: UInt64?
    }

    private typealias Step = (event: ServerMachine.Event, payload: [UInt8])

    private let channel: OriginChannel
    private let state = Mutex(State())
    /// Called when a handler has read its whole request: from then on the client can be observed.
    private let onComplete: @Sendable () -> Void

    init(channel: OriginChannel, onComplete: @escaping @Sendable () -> Void) {
        (self.channel, self.onComplete) = (channel, onComplete)
    }

    private func step() throws(WireError) -> Step {
        try state.withLock { state throws(WireError) in
            let step = try channel.withUnread { span throws(WireError) -> (consumed: Int, value: Step) in
                let received = try state.machine.receive(span)
                var payload: [UInt8] = []
                if case .body(let range) = received.event { payload = OriginChannel.copy(range, of: span) }
                return (received.consumed, (received.event, payload))
            }
            switch step.event {
            case .head(_, let framing):
                state.isComplete = false
                state.awaits100 = state.machine.isExpectingContinue
                state.trailers = nil
                state.remaining = framing.declaredLength
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
    /// - Returns: The head, and the body to be read; `nil` if the client has closed the connection.
    func nextHead() async throws -> (RequestHead, OriginRequestBody)? {
        state.withLock { state in
            if state.serial > 0 { state.machine.nextRequest() }
            state.serial += 1
            (state.isHandling, state.wasRead) = (true, false)
        }
        while true {
            let step = try step()
            if case .head(let head, let framing) = step.event {
                if framing == .none || framing == .length(0) { _ = try self.step() }
                let serial = state.withLock { $0.serial }
                return (head, OriginRequestBody(reader: self, serial: serial, declaredLength: framing.declaredLength))
            }
            guard try await fill() else { return nil }
        }
    }

    /// Waits for bytes.
    /// - Returns: `false` if the client has closed the connection between two requests.
    private func fill(until deadline: MonotonicTime = .distantFuture) async throws -> Bool {
        if try await channel.fill(until: deadline) { return true }
        return try state.withLock { state throws(WireError) in try state.machine.receiveEndOfStream() } != nil
    }

    /// The next piece of a request's body; `nil` at its end.
    func nextChunk(serial: Int) async throws -> [UInt8]? {
        let (mayRead, awaits100) = state.withLock { state -> (Bool, Bool) in
            guard state.serial == serial, !state.isReading else { return (false, false) }
            (state.isReading, state.wasRead) = (true, true)
            return (true, state.awaits100 && !state.isComplete)
        }
        guard mayRead else { throw OriginError.bodyNotReadable }
        defer { state.withLock { $0.isReading = false } }
        do {
            if awaits100 {
                state.withLock { $0.awaits100 = false }
                try await channel.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            }
            let chunk = try await nextChunk()
            if chunk == nil, state.withLock({ $0.isHandling }) { onComplete() }
            return chunk
        } catch let error as WireError { throw OriginError.malformedRequest("\(error)") } catch let error
            as TransportError
        { throw OriginError.disconnected("\(error)") }
    }

    private func nextChunk(until deadline: MonotonicTime = .distantFuture) async throws -> [UInt8]? {
        while !isComplete {
            let step = try step()
            switch step.event {
            case .body:
                channel.recorder.record(step.payload, of: state.withLock { $0.record })
                return step.payload
            case .end: break
            case .head, .needMoreBytes: _ = try await fill(until: deadline)
            }
        }
        return nil
    }

    func send(_ interim: InterimResponse) async throws {
        var encoder = ResponseEncoder()
        do throws(WireError) {
            try encoder.begin(status: interim.status, reason: StatusPhrase.of(interim.status))
            for (name, value) in interim.headers { try encoder.field(name: name, value: value) }
        } catch { throw OriginError.malformedRequest("\(error)") }
        encoder.end()
        if interim.status == 100 { state.withLock { $0.awaits100 = false } }
        try await channel.respond(encoder.bytes)
    }

    /// Records that the handler has returned a response. Its body may still read the request.
    func endHandling() { state.withLock { $0.isHandling = false } }

    var isComplete: Bool { state.withLock { $0.isComplete } }

    /// Whether the client allows the connection to persist.
    var persists: Bool { state.withLock { $0.machine.persists } }

    /// Whether the rest of the body arrives without a 100, and is short enough to be read and discarded.
    /// - Parameter limit: The maximum number of bytes to discard. A chunked body is assumed to be short enough.
    func canDrain(limit: UInt64) -> Bool {
        state.withLock { state in state.isComplete || !state.awaits100 && (state.remaining ?? 0) <= limit }
    }

    /// Reads and discards the rest of the body.
    /// - Returns: Whether it ended within the limit, in bytes.
    @discardableResult func drain(limit: UInt64, until deadline: MonotonicTime = .distantFuture) async -> Bool {
        var count: UInt64 = 0
        while let chunk = try? await nextChunk(until: deadline) {
            count += UInt64(chunk.count)
            if count > limit { return false }
        }
        return isComplete
    }

    /// Sets the record of the current request. Its body is added to the record as it is read.
    func startRecording(_ record: Int) { state.withLock { $0.record = record } }

    /// Reads a body that the handler did not read, if its declared length is short. This happens before the response is
    /// sent, so that a test that has the response finds the body recorded. The wait is limited to a second.
    /// - Parameter isBeforeFault: Whether a fault follows. A long or chunked body is then read as far as it has
    ///   arrived, without waiting.
    func readIgnoredBody(limit: UInt64, isBeforeFault: Bool) async {
        let isShort = state.withLock { $0.remaining != nil } && canDrain(limit: limit)
        guard state.withLock({ !$0.wasRead }), isShort || isBeforeFault else { return }
        // A deadline at zero has passed already: only bytes that have arrived are read.
        let deadline = isShort ? MonotonicTime.now().advanced(by: .seconds(1)) : MonotonicTime(nanoseconds: 0)
        await drain(limit: limit, until: deadline)
    }

    func trailers(serial: Int) -> OriginFields {
        state.withLock { state in
            guard state.serial == serial, let trailers = state.trailers else { return [:] }
            return OriginFields(trailers)
        }
    }
}

extension BodyFraming {
    /// The length of a request's body, if it is declared.
    var declaredLength: UInt64? {
        switch self {
        case .none, .untilClose: 0
        case .length(let length): length
        case .chunked: nil
        }
    }
}
