/// A runner of one call up to the head of the response: connection, request, head. It sends the request again if a
/// reused connection was closed, after a 417 without `Expect`, and after a 407 with credentials for the proxy.
///
/// Only its methods suspend. The methods of ``CallAttemptState`` do the work between the suspensions, because each
/// running call holds the variables of a suspended function.
package struct CallRunner: Sendable {
    let core: SessionCore
    let dialer: Dialer
    let call: Call
    let control: TransferControl
    /// The gate that is checked before each write and read; with `nil`, the control if it is exposed.
    var gate: (any TransferPauseGate)?

    package init(
        core: SessionCore, dialer: Dialer, call: Call, control: TransferControl, gate: (any TransferPauseGate)? = nil
    ) {
        (self.core, self.dialer, self.call, self.control, self.gate) = (core, dialer, call, control, gate)
    }

    fileprivate var priority: RequestPriority {
        // Without an exposed control, nothing can have changed the priority.
        (control.isExposed ? control.priority : nil) ?? call.priority
    }

    /// Sends the request and waits for the final head.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    package func run() async throws -> StreamedResponse {
        var attempts = CallAttemptState(self)
        if core.pacer.isActive { attempts.turnWait = try await core.pacer.wait(for: call, control) }
        while true {
            if try !attempts.prepare(self) { try attempts.compose(self, try await body(of: attempts.composer)) }
            if control.isExposed { try await waitWhilePaused() }
            let exchange: Exchange
            switch try attempts.acquire(self) {
            case .lease(let lease) where !(control.isExposed && control.isPaused):
                exchange = attempts.begin(self, on: lease, since: attempts.asked)
            case let acquisition:
                var lease = try await connection(acquisition, &attempts)
                if attempts.rejects(lease, call) { lease = try await freshConnection(&attempts, instead: lease) }
                exchange = attempts.begin(self, on: lease, since: MonotonicTime.now())
            }
            do {
                if control.isExposed { try await pause(exchange) }
                try attempts.send(self, on: exchange)
                receiving: while true {
                    if control.isExposed { try await pause(exchange) }
                    switch try attempts.receive(self, from: exchange) {
                    case .answer(let answer): return answer
                    case .again: break receiving
                    case .interim: continue
                    case .wait(let deadline, let timeout):
                        if core.spinsBriefly, exchange.arrives(within: core.briefWait) { continue }
                        try await exchange.wait(until: deadline, timeout)
                    }
                }
            } catch let error as ExchangeError { try attempts.handle(self, error, exchange) }
        }
    }

    // Errors of typed throws take space in each frame that may receive them; these are boxed when they occur.

    @inline(never) private func body(of composer: RequestComposer) async throws -> RequestComposer.PreparedBody {
        let prepared = try await composer.prepareBody()
        guard case .source(let source, 0?) = prepared.body else { return prepared }
        try await UserCode(call, control: control, loop: core.loop).run("the body's sequence", .preparing) {
            try await composer.confirmEmpty(source)
        }
        return RequestComposer.PreparedBody(body: .bytes([]), length: 0)
    }

    @inline(never) private func pause(_ exchange: Exchange) async throws { try await exchange.waitWhilePaused() }

    /// Waits while the call is paused and has no connection.
    @inline(never) private func waitWhilePaused() async throws {
        guard control.isPaused else { return }
        control.begin(.none)
        await control.waitWhilePaused(until: call.totalDeadline, on: core.loop)
        if control.isCancelled || Task.isCancelled { throw CancellationError() }
        guard MonotonicTime.now() < call.totalDeadline else {
            throw call.timedOut(.preparing, "while the call was paused")
        }
    }

    /// Waits for a connection. A paused call is not queued and holds none; after the pause it has its old position.
    @inline(never) private func connection(
        _ acquisition: ConnectionPool.Acquisition, _ attempts: inout CallAttemptState
    ) async throws -> Lease {
        var acquisition = acquisition
        while true {
            let lease: Lease?
            switch acquisition {
            case .lease(let given): lease = given
            case .ticket(let ticket): lease = try await self.lease(for: ticket, attempts.number)
            }
            guard !control.isPaused, let lease else {
                lease?.returnUnused()
                let paused = MonotonicTime.now()
                try await waitWhilePaused()
                acquisition = try attempts.acquire(self, again: acquisition, pausedSince: paused)
                continue
            }
            return lease
        }
    }

    /// Waits in the queue for a connection.
    /// - Returns: The connection; `nil` if the call was paused and left the queue.
    @inline(never) private func lease(for ticket: ConnectionPool.Ticket, _ attempts: Int) async throws -> Lease? {
        control.begin(.waiting(ticket))
        ticket.nest(in: UserCode.enclosingCalls.compactMap(\.exchange))
        do throws(ExchangeError) { return try await ticket.lease() } catch {
            if case .cancelled = error.cause, !control.isCancelled { return nil }
            throw control.isCancelled ? CancellationError() : call.failure(error, attempts: attempts)
        }
    }

    /// Waits for an unused connection. One that another request returns during the wait may be closed as well.
    @inline(never) private func freshConnection(_ attempts: inout CallAttemptState, instead given: Lease) async throws
        -> Lease
    {
        var lease = given
        while attempts.rejects(lease, call) {
            lease = try await connection(try attempts.acquire(self, insteadOf: lease), &attempts)
        }
        return lease
    }
}

