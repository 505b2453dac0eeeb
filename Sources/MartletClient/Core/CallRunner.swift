import Logging
import MartletConnections
import MartletTransport
import MartletWire

/// Runs one call as far as the response's head: connection, request, head; again on a fresh connection where a kept one
/// turned out dead, and without its expectation after a 417.
struct CallRunner: Sendable {
    let core: SessionCore
    let dialer: Dialer
    let call: Call
    let control: TransferControl
    /// Asked before each write and each read; `nil` for the control, where somebody holds it.
    var gate: (any TransferGate)?

    /// Sends the request and waits for the final head.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func run() async throws -> Answer {
        var attempts = 0
        var composer = RequestComposer(call: call)
        composer.proxyAuthorization = ProxyConvincing(call: call, dialer: dialer)?.unasked
        var hasConvinced = false
        /// Attempts that an answer asked for; not of the idle race.
        var wantedRepeats = 0
        var interim: [ResponseHead] = []
        /// Opened and not begun to be read.
        var unused: RequestComposer.PreparedBody?
        while true {
            attempts += 1
            if attempts > 1, control.isCancelled { throw CancellationError() }
            let prepared: RequestComposer.PreparedBody
            if let kept = unused {
                prepared = kept
            } else if let present = try composer.prepareBodyAtOnce() {
                prepared = present
            } else {
                prepared = try await composer.prepareBody()
            }
            // Nothing is read from the body before the first write, so that one which can be read only once outlives a
            // connection that does not take a byte.
            unused = prepared
            let request = try composer.compose(prepared)
            control.watcher?.sent(request.head)
            control.upload?.restart(of: request.bodyLength)
            call.observer?.upload?.restart(of: request.bodyLength)
            if control.isExposed { try await hold() }
            let lease: Lease
            let waited: MonotonicTime
            switch try acquire(attempts) {
            case .lease(let idle):
                lease = idle
                waited = call.start
            case .ticket(let ticket):
                control.begin(.waiting(ticket))
                lease = try await connection(for: ticket, attempts)
                waited = MonotonicTime.now()
            }
            let exchange = makeExchange(lease)
            control.begin(.exchanging(exchange))
            call.observer?.connected(lease.connection.stream.information, isReused: exchange.isReused)
            do throws(ExchangeError) {
                if control.isExposed { try await exchange.waitWhilePaused() }
                try exchange.send(request)
                unused = nil
                call.observer?.requestSent()
                var received: (head: ResponseHead, framing: BodyFraming)?
                while received == nil {
                    if control.isExposed { try await exchange.waitWhilePaused() }
                    switch try exchange.tryReceiveHead() {
                    case .head(let head, let framing, let before):
                        interim += before
                        received = (head, framing)
                    case .wouldBlock(let deadline, let clock):
                        if core.waitsAwake, exchange.arrives(within: core.briefWait) { continue }
                        try await exchange.wait(until: deadline, clock)
                    }
                }
                guard let (head, framing) = received else { continue }
                if head.status == 417, request.expectsContinue, call.body.replay != .once {
                    // The server does not know the expectation, and has not read the body (RFC 9110 §15.5.18).
                    exchange.finish()
                    composer.allowsExpectation = false
                    wantedRepeats += 1
                    call.settings.configuration.logger.debug("417: sending once more without Expect")
                    continue
                }
                if head.status == 407, !hasConvinced,
                    let convincing = ProxyConvincing(call: call, dialer: dialer),
                    let value = convincing.answer(to: head, refused: composer.proxyAuthorization)
                {
                    exchange.finish()
                    composer.proxyAuthorization = value
                    hasConvinced = true
                    wantedRepeats += 1
                    call.settings.configuration.logger.debug("407: sending once more with credentials")
                    continue
                }
                let codings: [ContentCoding]
                do throws(ContentDecodingError) {
                    codings = try call.codings(of: head)
                } catch {
                    throw ExchangeError(cause: .coding(error), phase: .receivingBody, wasSent: true)
                }
                return answer(
                    exchange, head, framing, codings, interim, attempts: attempts, waited: waited,
                    connection: lease.connection)
            } catch {
                try judge(error, exchange, attempts, attempts - wantedRepeats)
            }
        }
    }

    /// Decides whether a failed exchange is followed by another; throws where it is not.
    /// - Parameter turn: The number of the attempt among those that no answer asked for.
    private func judge(
        _ error: ExchangeError, _ exchange: Exchange, _ attempts: Int, _ turn: Int
    ) throws {
        let hasReceivedAnyByte = exchange.hasReceivedAnyByte
        exchange.finish()
        if case .cancelled = error.cause { throw CancellationError() }
        guard turn == 1,
            call.rule.allowsResending(
                after: error, isReused: exchange.isReused, hasReceivedAnyByte: hasReceivedAnyByte)
        else { throw HTTPError(error, call: call, attempts: attempts) }
        // Its companions in the pool are as old and have most likely met the same end.
        core.pool.closeIdle(destination: call.destination, dialer: dialer, proxy: call.proxy)
        call.settings.configuration.logger.debug(
            "a kept connection had died; sending once more",
            metadata: ["origin": "\(call.url.origin)", "attempt": "\(attempts + 1)"])
    }

    /// Waits while the call is paused, before it has a connection.
    private func hold() async throws {
        guard control.isPaused else { return }
        control.begin(.none)
        await control.waitWhilePaused(until: call.totalDeadline, on: core.loop)
        if control.isCancelled || Task.isCancelled { throw CancellationError() }
        guard MonotonicTime.now() < call.totalDeadline else {
            throw HTTPError(
                .timedOut, phase: .preparing, message: "the total clock ran out while the call was paused",
                origin: call.url.origin.description, clock: .total,
                elapsed: MonotonicTime.now().since(call.start))
        }
    }

    private func acquire(_ attempts: Int) throws -> ConnectionPool.Acquisition {
        do throws(ExchangeError) {
            return try core.pool.acquire(
                ConnectionPool.Request(
                    destination: call.destination, dialer: dialer, proxy: call.proxy,
                    priority: priority, order: call.options.order ?? call.settings.configuration.order,
                    poolTimeout: call.timeouts.poolWait, connectTimeout: call.timeouts.connect,
                    totalDeadline: call.totalDeadline,
                    start: attempts == 1 ? call.start : MonotonicTime.now()))
        } catch {
            throw HTTPError(error, call: call, attempts: attempts)
        }
    }

    private var priority: RequestPriority {
        // Who was not handed the call cannot have changed it: no need to look.
        (control.isExposed ? control.priority : nil) ?? call.options.priority
            ?? call.settings.configuration.priority
    }

    private func connection(for ticket: ConnectionPool.Ticket, _ attempts: Int) async throws -> Lease {
        do throws(ExchangeError) {
            return try await ticket.lease()
        } catch {
            if control.isCancelled { throw CancellationError() }
            throw call.failure(error, attempts: attempts)
        }
    }

    private func makeExchange(_ lease: Lease) -> Exchange {
        var onUpload: (@Sendable (Int) -> Void)?
        let upload = control.upload
        let observed = call.observer?.upload
        if upload != nil || observed != nil {
            onUpload = { count in
                upload?.update { $0.completedByteCount += UInt64(count) }
                observed?.update { $0.completedByteCount += UInt64(count) }
            }
        }
        return Exchange(
            lease: lease,
            clocks: ExchangeClocks(
                head: call.timeouts.head, idle: call.timeouts.idle, totalDeadline: call.totalDeadline),
            loop: core.loop,
            onUpload: onUpload,
            gate: gate ?? (control.isExposed ? control : nil),
            pace: TransferPace(
                core.bandwidth,
                lane: BandwidthLane(
                    host: call.url.host,
                    transfer: call.options.bandwidthGroup?.number
                        ?? control.transferNumber(under: call.options.bandwidth, core.bandwidth))))
    }

    private func answer(
        _ exchange: Exchange, _ head: ResponseHead, _ framing: BodyFraming, _ codings: [ContentCoding],
        _ interim: [ResponseHead], attempts: Int, waited: MonotonicTime, connection: HTTP1Connection
    ) -> Answer {
        let length: UInt64? =
            switch framing {
            case .none: 0
            case .length(let count): count
            case .chunked, .untilClose: nil
            }
        control.download?.update { $0.totalByteCount = length }
        return Answer(
            call: call, channel: .exchange(exchange), connection: connection, head: head, codings: codings,
            announcedByteCount: length, hasTrailers: framing == .chunked, interim: interim,
            attempts: attempts,
            waited: waited)
    }
}

extension ExchangeRequest {
    /// The body's length, where it is known.
    var bodyLength: UInt64? {
        switch body {
        case .none: 0
        case .bytes(let bytes): UInt64(bytes.count)
        case .source(_, let length): length
        }
    }
}
