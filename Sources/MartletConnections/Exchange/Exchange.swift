package import MartletTransport
package import MartletWire
import Synchronization

/// One request and its response on a leased connection (RFC 9112 §9).
///
/// Its methods are called in order: ``send(_:)``, ``receiveHead()``, ``tryReadBody(into:)`` until it tells of the end, and
/// ``finish()`` at any moment, which is synchronous, never waits, and must come last. ``cancel()`` may come from any
/// thread at any time. An exchange that is dropped is finished.
package final class Exchange: Sendable {
    /// Whether the exchange goes on, and how it ended.
    enum Standing: Equatable {
        /// It goes on.
        case running
        /// Its user was told of an error, or refused the response: no rest of a body is taken for the connection's sake.
        case failed
        /// It was cancelled, and the connection has not been given back.
        case cancelled
        /// The connection has been given back. The response can still turn out to be complete.
        case released(Ending)
    }

    /// What an exchange had come to when its connection was given back.
    enum Ending {
        /// The response is complete.
        case complete
        /// The response was not read to its end.
        case incomplete
        /// It had been cancelled.
        case cancelled
    }

    struct State {
        private(set) var standing = Standing.running
        /// The fields behind the body, once it is complete.
        var trailers: FieldBlock?
        var phase = ExchangeError.Phase.sending
        var timeline = ExchangeTimeline()
        var writer: UploadWriter?
        var interim: [ResponseHead] = []
        var reading = ReadBatchRule()
        /// What the reader waits by for its turn, while there is a limit.
        var turn: BandwidthGovernor.Wait?
        /// When the last pause before the head ended: the clock of the head begins anew there.
        var headResumed: MonotonicTime?
        /// When it must be over, where that was said later.
        var totalDeadline: MonotonicTime?
        /// The part of the body that was read ahead and not handed out.
        var ahead: BodyAhead?
        var aheadOffset = 0

        var isCancelled: Bool { standing == .cancelled || standing == .released(.cancelled) }

        var isReleased: Bool { if case .released = standing { true } else { false } }

        /// Whether the body is being received, nothing has gone wrong, and nothing is left to send.
        var isReceivingOnly: Bool {
            standing == .running && phase == .receivingBody && writer.map { $0.hasFinished } ?? true
        }

        /// Notes that an error was told of, or the response refused.
        mutating func fail() { if standing == .running { standing = .failed } }

        /// Cancels the exchange; `false` where its connection has been given back.
        mutating func cancel() -> Bool {
            guard !isReleased else { return false }
            standing = .cancelled
            return true
        }

        /// Notes that the connection is given back, or that the response was complete after all.
        /// - Returns: How the exchange stood before; `nil` where the connection had been given back.
        mutating func release(isComplete: Bool) -> Standing? {
            let before = standing
            guard !isReleased else {
                if isComplete { standing = .released(.complete) }
                return nil
            }
            standing = .released(isComplete ? .complete : before == .cancelled ? .cancelled : .incomplete)
            return before
        }

        /// Hands out bytes that were read ahead; `nil` where there are none.
        mutating func takeAhead(into target: ReceiveTarget) -> HTTP1Connection.BodyStep? {
            guard let ahead else { return nil }
            let left = ahead.bytes.count - aheadOffset
            guard left > 0 else {
                self.ahead = nil
                return ahead.failure.map { .failure($0) }
            }
            let buffer = unsafe target.buffer
            let count = min(left, buffer.count)
            unsafe buffer.copyBytes(from: ahead.bytes[aheadOffset..<(aheadOffset + count)])
            aheadOffset += count
            return .bytes(count, isLast: false)
        }
    }

    /// The connection.
    package let connection: HTTP1Connection
    /// Whether the connection has carried another exchange before.
    package let isReused: Bool
    let lease: Lease
    let givenClocks: ExchangeClocks
    let loop: EventLoop
    private let onUpload: (@Sendable (Int) -> Void)?
    let gate: (any TransferGate)?
    let pace: TransferPace?
    /// Guards the above: the exchange's task, the writer's, and whoever cancels.
    let state = Mutex(State())
    /// Whether a part of the body was read ahead. Read without the lock, since it is `false` for most exchanges.
    let hasReadAhead = Atomic(false)

    /// An exchange on a leased connection.
    /// - Parameters:
    ///   - onUpload: Told of the payload bytes of the body as they are written, on the writer's task.
    ///   - gate: Asked before each write and each read, so that a transfer can be paused.
    ///   - pace: What the body is held to; `nil` for no limit, now and later.
    package init(
        lease: Lease, clocks: ExchangeClocks, loop: EventLoop, onUpload: (@Sendable (Int) -> Void)? = nil,
        gate: (any TransferGate)? = nil, pace: TransferPace? = nil
    ) {
        self.pace = pace
        self.lease = lease
        connection = lease.connection
        isReused = lease.isReused
        givenClocks = clocks
        self.loop = loop
        self.onUpload = onUpload
        self.gate = gate
    }

    deinit { finish() }

    // MARK: Sending

    /// Sends the request, or as much of it as the socket takes at once; the rest is written while the response is
    /// awaited.
    package func send(_ request: ExchangeRequest) throws(ExchangeError) {
        // Nobody waits for the answer of what was cancelled while its connection was being found.
        if state.withLock({ $0.isCancelled }) { throw failure(.cancelled) }
        connection.begin(request)
        var bytes = request.head
        if case .bytes(let body) = request.body, !request.expectsContinue { bytes += body }
        let began = MonotonicTime.now()
        var count = 0
        do throws(TransportError) {
            // A body that is held to a limit is not sent along with its head.
            let first = bytes.count > request.head.count && isHeldBack(.up) ? request.head : bytes
            count = try connection.stream.write(first, from: 0)
        } catch {
            throw failure(.transport(error))
        }
        let isComplete: Bool
        switch request.body {
        case .source: isComplete = false
        case .none, .bytes: isComplete = count == bytes.count && !request.expectsContinue
        }
        state.withLock { state in
            state.timeline.sendingBegan = began
            state.timeline.sentByteCount = UInt64(count)
            state.phase = .awaitingHead
            // One call, which does not wait: its beginning is its end.
            if isComplete { state.timeline.requestSent = began }
        }
        let sentBody = count - request.head.count
        if sentBody > 0 { onUpload?(sentBody) }
        if isComplete {
            connection.requestFinished()
            return
        }
        let rest = Array(bytes[count...])
        let writer = UploadWriter(
            connection: connection, request: request, rest: rest,
            restPayload: min(max(0, request.head.count - count), rest.count)..<rest.count, clocks: clocks,
            loop: loop, onProgress: onUpload, transferGate: gate, pace: pace)
        state.withLock { $0.writer = writer }
        writer.start()
    }

    // MARK: The head

    /// What one attempt to receive the head gave.
    package enum HeadAttempt: Sendable {
        /// The final head, and the interim ones that came before it (RFC 9110 §15.2).
        case head(ResponseHead, BodyFraming, interim: [ResponseHead])
        /// Nothing yet: await ``wait(until:_:)`` with these and try again.
        case wouldBlock(until: MonotonicTime, ExchangeError.Clock)
    }

    /// Tries to receive the final head, without waiting.
    package func tryReceiveHead() throws(ExchangeError) -> HeadAttempt {
        while true {
            switch connection.stepHead() {
            case .head(let head, let framing): return .head(head, framing, interim: headReceived(head))
            case .informational(let head):
                let writer = state.withLock { state in
                    state.interim.append(head)
                    return state.writer
                }
                if head.status == 100 { writer?.permitBody() }
            case .failure(let cause): throw blame(cause)
            case .wait:
                let (deadline, clock) = try headDeadline()
                return .wouldBlock(until: deadline, clock)
            }
        }
    }

    /// Waits for the final head.
    package func receiveHead() async throws(ExchangeError) -> (head: ResponseHead, framing: BodyFraming) {
        while true {
            try await waitWhilePaused()
            switch try tryReceiveHead() {
            case .head(let head, let framing, interim: _): return (head, framing)
            case .wouldBlock(let deadline, let clock): try await wait(until: deadline, clock)
            }
        }
    }

    private func headReceived(_ head: ResponseHead) -> [ResponseHead] {
        connection.use = .receiving
        let now = MonotonicTime.now()
        let (writer, interim) = state.withLock { state in
            state.phase = .receivingBody
            state.timeline.headReceived = now
            return (state.writer, state.interim)
        }
        // An answer before the request is out. A refusal makes the rest pointless; a success may be reading it still,
        // and then writing goes on until the answer is complete (RFC 9112 §9.5).
        if let writer, writer.outcome == nil, head.status >= 300 || writer.refuseBody() { writer.stop() }
        return interim
    }

    /// Until when the head may take, and by which clock.
    private func headDeadline() throws(ExchangeError) -> (MonotonicTime, ExchangeError.Clock) {
        let (writer, wasSent) = state.withLock { ($0.writer, $0.timeline.requestSent) }
        var sent = wasSent
        if let writer {
            switch writer.outcome {
            case .failed(let cause):
                // The peer may have refused and closed before reading everything; what it said can still be read, unless
                // the fault is on this side.
                if case .transport = cause {} else { throw failure(cause) }
                sent = sent ?? noteSent()
            case .finished, .stopped: sent = sent ?? noteSent()
            case nil: break
            }
        }
        if let sent, let head = clocks.head {
            let resumed = state.withLock { $0.headResumed }
            let limit = max(sent, resumed ?? sent).advanced(by: head)
            if limit < clocks.totalDeadline { return (limit, .head) }
        }
        return (clocks.totalDeadline, .total)
    }

    private func noteSent() -> MonotonicTime {
        let now = MonotonicTime.now()
        return state.withLock { state in
            let instant = state.timeline.requestSent ?? now
            state.timeline.requestSent = instant
            return instant
        }
    }

    /// The error to report when reading failed: the writer's own fault, if there is one, is the cause.
    private func blame(_ cause: ExchangeError.Cause) -> ExchangeError {
        let writer = state.withLock { $0.writer }
        if case .failed(let fault) = writer?.outcome {
            if case .transport = fault {} else { return failure(fault) }
        }
        if case .wire(let error) = cause, error.isEndOfStream, let reset = writer?.reset {
            return failure(.transport(reset))
        }
        return failure(cause)
    }

    // MARK: The body

    /// What one attempt to read the body gave.
    package enum BodyAttempt: Sendable {
        /// So many bytes were put into the buffer.
        case bytes(Int)
        /// The body is complete, and the connection has been given back.
        case end
        /// Nothing yet: await ``waitForBody()`` and try again.
        case wouldBlock
    }

    /// Tries to read the body into a buffer, which must not be empty, without waiting.
    package func tryReadBody(into target: UnsafeMutableRawBufferPointer) throws(ExchangeError) -> BodyAttempt
    {
        let target = unsafe ReceiveTarget(target)
        // Under the exchange's own lock, so that a reader who overstays cannot read what belongs to the next exchange.
        let step = state.withLock { state -> HTTP1Connection.BodyStep? in
            if state.ahead != nil, let step = state.takeAhead(into: target) { return step }
            switch state.standing {
            // The connection may carry another exchange by now.
            case .released(.complete): return nil
            case .released: return .failure(.transport(.closed))
            // A reader for whom there are always bytes never waits, and so is never interrupted.
            case .cancelled: return .failure(.cancelled)
            case .running, .failed: break
            }
            let step = connection.stepBody(into: target)
            if case .bytes(let count, _) = step { state.timeline.receivedBodyByteCount += UInt64(count) }
            return step
        }
        switch step {
        case .bytes(let count, let isLast):
            if isLast { complete() }
            return .bytes(count)
        case .end:
            complete()
            return .end
        case .closed:
            // What looks like an orderly end is none where the writer was told of a reset.
            if let reset = state.withLock({ $0.writer })?.reset { throw failure(.transport(reset)) }
            complete()
            return .end
        case .failure(let cause): throw blame(cause)
        case .wait: return .wouldBlock
        case nil: return .end
        }
    }

    /// Reads what is there of a short body, without waiting, into an array of its size.
    ///
    /// Where that is the whole, the exchange is over; else the rest is read by ``tryReadBody(into:)``.
    package func readBodyAtOnce(upTo length: Int) throws(ExchangeError) -> [UInt8] {
        // Room for one byte where none is expected: the end has to be asked for as well.
        let room = max(1, length)
        var body: [UInt8] = []
        // Set aside first: an array that is made with its room asks the runtime for its type each time.
        body.reserveCapacity(room)
        try body.append(addingCapacity: room) { output throws(ExchangeError) in
            unsafe try output.withUnsafeMutableBufferPointer { buffer, count throws(ExchangeError) in
                let attempt = unsafe try tryReadBody(into: UnsafeMutableRawBufferPointer(buffer))
                if case .bytes(let received) = attempt { count = received }
            }
        }
        return body
    }

    /// The most bytes that the next piece of the body can have: what was read ahead, else the rest of a length, else as many
    /// as can be told.
    package var payloadByteCountBound: Int {
        if hasReadAhead.load(ordering: .acquiring) {
            let ahead = state.withLock { state in state.ahead.map { $0.bytes.count - state.aheadOffset } }
            if let ahead, ahead > 0 { return ahead }
        }
        return connection.payloadByteCountBound
    }

    /// Waits until reading the body is worth another try; while the transfer is paused, until it goes on.
    package func waitForBody() async throws(ExchangeError) {
        while true {
            let writing = state.withLock { $0.writer }
            // A request that can never be complete: its server may wait for the rest before it says more. What a server does
            // to the connection is no such end, since what it said before can still be read.
            switch writing?.outcome {
            case .failed(.source(let error)): throw failure(.source(error))
            case .failed(.lengthMismatch(let announced, let actual)):
                throw failure(.lengthMismatch(announced: announced, actual: actual))
            case .failed(.wire(let error)): throw failure(.wire(error))
            case .failed, .finished, .stopped, nil: break
            }
            let sent = writing?.byteCount
            let now = MonotonicTime.now()
            let (deadline, clock) = clocks.deadline(clocks.idle, .idle, from: now)
            let remaining = connection.remainingPayload
            let batch = state.withLock { state in
                state.reading.waitBegins(
                    received: state.timeline.receivedBodyByteCount, remaining: remaining, now: now)
            }
            connection.stream.awaitBytes(batch)
            let patience = now.advanced(by: ReadBatchRule.longestDelay)
            let isShort = batch > 1 && patience < deadline
            do throws(ExchangeError) {
                guard isShort else { return try await wait(until: deadline, clock) }
                if try await isReadable(by: patience) { return }
                // What has come below the mark makes an edge when the mark is taken away.
                state.withLock { $0.reading.waitTimedOut() }
                connection.stream.awaitBytes(1)
                try await wait(until: deadline, clock)
                return
            } catch {
                // Nothing came down, but what goes up counts as well.
                // One that is held to a limit is silent for as long as that asks.
                let writer = state.withLock { $0.writer }
                guard case .timedOut(.idle) = error.cause,
                    writer?.byteCount != sent || writer?.isHeldBack == true
                else { throw error }
            }
        }
    }

    /// Waits while the transfer is paused; the total clock goes on meanwhile.
    package func waitWhilePaused() async throws(ExchangeError) {
        if let gate, gate.isPaused {
            await gate.waitWhilePaused(until: clocks.totalDeadline, on: loop)
            let now = MonotonicTime.now()
            let isCancelled = state.withLock { state in
                if state.phase == .awaitingHead { state.headResumed = now }
                return state.isCancelled
            }
            if isCancelled { throw failure(.cancelled) }
        }
        try checkTotal()
    }

    /// A wait would see to it, but where bytes are always there nobody waits.
    private func checkTotal() throws(ExchangeError) {
        guard clocks.totalDeadline != .distantFuture, MonotonicTime.now() >= clocks.totalDeadline else {
            return
        }
        throw failure(.timedOut(.total))
    }

    /// Lets the waits of a transfer that goes on after a pause begin anew: the idle clock stood meanwhile.
    package func transferResumed() {
        guard state.withLock({ !$0.isReleased }) else { return }
        connection.stream.wakeReader()
        connection.stream.wakeWriter()
    }

    private func complete() {
        // Taken before the connection is given back: whoever has it next begins with none, and may get others.
        finish(at: MonotonicTime.now(), trailers: connection.trailers)
    }

    /// Waits a few microseconds, without giving its thread up, for something to come.
    /// - Returns: Whether something has.
    package func arrives(within wait: BriefWait) -> Bool {
        let end = MonotonicTime.now().advanced(by: BriefWait.limit)
        repeat {
            if connection.stream.looksReadable() {
                wait.ended(inTime: true)
                return true
            }
        } while MonotonicTime.now() < end
        wait.ended(inTime: false)
        return false
    }

    /// Waits until something has come, or the deadline of that clock has passed.
    package func wait(until deadline: MonotonicTime, _ clock: ExchangeError.Clock) async throws(ExchangeError)
    {
        if try await isReadable(by: deadline) { return }
        // A paused transfer is silent because it was asked to be.
        if clock == .idle || clock == .head, gate?.isPaused == true { return }
        throw failure(.timedOut(clock))
    }

    /// Waits until something has come; `false` when the deadline has passed first.
    private func isReadable(by deadline: MonotonicTime) async throws(ExchangeError) -> Bool {
        do throws(TransportError) {
            if let latch = connection.stream.readLatch {
                // The same wait with fewer calls between it and its task, each of which it has to come back through.
                switch await latch.wait(for: .read, until: deadline) {
                case .ready: return true
                case .timedOut: return false
                case .interrupted: throw .interrupted
                case .closed: throw .closed
                }
            }
            try await connection.stream.waitUntilReadable(until: deadline)
            return true
        } catch {
            switch error {
            case .timedOut: return false
            case .interrupted: throw failure(.cancelled)
            default: throw failure(.transport(error))
            }
        }
    }
}
