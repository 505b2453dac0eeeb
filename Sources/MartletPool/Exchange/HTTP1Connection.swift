package import MartletTransport
package import MartletWire
import Synchronization

/// An HTTP/1.1 connection: its stream, the client's machine, and the received bytes that are not used yet. One exchange
/// at a time owns the connection. Each step runs under the lock; the exchange waits between steps.
package final class HTTP1Connection: Sendable {
    package let stream: any ByteStream
    /// The times of the steps that opened the connection.
    package let timings: DialTimings
    /// The heads of a proxy's responses to CONNECT; empty without a tunnel.
    package let tunnelHeads: [ResponseHead]
    /// Shared by the exchange's reader, its writer at the end of the request, and the pool between exchanges.
    private let state: Mutex<State>
    /// The end of the last exchange, in nanoseconds of the monotonic clock.
    private let lastExchangeEnd = Atomic<UInt64>(0)
    private let isAddressLost = Atomic(false)
    private let currentUse = Atomic(ConnectionUse.sending.rawValue)
    /// The code point of the service class that the last exchange set; 255 for the class of the socket's options.
    private let codePoint = Atomic<UInt8>(.max)

    package init(stream: any ByteStream, timings: DialTimings, tunnelHeads: [ResponseHead] = [], limits: WireLimits) {
        (self.stream, self.timings, self.tunnelHeads) = (stream, timings, tunnelHeads)
        state = Mutex(State(machine: ClientMachine(limits: limits)))
    }

    /// Whether an exchange has ended on the connection.
    package var hasCarriedExchange: Bool { lastExchangeEnd.load(ordering: .relaxed) != 0 }

    /// Closes the connection, even if it is in use, because this machine has lost its local address.
    func closeForLostAddress() {
        isAddressLost.store(true, ordering: .releasing)
        stream.close()
    }

    /// `.addressLost` if the connection was closed because its local address was lost; else `nil`.
    var localAddressError: TransportError? { isAddressLost.load(ordering: .acquiring) ? .addressLost : nil }

    /// The current use of the connection, for errors of requests that wait for it.
    var use: ConnectionUse {
        get { ConnectionUse(rawValue: currentUse.load(ordering: .relaxed)) ?? .sending }
        set { currentUse.store(newValue.rawValue, ordering: .relaxed) }
    }

    /// Marks the packets of the next exchange.
    /// - Parameter usual: The class that the socket was opened with.
    package func mark(_ serviceClass: ServiceClass?, or usual: ServiceClass?) {
        let wanted = serviceClass.map { UInt8(truncatingIfNeeded: $0.codePoint) } ?? .max
        guard codePoint.load(ordering: .relaxed) != wanted else { return }
        codePoint.store(wanted, ordering: .relaxed)
        stream.mark(serviceClass ?? usual ?? .bestEffort)
    }

    // MARK: The exchange

    func begin(_ request: ExchangeRequest) {
        use = .sending
        state.withLock { state in
            state.trailers = nil
            state.isRaw = request.isRaw
            state.machine.startRequest(
                method: request.method, wantsKeepAlive: request.wantsKeepAlive, version: request.version,
                ignoresLength: request.ignoresLength, acceptsProgress: request.acceptsProgress,
                acceptsUpgrade: request.acceptsUpgrade)
        }
    }

    /// Records that the request is completely sent.
    func requestFinished() {
        if use == .sending { use = .awaitingResponse }
        state.withLock { $0.machine.requestFinished() }
    }

    func requestAborted() { state.withLock { $0.machine.requestAborted() } }

    /// Tries to read the next head.
    func stepHead() -> HeadStep { state.withLock { $0.stepHead(stream) } }

    /// Tries to read more of the body into a buffer, which must not be empty.
    func stepBody(into target: ReceiveTarget) -> BodyStep {
        state.withLock { unsafe $0.stepBody(stream, into: target.buffer) }
    }

    var isResponseFinished: Bool { state.withLock { $0.machine.isResponseFinished } }

    /// The fields after the body, once it is complete.
    var trailers: Trailers? { state.withLock { $0.trailers } }

    var hasReceivedAnyByte: Bool { state.withLock { $0.machine.hasReceivedAnyByte } }

    /// An upper bound of the remaining bytes of the body: the rest of a known length, else `Int.max`.
    var payloadByteCountBound: Int {
        state.withLock { state in
            guard let left = state.machine.remainingLength, !state.isRaw else { return .max }
            let (bound, isOverflow) = Int(clamping: left).addingReportingOverflow(state.pending.payload)
            return isOverflow ? .max : bound
        }
    }

    /// The number of bytes of the body that follow without framing; `nil` if it is not known.
    var remainingPayload: UInt64? {
        let count = state.withLock { $0.machine.directPayloadByteCount }
        return count == .max ? nil : count
    }

    /// Reads and discards the bytes of the body that have been received, without waiting.
    /// - Parameter left: The number of bytes that may still be read.
    /// - Returns: Whether the body ended within the limit; `nil` if more bytes must arrive.
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

    /// Reads and discards the rest of a body.
    /// - Returns: Whether the body ended within the limit and the time.
    func drain(limit: Int, until deadline: MonotonicTime) async -> Bool {
        var left = limit
        while true {
            if let isDrained = drainReceived(limit: &left) { return isDrained }
            if MonotonicTime.now() >= deadline { return false }
            do throws(TransportError) { try await stream.waitUntilReadable(until: deadline) } catch { return false }
        }
    }

    // MARK: Between exchanges

    /// Ends the exchange, and releases the memory of the buffer.
    /// - Returns: Whether the connection may be reused, and the server's `Keep-Alive: timeout` in nanoseconds.
    func finishExchange(at now: MonotonicTime) -> (isReusable: Bool, keepAliveTimeout: UInt64?) {
        lastExchangeEnd.store(now.nanoseconds, ordering: .relaxed)
        return state.withLock { state in
            let isReusable = state.machine.isReusable && state.buffer.isEmpty
            state.buffer.release()
            state.pending = Pending()
            let timeout = state.machine.keepAlive.timeout.map {
                let (nanoseconds, overflow) = UInt64(clamping: $0).multipliedReportingOverflow(by: 1_000_000_000)
                return overflow ? .max : nanoseconds
            }
            return (isReusable, timeout)
        }
    }

    /// The maximum time between two exchanges without a check of the socket, in nanoseconds.
    private static let followUp: UInt64 = 50_000

    /// Whether the connection can carry another exchange: open, without unsolicited bytes (RFC 9112 §9.3). Stops
    /// observing the idle stream.
    ///
    /// The check of the socket is a system call. It is omitted if the last exchange has just ended and the stream has
    /// not become readable since: bytes sent in those microseconds could equally arrive right after the check. But an
    /// end of stream in the same segment as the response does not make the stream readable again.
    /// - Parameter alwaysChecksSocket: Whether the check is never omitted, for a request that must not be sent again.
    func isQuiet(at now: MonotonicTime, alwaysChecksSocket: Bool = false) -> Bool {
        let hasReadEdge = stream.stopObservingIdle()
        let lastExchangeEnd = lastExchangeEnd.load(ordering: .relaxed)
        if !alwaysChecksSocket, !hasReadEdge, now.nanoseconds < lastExchangeEnd &+ HTTP1Connection.followUp {
            return true
        }
        return stream.probe() == .quiet
    }
}

