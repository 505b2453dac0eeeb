package import MartletTransport
package import MartletWire
import Synchronization

/// A connection that speaks HTTP/1.1: its stream, the client's machine, and the bytes received and not yet used.
///
/// One exchange at a time owns it. Each step below runs whole under the lock, and never waits; the exchange waits in
/// between.
package final class HTTP1Connection: Sendable {
    private struct State: ~Copyable {
        var machine: ClientMachine
        var buffer = ReceiveBuffer()
        var pending = Pending()
        var trailers: FieldBlock?
        var isRaw = false
    }

    /// What the machine has told of and the consumer has not had room for.
    private struct Pending {
        /// Bytes of payload at the start of the buffer.
        var payload = 0
        /// Bytes of framing behind them, already accounted for.
        var framing = 0
    }

    /// The bytes' way.
    package let stream: any ByteStream
    /// When the parts of opening it were done.
    package let timings: DialTimings
    /// What a proxy answered to CONNECT, where it leads through a tunnel of one.
    package let tunnelHeads: [ResponseHead]
    /// Guards the machine and the buffer: the exchange's reader, its writer (when the request is out), and the pool
    /// between exchanges.
    private let state: Mutex<State>
    /// When the last exchange ended, in nanoseconds of the monotonic clock.
    private let concluded = Atomic<UInt64>(0)
    private let isAddressLost = Atomic(false)
    private let currentUse = Atomic(ConnectionUse.sending.rawValue)

    /// A connection on an open stream.
    package init(
        stream: any ByteStream, timings: DialTimings, tunnelHeads: [ResponseHead] = [], limits: WireLimits
    ) {
        self.stream = stream
        self.timings = timings
        self.tunnelHeads = tunnelHeads
        state = Mutex(State(machine: ClientMachine(limits: limits)))
    }

    /// One step towards the head of the response.
    enum HeadStep: Sendable {
        case wait
        case informational(ResponseHead)
        case head(ResponseHead, BodyFraming)
        case failure(ExchangeError.Cause)
    }

    /// One step of the body.
    enum BodyStep: Sendable {
        /// So many bytes were put into the buffer, and whether they were the last.
        case bytes(Int, isLast: Bool)
        case wait
        case end
        /// The stream ended, and with it a body that lasts until then.
        case closed
        case failure(ExchangeError.Cause)
    }

    /// Whether an exchange has ended on it.
    package var hasCarriedExchange: Bool { concluded.load(ordering: .relaxed) != 0 }

    /// Ends the connection, whoever uses it: its address of this machine is gone.
    func loseAddress() {
        isAddressLost.store(true, ordering: .releasing)
        stream.close()
    }

    /// Why the connection was closed on this side, where it was not its user who closed it.
    var lossOfAddress: TransportError? { isAddressLost.load(ordering: .acquiring) ? .addressLost : nil }

    /// The purpose it is in use for, for errors of requests that wait for it.
    var use: ConnectionUse {
        get { ConnectionUse(rawValue: currentUse.load(ordering: .relaxed)) ?? .sending }
        set { currentUse.store(newValue.rawValue, ordering: .relaxed) }
    }

    // MARK: The request

    /// Begins an exchange.
    func begin(_ request: ExchangeRequest) {
        use = .sending
        state.withLock { state in
            state.trailers = nil
            state.isRaw = request.isRaw
            state.machine.startRequest(
                method: request.method, expectsContinue: request.expectsContinue,
                wantsKeepAlive: request.wantsKeepAlive, version: request.version,
                ignoresLength: request.ignoresLength)
        }
    }

    /// Notes that the request is out.
    func requestFinished() {
        if use == .sending { use = .awaitingResponse }
        state.withLock { $0.machine.requestFinished() }
    }

    /// Notes that the request will not be completed.
    func requestAborted() { state.withLock { $0.machine.requestAborted() } }

    // MARK: The response

    /// Tries to get on to a head.
    func stepHead() -> HeadStep {
        state.withLock { state in HTTP1Connection.stepHead(&state.machine, &state.buffer, stream) }
    }

    private static func stepHead(
        _ machine: inout ClientMachine, _ buffer: inout ReceiveBuffer, _ stream: any ByteStream
    ) -> HeadStep {
        do throws(WireError) {
            while true {
                let received = try buffer.withUnread { unread throws(WireError) in try machine.receive(unread)
                }
                buffer.consume(received.consumed)
                switch received.event {
                case .informational(let head): return .informational(head)
                case .head(let head, let framing): return .head(head, framing)
                case .body, .end: return .failure(.wire(WireError(.illegalEvent, at: 0)))
                case .needMoreBytes: break
                }
                // No memory for a look that is known to find nothing.
                if buffer.isEmpty, !stream.mayHaveBytes { return .wait }
                switch fill(&buffer, atLeast: 4096, stream) {
                case .success(.bytes): continue
                case .success(.wouldBlock):
                    if buffer.isEmpty { buffer.release() }
                    return .wait
                case .success(.endOfStream(let isClean)):
                    _ = try machine.receiveEndOfStream(isClean: isClean)
                    return .failure(.wire(WireError(.emptyResponse, at: 0)))
                case .failure(let error): return .failure(.transport(error))
                }
            }
        } catch {
            return .failure(.wire(error))
        }
    }

    private static func fill(
        _ buffer: inout ReceiveBuffer, atLeast minimum: Int, _ stream: any ByteStream
    ) -> Result<ReadOutcome, TransportError> {
        do throws(TransportError) {
            return .success(
                unsafe try buffer.fill(atLeast: minimum) { free throws(TransportError) in
                    let outcome = unsafe try stream.read(into: free)
                    if case .bytes(let count) = outcome { return (count, outcome) }
                    return (0, outcome)
                })
        } catch {
            return .failure(error)
        }
    }

    /// Tries to get more of the body into a buffer, which is not empty.
    func stepBody(into target: ReceiveTarget) -> BodyStep {
        state.withLock { state in
            let buffer = unsafe target.buffer
            return unsafe HTTP1Connection.stepBody(
                &state.machine, &state.buffer, &state.pending, &state.trailers, isRaw: state.isRaw, stream,
                buffer)
        }
    }

    private static func stepBody(
        _ machine: inout ClientMachine, _ buffer: inout ReceiveBuffer, _ pending: inout Pending,
        _ trailers: inout FieldBlock?, isRaw: Bool, _ stream: any ByteStream,
        _ target: UnsafeMutableRawBufferPointer
    ) -> BodyStep {
        var filled = 0
        do throws(WireError) {
            while true {
                let count = min(pending.payload, target.count - filled)
                if count > 0 {
                    unsafe buffer.copy(
                        0..<count, into: UnsafeMutableRawBufferPointer(rebasing: target[filled...]))
                    buffer.consume(count)
                    filled += count
                    pending.payload -= count
                }
                if pending.payload > 0 { return .bytes(filled, isLast: false) }
                buffer.consume(pending.framing)
                pending.framing = 0
                if isRaw, machine.isResponseFinished {
                    // What ended the response went out as payload; what follows belongs to no response.
                    return filled > 0 ? .bytes(filled, isLast: true) : .end
                }
                let received = try buffer.withUnread { unread throws(WireError) in try machine.receive(unread)
                }
                if isRaw, received.consumed > 0 {
                    // Framing is understood as ever, and handed over like payload.
                    if case .end(let fields) = received.event {
                        trailers = fields
                        machine.finish(leftoverByteCount: buffer.count - received.consumed)
                    }
                    pending = Pending(payload: received.consumed, framing: 0)
                    continue
                }
                switch received.event {
                case .body(let range):
                    buffer.consume(range.lowerBound)
                    pending = Pending(payload: range.count, framing: received.consumed - range.upperBound)
                    continue
                case .end(let fields):
                    trailers = fields
                    buffer.consume(received.consumed)
                    machine.finish(leftoverByteCount: buffer.count)
                    return filled > 0 ? .bytes(filled, isLast: true) : .end
                case .needMoreBytes: buffer.consume(received.consumed)
                case .head, .informational: return .failure(.wire(WireError(.illegalEvent, at: 0)))
                }
                if filled > 0 { return .bytes(filled, isLast: false) }
                switch unsafe try receive(&machine, &buffer, isRaw: isRaw, stream, target) {
                case .again: continue
                case .step(let step): return step
                }
            }
        } catch {
            // What came before the fault is delivered first; the machine throws the same again on the next step.
            return filled > 0 ? .bytes(filled, isLast: false) : .failure(.wire(error))
        }
    }

    private enum Receiving {
        case again
        case step(BodyStep)
    }

    /// Reads from the stream: straight into the target where what comes is payload for certain, else into the buffer.
    private static func receive(
        _ machine: inout ClientMachine, _ buffer: inout ReceiveBuffer, isRaw: Bool, _ stream: any ByteStream,
        _ target: UnsafeMutableRawBufferPointer
    ) throws(WireError) -> Receiving {
        let direct = machine.directPayloadByteCount
        let outcome: Result<ReadOutcome, TransportError>
        let goesDirect =
            !isRaw && buffer.isEmpty && direct > 0 && (direct >= UInt64(target.count / 2) || direct >= 32768)
        if goesDirect {
            let limit = Int(min(UInt64(target.count), direct))
            do throws(TransportError) {
                outcome = unsafe .success(
                    try stream.read(into: UnsafeMutableRawBufferPointer(rebasing: target[..<limit])))
            } catch {
                outcome = .failure(error)
            }
        } else {
            outcome = fill(&buffer, atLeast: 32 * 1024, stream)
        }
        switch outcome {
        case .success(.bytes(let count)):
            guard goesDirect else { return .again }
            if case .end = machine.receivedDirectly(count) {
                machine.finish(leftoverByteCount: buffer.count)
                return .step(.bytes(count, isLast: true))
            }
            return .step(.bytes(count, isLast: false))
        case .success(.wouldBlock): return .step(.wait)
        case .success(.endOfStream(let isClean)):
            _ = try machine.receiveEndOfStream(isClean: isClean)
            return .step(.closed)
        case .failure(let error): return .step(.failure(.transport(error)))
        }
    }

    // MARK: Between exchanges

    /// What the end of an exchange says about the connection.
    struct Verdict: Sendable {
        var isReusable: Bool
        /// Nanoseconds, as the server said.
        var keepAliveTimeout: UInt64?
    }

    /// Ends the exchange and gives the buffer's memory back.
    func conclude(at now: MonotonicTime) -> Verdict {
        concluded.store(now.nanoseconds, ordering: .relaxed)
        return state.withLock { state in
            let isReusable = state.machine.isReusable && state.buffer.isEmpty
            state.buffer.release()
            state.pending = Pending()
            let seconds = state.machine.keepAliveTimeout.map { UInt64(clamping: $0) }
            return Verdict(
                isReusable: isReusable,
                keepAliveTimeout: seconds.map { $0.multipliedReportingOverflow(by: 1_000_000_000) }
                    .map { $0.overflow ? .max : $0.partialValue })
        }
    }

    /// How long after an exchange the next one may follow without a look at the socket, in nanoseconds.
    private static let followUp: UInt64 = 50_000

    /// Whether it is fit for another exchange: open, and nothing has come that nobody asked for (RFC 9112 §9.3).
    ///
    /// A look at the socket is a system call. It is left out where the last exchange has ended just now and no edge has
    /// come since: whatever is sent in those microseconds could as well come right after the look.
    ///
    /// But an end that came in one segment with the response makes no edge of its own. So it is not left out for a request
    /// that may not be sent again.
    ///
    /// It is not watched any more from now on.
    /// - Parameter mustLook: Whether the look is never left out.
    func isQuiet(at now: MonotonicTime, mustLook: Bool = false) -> Bool {
        let hasReadEdge = stream.endIdleWatch()
        if mustLook { return stream.probe() == .quiet }
        let concluded = concluded.load(ordering: .relaxed)
        if !hasReadEdge, now.nanoseconds < concluded &+ HTTP1Connection.followUp { return true }
        return stream.probe() == .quiet
    }

    /// Whether the response is complete.
    var isResponseFinished: Bool { state.withLock { $0.machine.isResponseFinished } }

    /// The fields that came behind the body, once it is complete.
    var trailers: FieldBlock? { state.withLock { $0.trailers } }

    /// Reads and throws away what is left of a body, as far as it has come, without waiting.
    /// - Parameter left: How many bytes may still be taken.
    /// - Returns: Whether it came to its end within the limit; `nil` when more must be waited for.
    func drainReceived(limit left: inout Int) -> Bool? {
        while true {
            let step = unsafe withUnsafeTemporaryAllocation(byteCount: 8192, alignment: 16) { buffer in
                unsafe stepBody(into: ReceiveTarget(buffer))
            }
            switch step {
            case .bytes(let count, let isLast):
                if isLast { return true }
                left -= count
                if left < 0 { return false }
            case .end, .closed: return true
            case .failure: return false
            case .wait: return nil
            }
        }
    }

    /// Reads and throws away what is left of a body.
    /// - Returns: Whether it came to its end within the limit and the time.
    func drain(limit: Int, until deadline: MonotonicTime) async -> Bool {
        var left = limit
        while true {
            if let isDrained = drainReceived(limit: &left) { return isDrained }
            if MonotonicTime.now() >= deadline { return false }
            do throws(TransportError) {
                try await stream.waitUntilReadable(until: deadline)
            } catch {
                return false
            }
        }
    }

    /// Whether a byte of the current response has come.
    var hasReceivedAnyByte: Bool { state.withLock { $0.machine.hasReceivedAnyByte } }

    /// How many bytes the body can have left at most: the rest of a length, else as many as can be told.
    var payloadByteCountBound: Int {
        state.withLock { state in
            guard let left = state.machine.remainingLength, !state.isRaw else { return .max }
            return Int(clamping: left) &+ state.pending.payload
        }
    }

    /// How much of the body is certainly still to come without framing; `nil` when that is not known.
    var remainingPayload: UInt64? {
        let count = state.withLock { $0.machine.directPayloadByteCount }
        return count == .max ? nil : count
    }
}
