import MartletCredentials
import MartletContent
package import HTTPTypes
import Logging
package import MartletConnections
import MartletTransport
package import MartletWire

/// What has become of a call, from one wait of its ``CallRunner`` to the next, and what is done in between.
///
/// None of its methods waits, and none is made part of the function that does: what they need for a moment lies on the
/// thread's stack, and not in a frame that each call in flight holds. They are handed the runner each time, since what it
/// refers to would be counted once more for each call if it were kept here.
struct CallAttempts {
    /// What one look for the head gave.
    enum Reception {
        /// The answer.
        case answer(Answer)
        /// Nothing that counts: the request is to be sent once more.
        case again
        /// Nothing yet.
        case wait(until: MonotonicTime, ExchangeError.Clock)
    }

    /// How many times the request was begun.
    private(set) var number = 0
    /// Composes the request for the next attempt.
    private(set) var composer: RequestComposer
    private var hasConvinced = false
    /// Attempts that an answer asked for; not of the idle race.
    private var wantedRepeats = 0
    private var interim: [ResponseHead] = []
    /// Whether a connection that has carried an exchange will not do: one such has died under this request, which is sent once
    /// more on a fresh one, and on no other (RFC 9112 §9.3.1).
    private var needsFreshConnection = false
    /// Composed and not sent. Nothing is read from its body before the first write, so that one which can be read only once
    /// outlives a connection that does not take a byte.
    private var request: ExchangeRequest?
    private var expectsContinue = false
    /// When a connection was asked for.
    private(set) var asked: MonotonicTime
    /// The start of the call and what was waited for a connection: what came before it was asked for is no wait.
    private var waited: MonotonicTime

    /// Those of a call that was not begun.
    @inline(never)
    init(_ runner: CallRunner) {
        // Made at once as it is to be: what is changed in place afterwards is copied as a whole.
        composer = RequestComposer(
            call: runner.call,
            proxyAuthorization: runner.call.isForwarded
                ? ProxyConvincing(call: runner.call, dialer: runner.dialer)?.unasked : nil)
        asked = runner.call.start
        waited = runner.call.start
    }

    // MARK: The request

    /// Begins an attempt, and composes its request.
    /// - Returns: Whether the body was there, as most are. Else it has to be opened, and be handed to ``compose(_:_:)``.
    @inline(never)
    mutating func prepare(_ runner: CallRunner) throws -> Bool {
        number += 1
        if number > 1, runner.control.isCancelled { throw CancellationError() }
        if request == nil {
            guard let body = try composer.prepareBodyAtOnce() else { return false }
            request = try composer.compose(body)
        }
        announce(runner)
        return true
    }

    /// Composes the request around a body that was opened.
    @inline(never)
    mutating func compose(_ runner: CallRunner, _ body: RequestComposer.PreparedBody) throws {
        request = try composer.compose(body)
        announce(runner)
    }

    private mutating func announce(_ runner: CallRunner) {
        guard let request else { return }
        expectsContinue = request.expectsContinue
        runner.control.watcher?.sent(request.head)
        // A body that was sent on the way to an answer without one, as behind a 303, stays what was sent.
        if case .none = request.body, !runner.call.hops.isEmpty { return }
        runner.control.upload?.restart(of: request.bodyLength)
        runner.call.observer?.upload?.restart(of: request.bodyLength)
    }

    /// Sends the request, or as much of it as the socket takes at once.
    /// - Throws: ``ExchangeError``.
    @inline(never)
    mutating func send(_ runner: CallRunner, on exchange: Exchange) throws {
        guard let request else { return }
        if case .source = request.body {
            // The source may be code of the program, which runs in a task that begins here.
            try UserCode.$enclosingCalls.withValue(UserCode.enclosingCalls + [runner.control]) {
                try exchange.send(request)
            }
        } else {
            try exchange.send(request)
        }
        self.request = nil
        runner.call.observer?.requestSent()
    }

    // MARK: The connection

