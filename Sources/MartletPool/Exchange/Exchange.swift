package import MartletTransport
package import MartletWire
import Synchronization

/// One request and its response on a leased connection (RFC 9112 §9).
///
/// Call the methods in this order: ``send(_:)``, ``tryReceiveHead()``, ``tryReadBody(into:)`` until it reports the end,
/// then ``finish()``, which may also be called earlier, and never waits. Deallocation has the same effect. Any thread
/// may call ``cancel()`` at any time.
package final class Exchange: Sendable {
    /// The state of the exchange. In the last three states, the connection was returned.
    fileprivate enum Stage: UInt8 {
        case running
        /// An error was reported, or the response was rejected. The rest of its body is not read.
        case failed
        case cancelled
        case complete
        /// The response was not read to its end, but may become complete later.
        case incomplete
        /// The exchange was cancelled, and then ended.
        case released
    }

    struct State {
        fileprivate var stage = Stage.running
        /// The fields after the body, once it is complete.
        var trailers: Trailers?
        var phase = ExchangeError.Phase.sending
        var timeline = ExchangeTimeline()
        var headByteCount = 0
        var writer: UploadWriter?
        var reading = ReceiveLowWaterMachine()
        /// The reader's wait for bytes under a bandwidth limit.
        var turn: BandwidthLimiter.Wait?
        /// The end of the last pause before the head, from which the timeout for the head restarts.
        var headResumed: MonotonicTime?
        /// The total deadline of a call that took over the exchange.
        var totalDeadline: MonotonicTime?
        /// The bytes that were read ahead and not delivered yet; `nil` without reading ahead.
        var ahead: ArraySlice<UInt8>?
        /// The error that ended the reading ahead.
        var aheadFailure: ExchangeError?
        /// The reset that a write to an upgraded connection encountered, which no read reports again.
        var upgradeReset: TransportError?

        var isCancelled: Bool { stage == .cancelled || stage == .released }

        var isReleased: Bool { stage.rawValue >= Stage.complete.rawValue }

        /// Whether the body is being received without errors, and nothing is left to send.
        var isReceivingOnly: Bool {
            stage == .running && phase == .receivingBody && writer.map { $0.hasFinished } ?? true
        }

        /// Records that an error was reported, or the response was rejected.
        fileprivate mutating func fail() { if stage == .running { stage = .failed } }

        /// Records that the connection is returned, or later that the response is complete.
        /// - Returns: The former state; `nil` if the connection was already returned.
        fileprivate mutating func release(isComplete: Bool) -> Stage? {
            let before = isReleased ? nil : stage
            if isComplete {
                stage = .complete
            } else if let before {
                stage = before == .cancelled ? .released : .incomplete
            }
            return before
        }
    }

    package let connection: HTTP1Connection
    let lease: Lease
    let loop: EventLoop
    let gate: (any TransferPauseGate)?
    let pace: TransferRateLimit?
    private let givenTimeouts: ExchangeTimeouts
    private let onUpload: (@Sendable (Int) -> Void)?
    private let verifier: (any ContentVerifier)?
    /// Shared by the exchange's task, the writer's task, and the thread that cancels.
    let state = Mutex(State())
    /// Whether a part of the body was read ahead. Read without the lock, since it is `false` for most exchanges.
    let hasReadAhead = Atomic(false)

    /// Creates an exchange on a leased connection.
    /// - Parameters:
    ///   - onUpload: Called with the number of written bytes of the body, by ``send(_:)`` and by the writer's task.
    ///   - gate: Pauses the transfer; queried before each write and each read.
    ///   - pace: The bandwidth limits; `nil` if the transfer never has any.
    ///   - verifier: Checks the content, before its end is reported.
    package init(
        lease: Lease, timeouts: ExchangeTimeouts, loop: EventLoop, onUpload: (@Sendable (Int) -> Void)? = nil,
        gate: (any TransferPauseGate)? = nil, pace: TransferRateLimit? = nil, verifier: (any ContentVerifier)? = nil
    ) {
        (self.pace, self.lease, self.verifier) = (pace, lease, verifier)
        connection = lease.connection
        givenTimeouts = timeouts
        (self.loop, self.onUpload, self.gate) = (loop, onUpload, gate)
    }

    deinit { finish() }

    // MARK: Sending

    /// The maximum number of bytes of a body that are copied, so that the first write sends them with the head.
    private static let openingLimit = 64 * 1024

    /// Sends what the socket accepts immediately, with at most 64 KiB of the body; the rest of the request is written
    /// while the response is awaited. A larger body in memory is not copied.
    package func send(_ request: ExchangeRequest) throws(ExchangeError) {
        // The call may have been cancelled while it acquired its connection.
        if state.withLock({ $0.isCancelled }) { throw failure(.cancelled) }
        connection.begin(request)
        if lease.isReused { lease.pool.reusedCount.wrappingAdd(1, ordering: .relaxed) }
        // A body with a bandwidth limit is not sent together with its head.
        let opening = request.opening(bodyUpTo: isHeldBack(.up) ? 0 : Exchange.openingLimit)
        let began = MonotonicTime.now()
        var count = 0
        do throws(TransportError) { count = try connection.stream.write(opening, from: 0) } catch {
            throw failure(.transport(error))
        }
        let isComplete = count == opening.count && request.isWhole(opening)
        state.withLock { state in
            state.timeline.sendingBegan = began
            state.timeline.sentByteCount = UInt64(count)
            state.headByteCount = request.head.count
            state.phase = .awaitingHead
            // One non-blocking call: its start is also its end.
            if isComplete { state.timeline.requestSent = began }
        }
        let sentBody = count - request.head.count
        if sentBody > 0 { onUpload?(sentBody) }
        if isComplete {
            connection.requestFinished()
            return
        }
        let writer = UploadWriter(
            connection: connection, request: request, opening: opening, sentCount: count, timeouts: timeouts,
            loop: loop, onProgress: onUpload, transferGate: gate, pace: pace)
        state.withLock { $0.writer = writer }
        writer.start()
    }

    // MARK: The head

    package enum HeadAttempt: Sendable {
        /// The final head.
        case head(ResponseHead, BodyFraming)
        /// An interim head (RFC 9110 §15.2), also while the request is being sent. Try again: another head follows.
        case interim(ResponseHead)
        /// Nothing yet: await ``wait(until:_:)`` with these values, and try again.
        case wouldBlock(until: MonotonicTime, ExchangeError.Timeout)
    }

    /// Tries to receive the next head, without waiting.
    package func tryReceiveHead() throws(ExchangeError) -> HeadAttempt {
        switch connection.stepHead() {
        case .head(let head, let framing):
            headReceived(head, framing)
            if head.status != 101, let rejection = verifier?.begin(head, framing) { throw failure(.content(rejection)) }
            return .head(head, framing)
        case .informational(let head):
            if head.status == 100 { state.withLock { $0.writer }?.permitBody() }
            return .interim(head)
        case .failure(let cause): throw rootCause(of: cause)
        case .wait:
            let (deadline, timeout) = try headDeadline()
            return .wouldBlock(until: deadline, timeout)
        }
    }

    private func headReceived(_ head: ResponseHead, _ framing: BodyFraming) {
        connection.use = .receiving
        let now = MonotonicTime.now()
        let writer = state.withLock { state in
            state.phase = head.status == 101 ? .upgraded : .receivingBody
            state.timeline.headReceived = now
            return state.writer
        }
        // The new protocol starts after the whole request (RFC 9110 §7.8), so its body is sent even without a 100.
        guard head.status != 101 else {
            writer?.permitBody()
            return
        }
        guard let writer, writer.outcome == nil else { return }
        // A response arrived before the request was fully sent. The server may still be reading, and send the rest of
        // the response only after the end of the request, so writing continues until the response is complete. It stops
        // now after a rejection that closes the connection (RFC 9112 §9.5), or that has no body left to wait for.
        let hasBody = framing != .none && framing != .length(0)
        let closes = !PersistenceRule.persists(version: head.version, fields: head.fields)
        if writer.rejectBody() || (head.status >= 300 && (closes || !hasBody)) { writer.stop() }
    }

    private func headDeadline() throws(ExchangeError) -> (MonotonicTime, ExchangeError.Timeout) {
        var (writer, sent) = state.withLock { ($0.writer, $0.timeline.requestSent) }
        switch writer?.outcome {
        // A peer that rejected the request may have closed early: its response can still be read.
        case .failed(.transport), .finished, .stopped:
            sent = state.withLock { state in
                state.timeline.requestSent = state.timeline.requestSent ?? MonotonicTime.now()
                return state.timeline.requestSent
            }
        case .failed(let cause): throw failure(cause)
        case nil: break
        }
        let timeouts = timeouts
        if let sent, let head = timeouts.head {
            let resumed = state.withLock { $0.headResumed }
            let limit = max(sent, resumed ?? sent).advanced(by: head)
            if limit < timeouts.totalDeadline { return (limit, .head) }
        }
        return (timeouts.totalDeadline, .total)
    }

    /// Returns the error to report after a failed read: a local error of the writer, if any, is the cause.
    private func rootCause(of cause: ExchangeError.Cause) -> ExchangeError {
        let writer = state.withLock { $0.writer }
        switch writer?.outcome {
        case .failed(.transport), .finished, .stopped, nil: break
        case .failed(let error): return failure(error)
        }
        if case .wire(let error) = cause, error.isEndOfStream, let reset = writer?.reset {
            return failure(.transport(reset))
        }
        return failure(cause)
    }

    // MARK: The body

    package enum BodyAttempt: Sendable {
        /// This number of bytes was put into the buffer.
        case bytes(Int)
        /// The body is complete, and the connection has been returned.
        case end
        /// Nothing yet: await ``waitForBody()``, and try again.
        case wouldBlock
    }

    /// Tries to read the body into a buffer, which must not be empty, without waiting.
    package func tryReadBody(into target: UnsafeMutableRawBufferPointer) throws(ExchangeError) -> BodyAttempt {
        let target = unsafe ReceiveTarget(target)
        // Under the exchange's own lock, so that a late reader cannot read bytes of the next exchange.
        let step = state.withLock { state -> HTTP1Connection.BodyStep? in
            if let step = state.takeAhead(into: target) { return step }
            switch state.stage {
            // The connection may already carry another exchange.
            case .complete: return nil
            case .incomplete, .released: return .failure(.transport(.closed))
            // A reader that always finds bytes never waits, and so is never interrupted.
            case .cancelled: return .failure(.cancelled)
            case .running, .failed: break
            }
            let step = connection.stepBody(into: target)
            if case .bytes(let count, _) = step {
                state.timeline.receivedBodyByteCount += UInt64(count)
                if let verifier { target.withBytes(count) { verifier.add($0) } }
            }
            return step
        }
        switch step {
        case .bytes(let count, let isLast):
            if isLast { try complete() }
            return .bytes(count)
        case .closed:
            // A clean end does not count if the writer encountered a reset.
            if let reset = state.withLock({ $0.writer })?.reset { throw failure(.transport(reset)) }
            try complete()
            return .end
        case .end:
            try complete()
            return .end
        case .failure(let cause): throw rootCause(of: cause)
        case .wait: return .wouldBlock
        case nil: return .end
        }
    }

    /// Reads the received part of a short body, at most `length` bytes, without waiting. If the body is then complete,
    /// the exchange has ended; otherwise ``tryReadBody(into:)`` reads the rest.
    package func readBodyAtOnce(upTo length: Int) throws(ExchangeError) -> [UInt8] {
        // Space for one byte even if none is expected, because the end must be read as well.
        let room = max(1, length)
        var body: [UInt8] = []
        // Reserved separately: creating an array with a capacity queries the runtime for its type each time.
        body.reserveCapacity(room)
        try body.append(addingCapacity: room) { output throws(ExchangeError) in
            unsafe try output.withUnsafeMutableBufferPointer { buffer, count throws(ExchangeError) in
                let attempt = unsafe try tryReadBody(into: UnsafeMutableRawBufferPointer(buffer))
                if case .bytes(let received) = attempt { count = received }
            }
        }
        return body
    }

    /// The maximum size of the next piece of the body: the bytes read ahead, the rest of a known length, or `Int.max`.
    package var payloadByteCountBound: Int {
        if hasReadAhead.load(ordering: .acquiring) {
            let ahead = state.withLock { $0.ahead?.count }
            if let ahead, ahead > 0 { return ahead }
        }
        return connection.payloadByteCountBound
    }

    /// Waits until another read of the body may succeed; while the transfer is paused, until it is resumed.
    package func waitForBody() async throws(ExchangeError) {
        while true {
            let sent = try sentByteCount()
            let now = MonotonicTime.now()
            let (deadline, timeout) = timeouts.deadline(timeouts.idle, .idle, from: now)
            let remaining = connection.remainingPayload
            let batch = state.withLock { state in
                state.reading.waitBegins(received: state.timeline.receivedBodyByteCount, remaining: remaining, now: now)
            }
            connection.stream.awaitBytes(batch)
            let batchDeadline = now.advanced(by: ReceiveLowWaterMachine.maximumDelay)
            let isShort = batch > 1 && batchDeadline < deadline
            do throws(ExchangeError) {
                guard isShort else { return try await wait(until: deadline, timeout) }
                if try await isReadable(by: batchDeadline) { return }
                // If fewer bytes than the batch were received, they cause an edge when the number is lowered.
                state.withLock { $0.reading.waitTimedOut() }
                connection.stream.awaitBytes(1)
                try await wait(until: deadline, timeout)
                return
            } catch {
                // Sent bytes count as well, and a bandwidth limit may delay the writer.
                let writer = state.withLock { $0.writer }
                guard case .timedOut(.idle) = error.cause, writer?.byteCount != sent || writer?.isHeldBack == true
                else { throw error }
            }
        }
    }

    /// The number of bytes that the writer has written.
    /// - Throws: The error of a request that can never be complete: its server may wait for the rest before it
    ///   responds. Errors of the transport are not thrown, since the response can still be read.
    private func sentByteCount() throws(ExchangeError) -> UInt64? {
        let writer = state.withLock { $0.writer }
        if case .failed(let cause) = writer?.outcome {
            switch cause {
            case .source, .lengthMismatch, .wire: throw failure(cause)
            case .transport, .proxy, .coding, .content, .timedOut, .cancelled: break
            }
        }
        return writer?.byteCount
    }

    /// Waits until bytes have arrived. Throws at the deadline, except that a pause suspends the idle and head timeouts.
    package func wait(until deadline: MonotonicTime, _ timeout: ExchangeError.Timeout) async throws(ExchangeError) {
        if try await isReadable(by: deadline) { return }
        if timeout == .idle || timeout == .head, isPaused { return }
        throw failure(.timedOut(timeout))
    }

    /// Waits until bytes have arrived; `false` if the deadline has passed first.
    private func isReadable(by deadline: MonotonicTime) async throws(ExchangeError) -> Bool {
        do throws(TransportError) {
            if let latch = connection.stream.readLatch {
                // The same wait with fewer nested calls, since the task returns through each of them.
                try await latch.wait(for: .read, until: deadline).check()
            } else {
                try await connection.stream.waitUntilReadable(until: deadline)
            }
            return true
        } catch {
            switch error {
            case .timedOut: return false
            case .interrupted: throw failure(.cancelled)
            default: throw failure(.transport(error))
            }
        }
    }

    // MARK: The end

    private func complete() throws(ExchangeError) {
        // The trailers are read before the connection is returned, because the next exchange resets them.
        let trailers = connection.trailers
        if let verifier, let rejection = verifier.finish(trailers: trailers?.fields) {
            throw failure(.content(rejection))
        }
        finish(at: MonotonicTime.now(), trailers: trailers)
    }

    /// Ends the exchange, and returns the connection to the pool, or closes it if it is not reusable. A small unread
    /// rest of the body is read first, in a task that is not awaited, so that the connection can be reused.
    package func finish() { finish(at: nil) }

    /// - Parameters:
    ///   - completion: The time at which the response was complete; `nil` if it was not.
    ///   - trailers: The trailers of a complete response.
    private func finish(at completion: MonotonicTime?, trailers: Trailers? = nil) {
        let (stage, phase, writer) = state.withLock { state in
            if let completion { (state.timeline.bodyReceived, state.trailers) = (completion, trailers) }
            return (state.release(isComplete: completion != nil), state.phase, state.writer)
        }
        guard let stage else { return }
        connection.stream.awaitBytes(1)
        // A waiting reader must detect that the exchange is over. If the response is complete, no reader waits.
        if completion == nil { connection.stream.wakeReader() }
        var isAborted = false
        if let writer, writer.outcome == nil, !writer.hasWrittenAll {
            writer.stop()
            connection.requestAborted()
            isAborted = true
        }
        // A connection with an incomplete request cannot be reused, so the rest of the response is not read.
        if stage == .cancelled || isAborted {
            lease.release(isReusable: false)
        } else if completion != nil || connection.isResponseFinished {
            lease.release(isReusable: true, at: completion)
        } else if stage == .running, phase == .receivingBody {
            abandon()
        } else {
            lease.release(isReusable: false)
        }
    }

    /// Rejects the response and ends the exchange. The rest of the response is not read, even if it is short.
    package func reject() {
        state.withLock { $0.fail() }
        finish()
    }

    /// Ends every current and later wait of this exchange with an error. Does nothing if the exchange has ended.
    package func cancel() {
        let (isReleased, writer, turn) = state.withLock { state in
            if !state.isReleased { state.stage = .cancelled }
            return (state.isReleased, state.writer, state.turn)
        }
        if isReleased { return }
        turn?.interrupt()
        writer?.stop()
        connection.stream.interrupt()
    }

    /// Records that the exchange failed, and returns its error. Inlining it would enlarge the frames of waits.
    @inline(never) func failure(_ cause: ExchangeError.Cause) -> ExchangeError {
        let state = state.withLock { state in
            state.fail()
            return state
        }
        var cause = cause
        var waited: Duration?
        switch cause {
        case .timedOut(.head): waited = timeouts.head
        case .timedOut(.idle): waited = timeouts.idle
        case .transport(.interrupted): cause = .cancelled
        case .transport(.closed): cause = connection.localAddressError.map { .transport($0) } ?? cause
        default: break
        }
        if state.isCancelled { cause = .cancelled }
        let isSending = state.phase == .awaitingHead && state.writer?.hasFinished == false
        return ExchangeError(
            cause: cause, phase: isSending ? .sending : state.phase,
            wasSent: state.timeline.sentByteCount > 0 || (state.writer?.byteCount ?? 0) > 0, waited: waited)
    }

    // MARK: Properties

    var timeouts: ExchangeTimeouts {
        guard let total = state.withLock({ $0.totalDeadline }) else { return givenTimeouts }
        var timeouts = givenTimeouts
        timeouts.totalDeadline = total
        return timeouts
    }

    /// Sets the total deadline of the call that takes over the rest of the exchange.
    package func adopt(totalDeadline: MonotonicTime) { state.withLock { $0.totalDeadline = totalDeadline } }

    /// Whether the exchange is over: it was finished, or its response is complete.
    package var isFinished: Bool { state.withLock { $0.isReleased } }

    /// The times of the exchange's steps, and the numbers of bytes.
    package var timeline: ExchangeTimeline {
        state.withLock { state in
            var timeline = state.timeline
            timeline.sentByteCount += state.writer?.byteCount ?? 0
            return timeline
        }
    }

    /// The fields after a chunked body, once it is complete; never merged into the head (RFC 9110 §6.5).
    package var trailers: FieldBlock? { state.withLock { $0.trailers }?.fields }

    package var hasReceivedAnyByte: Bool { connection.hasReceivedAnyByte }

    /// Whether the connection was already open: it was idle, or another request released it.
    package var isReused: Bool { lease.isReused }
}
