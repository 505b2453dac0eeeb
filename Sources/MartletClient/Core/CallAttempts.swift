import Logging
import MartletConnections
import MartletTransport
import MartletWire

/// The requests that a call's head takes, and what is decided between the waits for it.
///
/// A class, and its steps synchronous functions that are not inlined: what an asynchronous function has in hand while it
/// waits, and all that was inlined into it, is kept for as long as it waits, for each request in flight.
final class CallAttempts {
    /// What comes next.
    enum Step {
        /// The exchange can begin.
        case ready
        /// The head is there.
        case answer(Answer)
        /// The request is sent once more, in an exchange of its own.
        case again
        /// The head has yet to come.
        case wait(until: MonotonicTime, ExchangeError.Clock)

        /// Whether it is a wait.
        var isWait: Bool { if case .wait = self { true } else { false } }
    }

    private let core: SessionCore
    private let dialer: Dialer
    private let call: Call
    private let control: TransferControl
    private var composer: RequestComposer
    private let convincing: ProxyConvincing?
    private var hasConvinced = false
    /// How many attempts have begun.
    private(set) var count = 0
    /// Attempts that an answer asked for; not of the idle race.
    private var wantedRepeats = 0
    private var interim: [ResponseHead] = []
    /// Opened and not begun to be read.
    private var unused: RequestComposer.PreparedBody?
    /// Composed and not begun to be sent.
    private var request: ExchangeRequest?
    private var expectsContinue = false
    private var waited: MonotonicTime

    /// Attempts of which none has begun.
    init(_ runner: CallRunner) {
        core = runner.core
        dialer = runner.dialer
        call = runner.call
        control = runner.control
        waited = call.start
        composer = RequestComposer(call: call)
        convincing = ProxyConvincing(call: call, dialer: dialer)
        composer.proxyAuthorization = convincing?.unasked
    }

    /// Begins another attempt.
    /// - Returns: Whether its body has to be opened first.
    @inline(never)
    func begin() throws -> Bool {
        count += 1
        if count > 1, control.isCancelled { throw CancellationError() }
        if unused == nil { unused = try composer.prepareBodyAtOnce() }
        return unused == nil
    }

    /// Opens the body.
    func openBody() async throws {
        unused = try await composer.prepareBody()
    }

    /// Composes the request.
    ///
    /// Nothing is read from the body before the first write, so that one which can be read only once outlives a connection
    /// that does not take a byte.
    @inline(never)
    func compose() throws {
        guard let unused else { return }
        let request = try composer.compose(unused)
        control.watcher?.sent(request.head)
        control.upload?.restart(of: request.bodyLength)
        call.observer?.upload?.restart(of: request.bodyLength)
        expectsContinue = request.expectsContinue
        self.request = request
    }

    /// Begins the exchange on a connection.
    @inline(never)
    func exchange(on lease: Lease, hasWaited: Bool) -> Exchange {
        waited = hasWaited ? MonotonicTime.now() : call.start
        let exchange = makeExchange(lease)
        control.begin(.exchanging(exchange))
        call.observer?.connected(lease.connection.stream.information, isReused: exchange.isReused)
        return exchange
    }

    /// Goes on as far as possible without waiting: sends the request, unless that was done, and takes the head.
    @inline(never)
    func step(_ exchange: Exchange) throws -> Step {
        do throws(ExchangeError) {
            if let request {
                self.request = nil
                try exchange.send(request)
                unused = nil
                call.observer?.requestSent()
            }
            while true {
                switch try exchange.tryReceiveHead() {
                case .head(let head, let framing, let before):
                    interim += before
                    if isRefused(head, exchange) { return .again }
                    return .answer(try answer(exchange, head, framing))
                case .wouldBlock(let deadline, let clock):
                    if core.waitsAwake, exchange.arrives(within: core.briefWait) { continue }
                    return .wait(until: deadline, clock)
                }
            }
        } catch {
            try judge(error, exchange)
            return .again
        }
    }

    /// Whether an answer asks for the same request in another form.
    private func isRefused(_ head: ResponseHead, _ exchange: Exchange) -> Bool {
        if head.status == 417, expectsContinue, call.body.replay != .once {
            // The server does not know the expectation, and has not read the body (RFC 9110 §15.5.18).
            exchange.finish()
            composer.allowsExpectation = false
            wantedRepeats += 1
            call.settings.configuration.logger.debug("417: sending once more without Expect")
            return true
        }
        if head.status == 407, !hasConvinced, let convincing,
            let value = convincing.answer(to: head, refused: composer.proxyAuthorization)
        {
            exchange.finish()
            composer.proxyAuthorization = value
            hasConvinced = true
            wantedRepeats += 1
            call.settings.configuration.logger.debug("407: sending once more with credentials")
            return true
        }
        return false
    }

    /// Decides whether a failed exchange is followed by another; throws where it is not.
    @inline(never)
    func judge(_ error: ExchangeError, _ exchange: Exchange) throws {
        let hasReceivedAnyByte = exchange.hasReceivedAnyByte
        exchange.finish()
        if case .cancelled = error.cause { throw CancellationError() }
        // Repeats that an answer asked for are not of the idle race.
        guard count - wantedRepeats == 1,
            call.rule.allowsResending(
                after: error, isReused: exchange.isReused, hasReceivedAnyByte: hasReceivedAnyByte)
        else { throw HTTPError(error, call: call, attempts: count) }
        // Its companions in the pool are as old and have most likely met the same end.
        core.pool.closeIdle(destination: call.destination, dialer: dialer, proxy: call.proxy)
        call.settings.configuration.logger.debug(
            "a kept connection had died; sending once more",
            metadata: ["origin": "\(call.url.origin)", "attempt": "\(count + 1)"])
    }

    /// The codings to undo.
    private func codings(of head: ResponseHead) throws(ExchangeError) -> [ContentCoding] {
        guard call.undoesCoding, head.fields.contains("content-encoding") else { return [] }
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

    /// Asks for a connection.
    @inline(never)
    func acquire() throws -> ConnectionPool.Acquisition {
        do throws(ExchangeError) {
            return try core.pool.acquire(
                ConnectionPool.Request(
                    destination: call.destination, dialer: dialer, proxy: call.proxy,
                    priority: priority, order: call.options.order ?? call.settings.configuration.order,
                    poolTimeout: call.timeouts.poolWait, connectTimeout: call.timeouts.connect,
                    totalDeadline: call.totalDeadline,
                    start: count == 1 ? call.start : MonotonicTime.now()))
        } catch {
            throw HTTPError(error, call: call, attempts: count)
        }
    }

    private var priority: RequestPriority {
        // Who was not handed the call cannot have changed it: no need to look.
        (control.isExposed ? control.priority : nil) ?? call.options.priority
            ?? call.settings.configuration.priority
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
            gate: control.isExposed ? control : nil,
            pace: TransferPace(
                core.bandwidth,
                lane: BandwidthLane(
                    host: call.url.host,
                    transfer: control.transferNumber(under: call.options.bandwidth, core.bandwidth))))
    }

    private func answer(
        _ exchange: Exchange, _ head: ResponseHead, _ framing: BodyFraming
    ) throws(ExchangeError) -> Answer {
        let codings = try codings(of: head)
        let length: UInt64? =
            switch framing {
            case .none: 0
            case .length(let count): count
            case .chunked, .untilClose: nil
            }
        control.download?.update { $0.totalByteCount = length }
        return Answer(
            call: call, exchange: exchange, connection: exchange.connection, head: head,
            codings: codings, announcedByteCount: length, hasTrailers: framing == .chunked, interim: interim,
            attempts: count, waited: waited)
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