    /// Whether a connection that was waited for is not the one that is needed, or has ended since it was given back.
    func refuses(_ lease: Lease, _ call: Call) -> Bool {
        guard lease.connection.hasCarriedExchange else { return false }
        return needsFreshConnection || (!call.maySendAgain && !lease.isQuiet)
    }

    /// Asks for a connection.
    /// - Parameter refused: One that was waited for and will not do.
    @inline(never)
    mutating func acquire(
        _ runner: CallRunner, insteadOf refused: Lease? = nil
    ) throws -> ConnectionPool.Acquisition {
        // Not the start of the call: redirects, credentials, middleware and pauses may have come before.
        let now = MonotonicTime.now()
        if refused == nil { asked = now }
        return try acquire(runner, insteadOf: refused, now: now, arrival: nil)
    }

    /// Asks for a connection once more, when the call goes on after a pause: the pause is no wait.
    /// - Parameter former: What was given up for the pause.
    @inline(never)
    mutating func acquire(
        _ runner: CallRunner, again former: ConnectionPool.Acquisition, pausedSince: MonotonicTime
    ) throws -> ConnectionPool.Acquisition {
        let now = MonotonicTime.now()
        asked = asked.advanced(by: now.since(pausedSince))
        var arrival: UInt64?
        if case .ticket(let ticket) = former { arrival = ticket.arrival }
        return try acquire(runner, insteadOf: nil, now: now, arrival: arrival)
    }

    private func acquire(
        _ runner: CallRunner, insteadOf refused: Lease?, now: MonotonicTime, arrival: UInt64?
    ) throws -> ConnectionPool.Acquisition {
        let call = runner.call
        var request = ConnectionPool.Request(
            priority: runner.priority, order: call.options.order ?? call.settings.configuration.order,
            poolTimeout: call.timeouts.poolWait, connectTimeout: call.timeouts.connect,
            totalDeadline: call.totalDeadline,
            start: now, isFresh: needsFreshConnection, mustLook: !call.maySendAgain)
        request.waited = now.since(asked)
        request.arrival = arrival
        do throws(ExchangeError) {
            guard let refused else {
                return try runner.core.pool.acquire(
                    call.destination, by: runner.dialer, through: call.proxy, request)
            }
            return try runner.core.pool.acquire(
                call.destination, by: runner.dialer, through: call.proxy, request, insteadOf: refused)
        } catch {
            throw HTTPError(error, call: call, attempts: number)
        }
    }

    /// Begins the exchange on a connection.
    /// - Parameter waited: Since when there is one.
    @inline(never)
    mutating func begin(_ runner: CallRunner, on lease: Lease, since waited: MonotonicTime) -> Exchange {
        self.waited = runner.call.start.advanced(by: waited.since(asked))
        let exchange = makeExchange(runner, lease)
        runner.control.begin(.exchanging(exchange))
        runner.control.watcher?.connected(exchange.isReused ? [] : lease.connection.tunnelHeads)
        runner.call.observer?.connected(lease.connection.stream.information, isReused: exchange.isReused)
        return exchange
    }

    private func makeExchange(_ runner: CallRunner, _ lease: Lease) -> Exchange {
        var onUpload: (@Sendable (Int) -> Void)?
        let upload = runner.control.upload
        let observed = runner.call.observer?.upload
        if upload != nil || observed != nil {
            onUpload = { count in
                upload?.update { $0.completedByteCount += UInt64(count) }
                observed?.update { $0.completedByteCount += UInt64(count) }
            }
        }
        return Exchange(
            lease: lease,
            clocks: ExchangeClocks(
                head: runner.call.timeouts.head, idle: runner.call.timeouts.idle,
                totalDeadline: runner.call.totalDeadline), loop: runner.core.loop, onUpload: onUpload,
            gate: runner.gate ?? (runner.control.isExposed ? runner.control : nil),
            pace: TransferPace(
                runner.core.bandwidth,
                lane: BandwidthLane(
                    host: runner.call.url.host,
                    transfer: runner.call.options.bandwidthGroup?.number
                        ?? runner.control.transferNumber(
                            under: runner.call.options.bandwidth, runner.core.bandwidth))))
    }

