import Logging
import MartletConnections
import MartletTransport
import Synchronization

/// How far a call has come: what its stages share.
///
/// The stages of a call run one after the other. A middleware that is no longer waited for may still run beside them, and so
/// the state has a lock.
final class CallProgress: Sendable {
    private struct State {
        /// The request that redirects have led to, as it was before any stage changed it.
        var call: Call
        var firstAnswer: Answer?
        var sentCount: Int
        var redirectCount = 0
        var tryCount = 1
        var timeoutStatusCount = 0
        var hops: [HTTPHop] = []
        var number: UInt64?
        /// The body that the delegate gave in place of one that is gone.
        var newBody: HTTPBody?
        /// Whether what is stored is left alone, since it turned out damaged.
        var ignoresStored = false
        /// What may stand in for the answer to the last request, which failed.
        var standIn: (@Sendable () async throws -> Answer?)?
    }

    let core: SessionCore
    let dialer: Dialer
    let control: TransferControl
    let observer: CallObserver?
    let userCode: UserCode
    /// When the call began.
    let start: MonotonicTime
    /// Guards the above: the stages, of which one that is no longer waited for may still run.
    private let state: Mutex<State>

    init(
        _ call: Call, core: SessionCore, dialer: Dialer, control: TransferControl, after answer: Answer?
    ) {
        self.core = core
        self.dialer = dialer
        self.control = control
        observer = call.observer
        userCode = UserCode(call, control: control, loop: core.loop)
        start = call.start
        state = Mutex(State(call: call, firstAnswer: answer, sentCount: answer == nil ? 0 : 1))
        if let budget = call.retryPolicy.budget, call.retryPolicy.attempts > 1 {
            core.retryBudget.deposit(budget)
        }
    }

    /// The request that redirects have led to, with the newest body.
    var call: Call {
        let (call, body) = state.withLock { ($0.call, $0.newBody) }
        return body.map { call.with($0) } ?? call
    }

    /// How many requests went out.
    var sentCount: Int { state.withLock { $0.sentCount } }

    /// How many redirects were followed.
    var redirectCount: Int { state.withLock { $0.redirectCount } }

    /// Where in the call a middleware is asked.
    func context() -> CallContext {
        let state = state.withLock { state in
            state.number = state.number ?? observer?.number ?? CallNumber.next()
            return state
        }
        return CallContext(
            number: state.number ?? 0, sentCount: state.sentCount, redirectCount: state.redirectCount,
            elapsed: MonotonicTime.now().since(start))
    }

    // MARK: Requests

    /// The answer to the first request, where that was made before there was a pipeline.
    func takeFirstAnswer() -> Answer? {
        state.withLock { $0.firstAnswer.take() }
    }

    /// Counts a request that goes out.
    /// - Returns: It, with what the call has behind it.
    func begin(_ call: Call) throws -> Call {
        if control.isCancelled { throw CancellationError() }
        let (sent, redirects) = state.withLock { state in
            defer { state.sentCount += 1 }
            state.standIn = nil
            return (state.sentCount, state.redirectCount)
        }
        observer?.note(sentCount: sent, redirectCount: redirects)
        return continued(call)
    }

    /// The request with what the call has behind it.
    func continued(_ call: Call) -> Call {
        let hops = state.withLock { $0.hops }
        if hops.isEmpty, observer == nil { return call }
        return Call(call, supplement: call.supplement, hops: hops, observer: observer)
    }

    /// Notes that a request was answered.
    func answered() {
        guard let observer else { return }
        let (sent, redirects) = state.withLock { ($0.sentCount, $0.redirectCount) }
        observer.note(sentCount: sent, redirectCount: redirects)
    }

    /// Goes on with the request that a redirect leads to.
    func redirect(to call: Call) {
        let (sent, redirects) = state.withLock { state in
            state.call = call
            state.newBody = nil
            state.redirectCount += 1
            return (state.sentCount, state.redirectCount)
        }
        observer?.note(sentCount: sent, redirectCount: redirects)
    }

    /// Whether a redirect made a request with another method of one that was answered.
    func hasChangedMethod(to call: Call) -> Bool {
        state.withLock { $0.hops.contains { $0.reason == .redirect && $0.method != call.method } }
    }

    /// The request with the body that the delegate gave last, if it gave one.
    func renewed(_ call: Call) -> Call {
        state.withLock { $0.newBody }.map { call.with($0) } ?? call
    }

    // MARK: Failures

