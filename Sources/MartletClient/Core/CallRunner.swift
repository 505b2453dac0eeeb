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

    /// A response whose body has not been read.
    struct Answer: Sendable {
        var exchange: Exchange
        var head: ResponseHead
        var codings: [ContentCoding]
        var announcedByteCount: UInt64?
        var metrics: HTTPMetrics
        var interim: [ResponseHead]
    }

    /// Sends the request and waits for the final head.
    /// - Throws: ``HTTPError``, or `CancellationError`.
    func run() async throws -> Answer {
        var attempts = 0
        var composer = RequestComposer(call: call)
        var interim: [ResponseHead] = []
        /// Opened and not begun to be read.
        var unused: RequestComposer.PreparedBody?
        while true {
            attempts += 1
            if control.isCancelled { throw CancellationError() }
            let prepared: RequestComposer.PreparedBody
            if let kept = unused { prepared = kept } else { prepared = try await composer.prepareBody() }
            // Nothing is read from the body before the first write, so that one which can be read only once outlives a
            // connection that does not take a byte.
            unused = prepared
            let request = try composer.compose(prepared)
            control.upload?.update { progress in
                progress.completedByteCount = 0
                progress.totalByteCount = request.bodyLength
            }
            let lease = try await connect(attempts)
            let waited = MonotonicTime.now()
            let exchange = makeExchange(lease)
            control.begin(.exchanging(exchange))
            do throws(ExchangeError) {
                try exchange.send(request)
                unused = nil
                let (head, framing) = try await exchange.receiveHead()
                interim += exchange.interimResponses
                if head.status == 417, request.expectsContinue, call.body.replay != .once {
                    // The server does not know the expectation, and has not read the body (RFC 9110 §15.5.18).
                    exchange.finish()
                    composer.allowsExpectation = false
                    call.settings.configuration.logger.debug("417: sending once more without Expect")
                    continue
                }
                var answer = describe(
                    exchange, head, framing, attempts: attempts, waited: waited, lease: lease)
                answer.interim = interim
                answer.codings = try codings(of: head, exchange, attempts)
                return answer
            } catch {
                try judge(error, exchange, attempts)
            }
        }
    }

    /// Decides whether a failed exchange is followed by another; throws where it is not.
    private func judge(_ error: ExchangeError, _ exchange: Exchange, _ attempts: Int) throws {
        let hasReceivedAnyByte = exchange.hasReceivedAnyByte
        exchange.finish()
        if case .cancelled = error.cause { throw CancellationError() }
        guard attempts == 1,
            call.rule.allowsResending(
                after: error, isReused: exchange.isReused, hasReceivedAnyByte: hasReceivedAnyByte)
        else { throw HTTPError(error, call: call, attempts: attempts) }
        // Its companions in the pool are as old and have most likely met the same end.
        core.pool.closeIdle(destination: call.destination, dialer: dialer)
        call.settings.configuration.logger.debug(
            "a kept connection had died; sending once more",
            metadata: ["origin": "\(call.url.origin)", "attempt": "\(attempts + 1)"])
    }

    /// The codings to undo.
    private func codings(
        of head: ResponseHead, _ exchange: Exchange, _ attempts: Int
    ) throws(ExchangeError) -> [ContentCoding] {
        guard call.asksForCoding else { return [] }
        do throws(ContentDecodingError) {
            let values = head.fields.values(of: "content-encoding")
            return try ContentCodingPlan(
                fieldValues: values, limits: call.settings.configuration.decompressionLimits
            )
            .codings
        } catch {
            throw ExchangeError(cause: .coding(error), phase: .receivingBody, wasSent: true)
        }
    }

    private func connect(_ attempts: Int) async throws -> Lease {
        do throws(ExchangeError) {
            let acquisition = try core.pool.acquire(
                ConnectionPool.Request(
                    destination: call.destination, dialer: dialer,
                    priority: call.options.priority ?? call.settings.configuration.priority,
                    poolTimeout: call.timeouts.poolWait, connectTimeout: call.timeouts.connect,
                    totalDeadline: call.totalDeadline))
            switch acquisition {
            case .lease(let lease): return lease
            case .ticket(let ticket):
                control.begin(.waiting(ticket))
                return try await ticket.lease()
            }
        } catch {
            if control.isCancelled { throw CancellationError() }
            if case .cancelled = error.cause { throw CancellationError() }
            throw HTTPError(error, call: call, attempts: attempts)
        }
    }

    private func makeExchange(_ lease: Lease) -> Exchange {
        var onUpload: (@Sendable (Int) -> Void)?
        if let upload = control.upload {
            onUpload = { count in upload.update { $0.completedByteCount += UInt64(count) } }
        }
        return Exchange(
            lease: lease,
            clocks: ExchangeClocks(
                head: call.timeouts.head, idle: call.timeouts.idle, totalDeadline: call.totalDeadline),
            loop: core.loop,
            onUpload: onUpload,
            gate: control)
    }

    private func describe(
        _ exchange: Exchange, _ head: ResponseHead, _ framing: BodyFraming, attempts: Int,
        waited: MonotonicTime,
        lease: Lease
    ) -> Answer {
        var length: UInt64?
        switch framing {
        case .none: length = 0
        case .length(let count): length = count
        case .chunked, .untilClose: break
        }
        control.download?.update { $0.totalByteCount = length }
        var metrics = HTTPMetrics()
        metrics.attempts = attempts
        metrics.isConnectionReused = lease.isReused
        metrics.wait = waited.since(call.start)
        metrics.connection = lease.connection.stream.information
        if !lease.isReused {
            let timings = lease.connection.timings
            metrics.dns = timings.resolved.map { $0.since(timings.start) }
            metrics.connect = timings.connected.map { $0.since(timings.resolved ?? timings.start) }
            metrics.tls = timings.secured.map { $0.since(timings.connected ?? timings.start) }
        }
        let timeline = exchange.timeline
        metrics.firstByte = timeline.headReceived.map { $0.since(call.start) }
        metrics.sentByteCount = timeline.sentByteCount
        return Answer(
            exchange: exchange, head: head, codings: [], announcedByteCount: length, metrics: metrics,
            interim: [])
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