/// The fields after a body. An object, because copying an optional block costs more, and most responses have none.
final class Trailers: Sendable {
    let fields: FieldBlock

    init(_ fields: FieldBlock) { self.fields = fields }
}

extension HTTP1Connection {
    /// The result of a step that reads the head of the response.
    enum HeadStep: Sendable {
        case wait
        case informational(ResponseHead)
        case head(ResponseHead, BodyFraming)
        case failure(ExchangeError.Cause)
    }

    enum BodyStep: Sendable {
        /// The number of bytes that were put into the buffer, and whether they were the last of the body.
        case bytes(Int, isLast: Bool)
        case wait
        case end
        /// The stream ended, which is also the end of a body without a length.
        case closed
        case failure(ExchangeError.Cause)
    }

    /// The bytes at the start of the buffer that the machine has reported, but that were not delivered yet.
    private struct Pending {
        var payload = 0
        /// The bytes of framing after the payload, which the machine has parsed.
        var framing = 0
    }

    private struct State: ~Copyable {
        var machine: ClientMachine
        var buffer = ReceiveBuffer()
        var pending = Pending()
        var trailers: Trailers?
        var isRaw = false

        mutating func stepHead(_ stream: any ByteStream) -> HeadStep {
            do throws(WireError) {
                while true {
                    if !(buffer.isEmpty && machine.isHeadDue) {
                        let received = try receive()
                        buffer.consume(received.consumed)
                        switch received.event {
                        case .informational(let head): return .informational(head)
                        case .head(let head, let framing): return .head(head, framing)
                        case .body, .end: return .failure(.wire(WireError(.illegalEvent, at: 0)))
                        case .needMoreBytes: break
                        }
                    }
                    // No memory is allocated for a read that would find no bytes.
                    if buffer.isEmpty, !stream.mayHaveBytes { return .wait }
                    switch unsafe try read(stream, atLeast: 4096, orInto: nil) {
                    case nil: continue
                    case .wait:
                        if buffer.isEmpty { buffer.release() }
                        return .wait
                    case .failure(let cause): return .failure(cause)
                    case .closed, .end, .bytes: return .failure(.wire(WireError(.emptyResponse, at: 0)))
                    }
                }
            } catch { return .failure(.wire(error)) }
        }