    /// The failure of a request of this call, as against one that code of the program had with a call of its own.
    func own(_ error: HTTPError) -> HTTPError {
        var error = error
        error.call = ObjectIdentifier(self)
        return error
    }

    /// Whether a request of this call failed with an error.
    func isOwn(_ error: HTTPError) -> Bool { error.call == ObjectIdentifier(self) }

    /// Leaves what is stored alone from now on.
    /// - Returns: Whether it was not left alone before.
    func ignoreStored() -> Bool {
        state.withLock { state in
            defer { state.ignoresStored = true }
            return !state.ignoresStored
        }
    }

    /// Whether what is stored is left alone.
    var ignoresStored: Bool { state.withLock { $0.ignoresStored } }

    /// Statuses that are not taken from the store: the request is made again because of them.
    func unwantedStatuses(_ call: Call) -> Set<Int> {
        state.withLock { $0.tryCount } > 1 ? call.retryPolicy.statuses : []
    }

    /// Names what may stand in for the answer to the request that has just failed.
    func standIn(_ make: @escaping @Sendable () async throws -> Answer?) {
        state.withLock { $0.standIn = make }
    }

    /// What stands in for the answer to the last request; `nil` where nothing does.
    func staleAnswer() async throws -> Answer? {
        guard let standIn = state.withLock({ $0.standIn.take() }) else { return nil }
        return try await standIn()
    }

    // MARK: Before another request

    /// Whether the request's body can be sent again; where it is gone, the delegate is asked for another one.
    ///
    /// ``renewed(_:)`` has the body to send then.
    func isRepeatable(_ request: Call, holding exchange: Exchange? = nil) async throws -> Bool {
        if request.body.takeBack() { return true }
        guard let observer, let delegate = observer.delegate else { return false }
        let (given, context) = (request.publicRequest, observer.context)
        let body = try await userCode.run(
            "the delegate's newBody(for:in:)", .evaluating, holding: exchange, sentCount: sentCount
        ) {
            try await delegate.newBody(for: given, in: context)
        }
        guard let body else { return false }
        state.withLock { $0.newBody = body }
        return true
    }

    /// Reads the rest of a short answer, so that its connection is free while code of the program decides about it.
    func readAhead(_ answer: Answer) async {
        // What leads on is brief, and worth a moment; another response must not be held up.
        let leadsOn = answer.head.status >= 300 || answer.announcedByteCount != nil
        await answer.channel.heldExchange?.readAhead(
            until: leadsOn ? MonotonicTime.now().advanced(by: CallProgress.patience) : nil)
    }

    /// Gives up an answer that is not the call's, before the next request is begun, so that its connection can carry that.
    func give(
        up answer: Answer, reason: HTTPHop.Reason, delay: Duration = .zero, target: HTTPURL? = nil
    ) async {
        let patience = MonotonicTime.now().advanced(by: CallProgress.patience)
        await answer.channel.finish(
            waitingUntil: min(patience, answer.call.totalDeadline), for: control)
        note(reason, answer.call, answer, status: answer.head.status, delay: delay, target: target)
    }

    /// Notes that another request follows one.
    func note(
        _ reason: HTTPHop.Reason, _ request: Call, _ answer: Answer? = nil, status: Int? = nil,
        error: HTTPError.Code? = nil, delay: Duration = .zero, target: HTTPURL? = nil
    ) {
        let hop = HTTPHop(
            reason: reason, method: request.method, url: request.url, status: status, error: error,
            ended: MonotonicTime.now().since(start), delay: delay)
        state.withLock { $0.hops.append(hop) }
        control.watcher?.followed(hop, answer?.exchange(with: []))
        observer?.follows(hop, to: target)
        request.settings.configuration.logger.debug(
            "another request follows",
            metadata: [
                "reason": "\(reason.rawValue)", "origin": "\(request.url.origin)",
                "status": "\(status ?? 0)", "delay": "\(delay)",
            ])
    }

    /// Counts another try.
    func beginTry(afterTimeoutStatus: Bool) {
        state.withLock { state in
            state.tryCount += 1
            if afterTimeoutStatus { state.timeoutStatusCount += 1 }
        }
    }

    /// How many tries there were, and how many of them a 408 ended.
    var tries: (count: Int, timeoutStatuses: Int) {
        state.withLock { ($0.tryCount, $0.timeoutStatusCount) }
    }

    /// How long the rest of an answer that is not the call's is waited for, so that its connection can carry the next
    /// request: less than another connection takes to open on most ways.
    private static let patience = Duration.milliseconds(50)
}