/// The state of a call between the suspensions of its ``CallRunner``, and the work done there.
///
/// None of its methods suspends, and none is inlined into a function that does: their temporary variables are on the
/// thread's stack, and not in a frame that each running call holds. The runner is passed each time, because a stored
/// copy would retain each of its references once more.
struct CallAttemptState {
    enum Reception {
        case answer(StreamedResponse)
        /// The request must be sent again.
        case again
        /// An interim response was received and reported.
        case interim
        /// No bytes were received.
        case wait(until: MonotonicTime, ExchangeError.Timeout)
    }

    /// The number of attempts to send the request.
    private(set) var number = 0
    private(set) var composer: RequestComposer
    /// Whether credentials were sent after a 407.
    private var hasAuthorizedProxy = false
    /// The number of attempts caused by a response, rather than by a closed connection.
    private var wantedRepeats = 0
    /// The interim heads of the current request.
    private var interim: [ResponseHead] = []
    /// Whether only an unused connection is accepted, because a reused one was closed while this request was sent. The
    /// request is repeated once (RFC 9112 §9.3.1).
    private var needsFreshConnection = false
    /// The composed request; `nil` once it was sent. Its body is not read before the first write, so that a body that
    /// can be read only once survives a connection that accepts no byte.
    private var request: ExchangeRequest?
    private var expectsContinue = false
    private var isCompressed = false
    /// The wait for the request's turn (``SessionConfiguration/requestInterval``).
    var turnWait = Duration.zero
    /// The time when a connection was requested.
    private(set) var asked: MonotonicTime
    /// The start of the call plus the wait for a connection, without the time before the connection was requested.
    private var waited: MonotonicTime

    @inline(never) init(_ runner: CallRunner) {
        // Created in its final form: a change in place would copy it as a whole.
        composer = RequestComposer(
            call: runner.call,
            proxyAuthorization: runner.call.isForwarded
                ? ProxyAuthorization(call: runner.call, dialer: runner.dialer)?.unasked : nil)
        asked = runner.call.start
        waited = runner.call.start
    }

    // MARK: The request

    /// Starts an attempt, and composes its request.
    /// - Returns: Whether the body was available without waiting. Otherwise open it, and call ``compose(_:_:)``.
    @inline(never) mutating func prepare(_ runner: CallRunner) throws -> Bool {
        number += 1
        if number > 1, runner.control.isCancelled { throw CancellationError() }
        if request == nil {
            guard let body = try composer.prepareBodyAtOnce() else { return false }
            request = try composer.compose(body)
        }
        announce(runner)
        return true
    }

    /// Composes the request with an opened body.
    @inline(never) mutating func compose(_ runner: CallRunner, _ body: RequestComposer.PreparedBody) throws {
        request = try composer.compose(body)
        isCompressed = body.isCompressed
        announce(runner)
    }

    private mutating func announce(_ runner: CallRunner) {
        guard let request else { return }
        expectsContinue = request.expectsContinue
        runner.control.tracer?.sent(request.head)
        // After a redirect that dropped the body, the progress is still that of the body that was sent.
        if case .none = request.body, !runner.call.hops.isEmpty { return }
        let length: UInt64? =
            switch request.body {
            case .none: 0
            case .bytes(let bytes): UInt64(bytes.count)
            case .source(_, let length): length
            }
        runner.control.upload?.restart(of: length)
        runner.call.observer?.upload?.restart(of: length)
    }

    /// Sends the request, or as much of it as the socket accepts without waiting.
    /// - Throws: ``ExchangeError``.
    @inline(never) mutating func send(_ runner: CallRunner, on exchange: Exchange) throws {
        guard let request else { return }
        if case .source = request.body {
            // The source may be code of the program, which runs in a task that is created here.
            try UserCode.$enclosingCalls.withValue(UserCode.enclosingCalls + [runner.control]) {
                try exchange.send(request)
            }
        } else {
            try exchange.send(request)
        }
        self.request = nil
        HeadMemory.give(request.head)
        runner.call.observer?.requestSent()
    }

    // MARK: The connection