        mutating func stepBody(_ stream: any ByteStream, into target: UnsafeMutableRawBufferPointer) -> BodyStep {
            var filled = 0
            do throws(WireError) {
                while true {
                    let count = min(pending.payload, target.count - filled)
                    if count > 0 {
                        unsafe buffer.take(count, into: UnsafeMutableRawBufferPointer(rebasing: target[filled...]))
                        filled += count
                        pending.payload -= count
                    }
                    if pending.payload > 0 { return .bytes(filled, isLast: false) }
                    buffer.consume(pending.framing)
                    pending.framing = 0
                    if isRaw, machine.isResponseFinished {
                        // The end of the response was delivered as payload; later bytes belong to no response.
                        return filled > 0 ? .bytes(filled, isLast: true) : .end
                    }
                    let received = try receive()
                    if isRaw, received.consumed > 0 {
                        // Framing is parsed as usual, and delivered like payload.
                        if case .end(let fields) = received.event {
                            trailers = fields.map(Trailers.init)
                            machine.finish(leftoverByteCount: buffer.count - received.consumed)
                        }
                        pending = Pending(payload: received.consumed)
                        continue
                    }
                    switch received.event {
                    case .body(let range):
                        buffer.consume(range.lowerBound)
                        pending = Pending(payload: range.count, framing: received.consumed - range.upperBound)
                        continue
                    case .end(let fields):
                        trailers = fields.map(Trailers.init)
                        buffer.consume(received.consumed)
                        machine.finish(leftoverByteCount: buffer.count)
                        return filled > 0 ? .bytes(filled, isLast: true) : .end
                    case .needMoreBytes: buffer.consume(received.consumed)
                    case .head, .informational: return .failure(.wire(WireError(.illegalEvent, at: 0)))
                    }
                    if filled > 0 { return .bytes(filled, isLast: false) }
                    guard let step = unsafe try read(stream, atLeast: 32 * 1024, orInto: target) else { continue }
                    // A body or an upgraded connection may be silent for hours.
                    if case .wait = step, buffer.isEmpty { buffer.release() }
                    return step
                }
            } catch {
                // Bytes before the error are delivered first; the machine throws the same error again on the next step.
                return filled > 0 ? .bytes(filled, isLast: false) : .failure(.wire(error))
            }
        }

        @inline(__always) private mutating func receive() throws(WireError) -> ClientMachine.Received {
            try buffer.withUnread { unread throws(WireError) in try machine.receive(unread) }
        }

        /// Reads from the stream: into the target if the next bytes are certainly payload, else into the buffer.
        /// - Parameters:
        ///   - minimum: The minimum free space in the buffer.
        ///   - target: A buffer for payload.
        /// - Returns: `nil` if bytes were put into the buffer.
        private mutating func read(
            _ stream: any ByteStream, atLeast minimum: Int, orInto target: UnsafeMutableRawBufferPointer?
        ) throws(WireError) -> BodyStep? {
            let outcome: ReadOutcome
            let direct = unsafe directTarget(target)
            do throws(TransportError) {
                if let direct = unsafe direct {
                    outcome = unsafe try stream.read(into: direct)
                } else {
                    outcome = try buffer.fill(atLeast: minimum, from: stream)
                }
            } catch { return .failure(.transport(error)) }
            switch outcome {
            case .bytes(let count):
                guard unsafe direct != nil else { return nil }
                guard case .end = machine.receivedDirectly(count) else { return .bytes(count, isLast: false) }
                machine.finish(leftoverByteCount: buffer.count)
                return .bytes(count, isLast: true)
            case .wouldBlock: return .wait
            case .endOfStream(let isClean):
                _ = try machine.receiveEndOfStream(isClean: isClean)
                return .closed
            }
        }

        /// The part of a target into which payload can be read directly; `nil` if the buffer has to be used.
        private func directTarget(_ target: UnsafeMutableRawBufferPointer?) -> UnsafeMutableRawBufferPointer? {
            guard let target = unsafe target, !isRaw, buffer.isEmpty else { return nil }
            let direct = machine.directPayloadByteCount
            guard direct > 0, direct >= UInt64(target.count / 2) || direct >= 32768 else { return nil }
            return unsafe UnsafeMutableRawBufferPointer(rebasing: target[..<Int(min(UInt64(target.count), direct))])
        }
    }
}