    // MARK: The answer

    /// Looks for the head.
    /// - Throws: ``ExchangeError``.
    @inline(never)
    mutating func receive(_ runner: CallRunner, from exchange: Exchange) throws -> Reception {
        switch try exchange.tryReceiveHead() {
        case .wouldBlock(let deadline, let clock): return .wait(until: deadline, clock)
        case .head(let head, let framing, let before):
            if !before.isEmpty { interim += before }
            if isToBeRepeated(runner, after: head) {
                runner.control.watcher?.repeated(interim + [head])
                interim = []
                exchange.finish()
                wantedRepeats += 1
                // What has just answered is good.
                needsFreshConnection = false
                return .again
            }
            let codings: [ContentCoding]
            do throws(ContentDecodingError) {
                // Where no body comes, nothing is decoded, whatever is said of it.
                codings = framing == .none || framing == .length(0) ? [] : try runner.call.codings(of: head)
            } catch {
                throw ExchangeError(cause: .coding(error), phase: .receivingBody, wasSent: true)
            }
            return .answer(answer(runner, exchange, head, framing, codings))
        }
    }

    /// Whether a head asks for the same request in another form.
    private mutating func isToBeRepeated(_ runner: CallRunner, after head: ResponseHead) -> Bool {
        guard head.status == 417 || head.status == 407 else { return false }
        let call = runner.call
        if head.status == 417, expectsContinue, call.body.takeBack() {
            // The server does not know the expectation, and has not read the body (RFC 9110 §15.5.18).
            composer.allowsExpectation = false
            call.settings.configuration.logger.debug("417: sending once more without Expect")
            return true
        }
        if head.status == 407, !hasConvinced,
            let convincing = ProxyConvincing(call: call, dialer: runner.dialer),
            let value = convincing.answer(to: head, refused: composer.proxyAuthorization)
        {
            composer.proxyAuthorization = value
            hasConvinced = true
            call.settings.configuration.logger.debug("407: sending once more with credentials")
            return true
        }
        return false
    }

    private func answer(
        _ runner: CallRunner, _ exchange: Exchange, _ head: ResponseHead, _ framing: BodyFraming,
        _ codings: [ContentCoding]
    ) -> Answer {
        let length: UInt64? =
            switch framing {
            case .none: 0
            case .length(let count): count
            case .chunked, .untilClose: nil
            }
        runner.control.download?.update { $0.totalByteCount = length }
        return Answer(
            call: runner.call, channel: .exchange(exchange), head: head, codings: codings,
            announcedByteCount: length, hasTrailers: framing == .chunked, interim: interim, attempts: number,
            waited: waited)
    }

    /// Decides whether a failed exchange is followed by another; throws where it is not.
    @inline(never)
    mutating func judge(_ runner: CallRunner, _ error: ExchangeError, _ exchange: Exchange) throws {
        let call = runner.call
        let hasReceivedAnyByte = exchange.hasReceivedAnyByte
        exchange.finish()
        if case .cancelled = error.cause { throw CancellationError() }
        // Of those that no answer asked for, this was the first.
        guard number - wantedRepeats == 1,
            call.rule.allowsResending(
                after: error, isReused: exchange.isReused, hasReceivedAnyByte: hasReceivedAnyByte)
        else { throw failure(error, exchange, call) }
        // What was composed and not sent has the body as it is; else it is opened anew, where nothing was read of it.
        guard request != nil || call.body.takeBack() else { throw failure(error, exchange, call) }
        needsFreshConnection = true
        // Its companions in the pool are as old and have most likely met the same end.
        runner.core.pool.closeIdle(destination: call.destination, dialer: runner.dialer, proxy: call.proxy)
        call.settings.configuration.logger.debug(
            "a kept connection had died; sending once more",
            metadata: ["origin": "\(call.url.origin)", "attempt": "\(number + 1)"])
    }