    /// Whether a used connection is not accepted: a new one is required, or the request must not be sent twice and the
    /// connection was closed or received bytes while it was idle.
    func rejects(_ lease: Lease, _ call: Call) -> Bool {
        guard lease.connection.hasCarriedExchange else { return false }
        return needsFreshConnection || (!call.maySendAgain && !lease.isQuiet)
    }

    /// Requests a connection.
    /// - Parameters:
    ///   - rejected: A connection from the queue that was not accepted.
    ///   - former: The lease or queue position that was released for a pause. The pause does not count as waiting.
    @inline(never) mutating func acquire(
        _ runner: CallRunner, insteadOf rejected: Lease? = nil, again former: ConnectionPool.Acquisition? = nil,
        pausedSince: MonotonicTime? = nil
    ) throws -> ConnectionPool.Acquisition {
        // The start of the call is not used: redirects, credentials, middleware and pauses may have come before.
        let now = MonotonicTime.now()
        if let pausedSince {
            asked = asked.advanced(by: now.since(pausedSince))
        } else if rejected == nil {
            asked = now
        }
        let call = runner.call
        if let denial = call.supplement?.networkDenial {
            throw call.error(denial.code, .waitingForConnection, denial.message)
        }
        var request = ConnectionPool.Request(
            priority: runner.priority, order: call.options.queueOrder ?? call.settings.configuration.queueOrder,
            poolTimeout: call.timeouts.poolWait, connectTimeout: call.timeouts.connect,
            totalDeadline: call.totalDeadline, start: now, isFresh: needsFreshConnection,
            alwaysChecksSocket: !call.maySendAgain)
        request.waited = now.since(asked)
        if case .ticket(let ticket)? = former { request.arrival = ticket.arrival }
        do throws(ExchangeError) {
            guard let rejected else {
                return try runner.core.pool.acquire(call.destination, by: runner.dialer, through: call.proxy, request)
            }
            return try runner.core.pool.acquire(
                call.destination, by: runner.dialer, through: call.proxy, request, insteadOf: rejected)
        } catch { throw HTTPError(error, call: call, attempts: number) }
    }

    /// Starts the exchange on a connection.
    /// - Parameter waited: The time when the connection became available.
    @inline(never) mutating func begin(_ runner: CallRunner, on lease: Lease, since waited: MonotonicTime) -> Exchange {
        // In nanoseconds, because arithmetic with durations takes longer.
        let wait = waited.nanoseconds - min(asked, waited).nanoseconds
        self.waited = MonotonicTime(nanoseconds: runner.call.start.nanoseconds &+ wait)
        if turnWait != .zero { self.waited = self.waited.advanced(by: turnWait) }
        let exchange = makeExchange(runner, lease)
        runner.control.begin(.exchanging(exchange))
        runner.control.tracer?.connected(exchange.isReused ? [] : lease.connection.tunnelHeads)
        runner.call.observer?.connected(lease.connection.stream.information, isReused: exchange.isReused)
        return exchange
    }

    private func makeExchange(_ runner: CallRunner, _ lease: Lease) -> Exchange {
        let call = runner.call
        var onUpload: (@Sendable (Int) -> Void)?
        let upload = runner.control.upload
        let observed = call.observer?.upload
        if upload != nil || observed != nil {
            onUpload = { count in
                upload?.update { $0.completedByteCount += UInt64(count) }
                observed?.update { $0.completedByteCount += UInt64(count) }
            }
        }
        lease.connection.mark(call.options.serviceClass, or: call.settings.configuration.serviceClass)
        let bandwidth = runner.core.bandwidth
        return Exchange(
            lease: lease,
            timeouts: ExchangeTimeouts(
                head: call.timeouts.head, idle: call.timeouts.idle, totalDeadline: call.totalDeadline),
            loop: runner.core.loop, onUpload: onUpload,
            gate: runner.gate ?? (runner.control.isExposed ? runner.control : nil),
            pace: TransferRateLimit(
                bandwidth,
                scope: BandwidthScope(
                    host: call.url.host,
                    transfer: call.options.bandwidthGroup?.number
                        ?? runner.control.transferNumber(under: call.options.bandwidth, bandwidth))),
            verifier: call.supplement?.verification?.verifier(call.method.rawValue))
    }

    // MARK: The response

