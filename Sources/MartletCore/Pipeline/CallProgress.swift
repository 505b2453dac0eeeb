import Synchronization

/// The state that the stages of a call share. It has a lock, because a middleware may still run after the call's end.
package final class CallProgress: Sendable {
    private struct State {
        /// The current request after redirects, before other stages change it.
        var call: Call
        var firstResponse: StreamedResponse?
        var sentCount: Int
        var redirectCount = 0
        var tryCount = 1
        var timeoutStatusCount = 0
        var hops: [HTTPHop] = []
        /// The body from the delegate that replaces a consumed one.
        var newBody: HTTPBody?
        /// Whether the cache is not used, because a stored response was corrupt.
        var ignoresStored = false
        /// A function that returns a stale response, to be used if the last request failed.
        var staleFallback: (@Sendable () async throws -> StreamedResponse?)?
    }

    package let core: SessionCore
    package let dialer: Dialer
    package let control: TransferControl
    let observer: CallEventEmitter?
    package let userCode: UserCode
    let start: MonotonicTime
    private let number: UInt64
    /// The lock on the state, used by the stages and by middleware.
    private let state: Mutex<State>

    init(_ call: Call, core: SessionCore, dialer: Dialer, control: TransferControl, after answer: StreamedResponse?) {
        (self.core, self.dialer, self.control) = (core, dialer, control)
        observer = call.observer
        userCode = UserCode(call, control: control, loop: core.loop)
        start = call.start
        number = call.number
        // A request of the cache continues the counts of its call.
        state = Mutex(
            State(
                call: call, firstResponse: answer, sentCount: call.hops.count + (answer == nil ? 0 : 1),
                redirectCount: call.hops.count { $0.reason == .redirect }, hops: call.hops))
    }

    /// The current request after redirects, with the latest body.
    var call: Call { renewed(state.withLock { $0.call }) }
    package var sentCount: Int { state.withLock { $0.sentCount } }
    var redirectCount: Int { state.withLock { $0.redirectCount } }

    /// Returns the context of the call for a middleware.
    func context() -> CallContext {
        let state = state.withLock { $0 }
        return CallContext(
            number: state.call.number, sentCount: state.sentCount, redirectCount: state.redirectCount,
            elapsed: MonotonicTime.now().since(start))
    }

    // MARK: Requests

    /// Removes and returns the response to the first request, if that was sent before the pipeline existed.
    package func takeFirstResponse() -> StreamedResponse? { state.withLock { $0.firstResponse.take() } }

    /// Counts a request that is about to be sent.
    /// - Returns: The request with the hops of the call so far.
    package func begin(_ call: Call) throws -> Call {
        if control.isCancelled { throw CancellationError() }
        // The fallback is released outside of the lock: it may hold the last reference to an exchange.
        let (_, sent, redirects) = state.withLock { state in
            defer { state.sentCount += 1 }
            return (state.staleFallback.take(), state.sentCount, state.redirectCount)
        }
        observer?.note(sentCount: sent, redirectCount: redirects)
        return continued(call)
    }

    /// Returns the request with the hops of the call so far.
    func continued(_ call: Call) -> Call {
        let hops = state.withLock { $0.hops }
        return hops.isEmpty && observer == nil ? call : call.following(hops, observer: observer)
    }

    /// Passes the counts to the observer after a response.
    package func answered() {
        guard let observer else { return }
        let (sent, redirects) = state.withLock { ($0.sentCount, $0.redirectCount) }
        observer.note(sentCount: sent, redirectCount: redirects)
    }

    /// Makes the target of a redirect the current request.
    func redirect(to call: Call) {
        // The former request is released outside of the lock: its body may belong to the program.
        _ = state.withLock { state in
            defer {
                state.call = call
                state.redirectCount += 1
            }
            return (state.call, state.newBody.take())
        }
    }

    /// Whether a redirect has changed the method of the call.
    func hasChangedMethod(to call: Call) -> Bool {
        state.withLock { $0.hops.contains { $0.reason == .redirect && $0.method != call.method } }
    }

    /// Returns the request with the latest body from the delegate, if there is one.
    func renewed(_ call: Call) -> Call { state.withLock { $0.newBody }.map { call.with($0) } ?? call }

    // MARK: Failures

    /// Returns an error with the earlier requests of its call, if the error is about the last target.
    func redirected(_ error: HTTPError) -> HTTPError {
        let (call, hops) = state.withLock { ($0.call, $0.hops) }
        return hops.isEmpty ? error : error.following(hops, to: call.url)
    }

    /// Marks an error as that of a request of this call, to distinguish it from errors of calls in the program's code.
    package func own(_ error: HTTPError) -> HTTPError {
        var error = error
        error.failedCall = number
        return error
    }

    /// Whether a request of this call failed with an error.
    package func isOwn(_ error: HTTPError) -> Bool { error.failedCall == number }

    /// Stops the use of the cache.
    /// - Returns: Whether it was used before.
    package func ignoreStored() -> Bool {
        state.withLock { state in
            defer { state.ignoresStored = true }
            return !state.ignoresStored
        }
    }

    package var ignoresStored: Bool { state.withLock { $0.ignoresStored } }

    /// Returns the statuses that are not accepted from the cache: in a retry, those that cause one.
    package func unwantedStatuses(_ call: Call) -> Set<Int> {
        state.withLock { $0.tryCount } > 1 ? call.retryPolicy.statuses : []
    }

    /// Sets the function that may return a stale response instead of the failure of the last request.
    package func staleFallback(_ make: @escaping @Sendable () async throws -> StreamedResponse?) {
        _ = state.withLock { state in
            defer { state.staleFallback = make }
            return state.staleFallback
        }
    }

    /// Returns the stale response to use after the failure of the last request; `nil` without one.
    func staleAnswer() async throws -> StreamedResponse? {
        guard let staleFallback = state.withLock({ $0.staleFallback.take() }) else { return nil }
        return try await staleFallback()
    }

    // MARK: Before another request

    /// Whether the request can be sent again: with its body, or with one of the delegate, which ``renewed(_:)`` adds.
    func isRepeatable(_ request: Call, holding exchange: Exchange? = nil) async throws -> Bool {
        if request.body.rewind() { return true }
        guard let observer, observer.delegate != nil else { return false }
        let given = request.publicRequest
        let body = try await observer.ask(
            "replacementBody(for:in:)", .processingResponse, holding: exchange, sentCount: sentCount, otherwise: nil
        ) { try await $0.replacementBody(for: given, in: $1) }
        guard let body else { return false }
        _ = state.withLock { state in
            defer { state.newBody = body }
            return state.newBody
        }
        return true
    }

    /// Reads the rest of a short response, so that its connection is free while code of the program decides about it.
    /// Has no effect if the cache or a middleware is the source of the body.
    func readAhead(_ answer: StreamedResponse) async {
        guard case .exchange(let exchange) = answer.channel else { return }
        // A redirect, an error or a body of known length is worth a short wait. Other responses must not be delayed.
        let isShort = answer.head.status >= 300 || answer.expectedContentLength != nil
        await exchange.readAhead(until: isShort ? MonotonicTime.now().advanced(by: CallProgress.gracePeriod) : nil)
    }

    /// Discards a response that the call does not return, so that the next request can reuse the connection.
    func give(up answer: StreamedResponse, reason: HTTPHop.Reason, delay: Duration = .zero, target: HTTPURL? = nil)
        async
    {
        let deadline = MonotonicTime.now().advanced(by: CallProgress.gracePeriod)
        await answer.channel.finish(waitingUntil: min(deadline, answer.call.totalDeadline), for: control)
        note(reason, answer.call, answer, status: answer.head.status, delay: delay, target: target)
    }

    /// Records that another request follows this one.
    func note(
        _ reason: HTTPHop.Reason, _ request: Call, _ answer: StreamedResponse? = nil, status: Int? = nil,
        error: HTTPError? = nil, delay: Duration = .zero, target: HTTPURL? = nil
    ) {
        let hop = HTTPHop(
            reason: reason, method: request.method, url: request.url, status: status, error: error?.code,
            ended: MonotonicTime.now().since(start), delay: delay)
        let attempt = state.withLock { state in
            state.hops.append(hop)
            return state.hops.count
        }
        control.tracer?.followed(hop, answer?.exchange(with: []))
        observer?.follows(hop, to: target)
        request.log(hop, error, attempt: attempt)
    }

    /// Counts another attempt.
    func beginTry(afterTimeoutStatus: Bool) {
        state.withLock { state in
            state.tryCount += 1
            if afterTimeoutStatus { state.timeoutStatusCount += 1 }
        }
    }

    /// The number of attempts, and of those that ended with a 408.
    var tries: (count: Int, timeoutStatuses: Int) { state.withLock { ($0.tryCount, $0.timeoutStatusCount) } }

    /// The maximum wait for the rest of a response, so that its connection can be reused. A new one often takes longer.
    private static let gracePeriod = Duration.milliseconds(50)
}