    private func failure(_ error: ExchangeError, _ exchange: Exchange, _ call: Call) -> HTTPError {
        var failure = HTTPError(error, call: call, attempts: number)
        failure.connection = FailedConnection(
            exchange, waited: waited, call: call, attempts: number + call.hops.count)
        return failure
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

/// Calls of a session, or of its views, that are under one limit of bandwidth together. It ends with its last reference.
package final class BandwidthGroup: Sendable {
    private let governor: BandwidthGovernor
    package let number: UInt64

    /// A group of calls of a session.
    package init(_ session: HTTPSession, limit: BandwidthLimit) {
        governor = session.core.bandwidth
        number = governor.enter(limit)
    }

    deinit { governor.leave(number) }

    /// What limits, this one and the session's, did to the bodies received since the last look.
    package func look() -> BandwidthHold { governor.hold(transfer: number, .down) }

    /// Changes the limit; those that wait are judged anew at once.
    package func setLimit(_ limit: BandwidthLimit) { governor.setLimit(limit, ofTransfer: number) }
}

/// What is known of a connection on which a request, or the way to its server, failed before there was a response.
///
/// A class, so that errors stay small.
package final class FailedConnection: Sendable {
    /// When its parts were done, and what moved.
    package let metrics: HTTPMetrics
    /// The heads of what a proxy answered to CONNECT, where it opened a tunnel and what followed failed.
    package let tunnelHeads: [ResponseHead]

    /// A connection that could not be opened to its end.
    init(_ reached: ReachedConnection, tunnelHeads: [ResponseHead], call: Call, attempts: Int) {
        self.tunnelHeads = tunnelHeads
        metrics = HTTPMetrics(
            MetricsSource.Measurement(
                start: call.start, waited: call.start, ended: MonotonicTime.now(), attempts: attempts,
                hops: call.hops, proxy: call.proxy?.description, timeline: ExchangeTimeline(),
                connection: reached.information, dial: reached.timings))
    }

    /// The connection of an exchange that gave no head.
    init(_ exchange: Exchange, waited: MonotonicTime, call: Call, attempts: Int) {
        tunnelHeads = []
        metrics = HTTPMetrics(
            MetricsSource.Measurement(
                start: call.start, waited: waited, ended: MonotonicTime.now(), attempts: attempts,
                hops: call.hops, proxy: call.proxy?.description, timeline: exchange.timeline,
                connection: exchange.connection.stream.information,
                dial: exchange.isReused ? nil : exchange.connection.timings))
    }
}

/// Whether a request whose kept connection turned out dead is sent again (RFC 9110 §9.2.2, RFC 9112 §9.3.1).
///
/// A server may close an idle connection in the very moment a request goes out on it. Nothing was processed then, as a
/// rule, but the client cannot know; so only what may safely happen twice is repeated, and only where not a single byte of
/// an answer came. curl and OkHttp repeat a POST as well; Go does not, and neither does this.
struct IdleRaceRule {
    /// The request's method.
    var method: HTTPRequest.Method
    /// Whether it has an `Idempotency-Key` field, or the caller allowed it.
    var isDeclaredSafe: Bool
    /// Whether its body can be sent again.
    var isReplayable: Bool

    /// Whether to send it again.
    func allowsResending(after error: ExchangeError, isReused: Bool, hasReceivedAnyByte: Bool) -> Bool {
        guard isReused, !hasReceivedAnyByte, error.isConnectionLoss else { return false }
        if !error.wasSent { return true }
        return isReplayable && (isDeclaredSafe || method.isIdempotent)
    }
}

extension HTTPRequest.Method {
    /// Whether the method's effect is the same however often it is carried out (RFC 9110 §9.2.2).
    package var isIdempotent: Bool {
        switch self {
        case .get, .head, .options, .trace, .put, .delete: true
        default: false
        }
    }
}