    /// Reads the head of the response, if it was received.
    /// - Throws: ``ExchangeError``.
    @inline(never) mutating func receive(_ runner: CallRunner, from exchange: Exchange) throws -> Reception {
        switch try exchange.tryReceiveHead() {
        case .wouldBlock(let deadline, let timeout): return .wait(until: deadline, timeout)
        case .interim(let head):
            // After ten interim responses, a report of the progress of an upload replaces the previous one.
            if head.status == 104, interim.count > 10, interim.last?.status == 104 { interim.removeLast() }
            interim.append(head)
            try report(head, runner, exchange)
            return .interim
        case .head(let head, let framing):
            if shouldResend(runner, after: head) {
                runner.control.tracer?.repeated(interim + [head])
                interim = []
                exchange.finish()
                wantedRepeats += 1
                // The connection has just carried a response, so it works and may be reused.
                needsFreshConnection = false
                return .again
            }
            let codings: [ContentCoding]
            do throws(ContentDecodingError) {
                // Without a body nothing is decoded, even if the head names a coding.
                codings = framing == .none || framing == .length(0) ? [] : try runner.call.codings(of: head)
            } catch { throw ExchangeError(cause: .coding(error), phase: .receivingBody, wasSent: true) }
            let length: UInt64? =
                switch framing {
                case .none: 0
                case .length(let count): count
                case .chunked, .untilClose: nil
                }
            runner.control.expectBody(of: length)
            return .answer(
                StreamedResponse(
                    // A 415 after an uncompressed body does not reject the coding, so it must not cause a repetition.
                    call: isCompressed ? runner.call : runner.call.uncompressed, channel: .exchange(exchange),
                    head: head, codings: codings,
                    expectedContentLength: length, hasTrailers: framing == .chunked, interim: interim, attempts: number,
                    waited: waited))
        }
    }

    /// Reports an interim response, while no lock is held.
    private func report(_ head: ResponseHead, _ runner: CallRunner, _ exchange: Exchange) throws {
        runner.control.tracer?.interim(head, exchange.connection.stream.information, exchange.isReused)
        runner.call.observer?.emit(.interimResponseReceived(status: head.status))
        runner.call.options.onInterimResponse?(HeadConversion.response(head))
        // The final response may already be in the buffer, so that no wait would detect the cancellation.
        if runner.control.isCancelled { throw ExchangeError(cause: .cancelled, phase: .awaitingHead, wasSent: true) }
    }

    /// Whether the response requires the same request in another form.
    private mutating func shouldResend(_ runner: CallRunner, after head: ResponseHead) -> Bool {
        guard head.status == 417 || head.status == 407 else { return false }
        let call = runner.call
        if head.status == 417, expectsContinue, call.body.rewind() {
            // The server does not support the expectation, and has not read the body (RFC 9110 §15.5.18).
            composer.allowsExpectation = false
            call.logRepetition("417, without Expect", attempt: number + 1)
            return true
        }
        if head.status == 407, !hasAuthorizedProxy,
            let authorization = ProxyAuthorization(call: call, dialer: runner.dialer),
            let value = authorization.answer(to: head, rejected: composer.proxyAuthorization)
        {
            composer.proxyAuthorization = value
            hasAuthorizedProxy = true
            call.logRepetition("407, with credentials", attempt: number + 1)
            return true
        }
        return false
    }

    /// Prepares another attempt after a failed exchange, or throws the error.
    @inline(never) mutating func handle(_ runner: CallRunner, _ error: ExchangeError, _ exchange: Exchange) throws {
        let call = runner.call
        let hasReceivedAnyByte = exchange.hasReceivedAnyByte
        exchange.finish()
        if case .cancelled = error.cause { throw CancellationError() }
        // A request that was not sent still has its body. A body that was sent must be readable again.
        guard number - wantedRepeats == 1,
            call.maySendAgain(after: error, isReused: exchange.isReused, hasReceivedAnyByte: hasReceivedAnyByte),
            request != nil || call.body.rewind()
        else {
            var failure = HTTPError(error, call: call, attempts: number)
            failure.connection = FailedConnection(
                .measured(DeferredMetrics.Measurement(exchange, of: call, waited: waited, attempts: number)))
            throw failure
        }
        needsFreshConnection = true
        // The server has most likely closed the other idle connections to the host, too.
        runner.core.pool.closeIdle(destination: call.destination, dialer: runner.dialer, proxy: call.proxy)
        call.logRepetition("the reused connection was closed", attempt: number + 1)
    }
}

/// The calls of a session, or of its views, that share one bandwidth limit. Releasing the group removes the limit.
package final class BandwidthGroup: Sendable {
    private let limiter: BandwidthLimiter
    package let number: UInt64

    package init(_ session: HTTPSession, limit: BandwidthLimit) {
        limiter = session.core.bandwidth
        number = limiter.enter(limit)
    }

    deinit { limiter.leave(number) }

    /// Returns how the limits of the group and of the session throttled the bodies received since the last check.
    package func checkThrottling() -> BandwidthThrottling { limiter.takeThrottling(transfer: number, .down) }

    /// Changes the limit, also for waiting transfers.
    package func setLimit(_ limit: BandwidthLimit) { limiter.setLimit(limit, ofTransfer: number) }
}
