import Logging
import MartletConnections
import MartletTransport
import MartletWire

/// Takes a call through its requests: interceptors, cookies and credentials before each, and after each the question whether
/// another follows, for a redirect, a challenge or a passing failure.
///
/// What decides are ``RedirectRule``, ``RetryRule`` and the machine of authentication; here their decisions are carried out.
struct CallSteps {
    private let core: SessionCore
    private let dialer: Dialer
    private let control: TransferControl
    /// The request at hand.
    private(set) var call: Call

    private var redirectCount = 0
    private var tryCount = 1
    private var timeoutStatusCount = 0
    private var interceptorRetryCount = 0
    private var sentCount = 0
    private var hops: [HTTPHop] = []
    private var number: UInt64?
    private var authentication: AuthenticationFlow?

    init(core: SessionCore, dialer: Dialer, call: Call, control: TransferControl) {
        self.core = core
        self.dialer = dialer
        self.control = control
        self.call = call
        if let settings = call.authentication, !settings.isEmpty {
            authentication = AuthenticationFlow(
                AuthenticationMachine(party: .origin, settings: settings, memory: core.authenticationMemory))
        }
        if let budget = call.retryPolicy.budget, call.retryPolicy.attempts > 1 {
            core.retryBudget.deposit(budget)
        }
    }

    // MARK: The next answer

    /// Sends requests until one has an answer that is the call's.
    /// - Throws: ``HTTPError``, `CancellationError`, or what an interceptor, a handler or a token provider threw.
    mutating func answer() async throws -> Answer {
        while true {
            let request = try await prepared()
            sentCount += 1
            let answer: Answer
            do {
                answer = try await CallRunner(core: core, dialer: dialer, call: request, control: control)
                    .run()
            } catch let error as HTTPError {
                guard try await retries(after: error, of: request) else { throw error }
                continue
            }
            do {
                await storeCookies(of: answer, to: request)
                guard try await leadsOn(answer, from: request) else { return answer }
            } catch {
                answer.exchange.finish()
                throw error
            }
        }
    }

    /// Goes on from the answer to the first request.
    mutating func follow(_ first: Answer) async throws -> Answer {
        sentCount += 1
        guard try await leadsOn(first, from: call) else { return first }
        return try await answer()
    }

    /// The request at hand as interceptors, cookies and credentials make it.
    private mutating func prepared() async throws -> Call {
        var request = call
        for interceptor in call.settings.configuration.interceptors {
            let adapted = try await interceptor.adapt(request.publicRequest, in: context())
            request = try request.adapted(adapted)
        }
        var supplement = CallSupplement()
        if let jar = call.cookieJar, !jar.isEmpty {
            supplement.cookies = await jar.headerBytes(for: request.url)
        }
        if authentication != nil {
            do {
                supplement.authorization = try await authentication?.value(for: request.authenticated)?.bytes
            } catch let error as CredentialsError {
                throw HTTPError(
                    .invalidRequest, phase: .preparing, message: error.description,
                    origin: request.url.origin.description, underlying: error)
            }
        }
        if control.isCancelled { throw CancellationError() }
        if supplement.isEmpty, hops.isEmpty { return request }
        return request.supplemented(supplement, hops: hops)
    }

    private func storeCookies(of answer: Answer, to request: Call) async {
        guard let jar = call.cookieJar, answer.head.fields.contains("set-cookie") else { return }
        await jar.store(
            setCookieBytes: answer.head.fields.rawValues(of: "set-cookie").map(Array.init), from: request.url)
    }

    /// Whether another request follows an answer; it is made ready then, and the answer given up.
    private mutating func leadsOn(_ answer: Answer, from request: Call) async throws -> Bool {
        let head = answer.head
        if try await isChallenged(by: head, request) {
            // What was tried is given up before the next is begun, so that its connection can carry that.
            give(up: answer, from: request, reason: .challenge)
            return true
        }
        let rule = RedirectRule(policy: call.redirectPolicy)
        switch rule.decide(
            head, from: request.url, method: request.method, isReplayable: request.body.replay != .once,
            followed: redirectCount)
        {
        case .follow(let redirect):
            give(up: answer, from: request, reason: .redirect)
            redirectCount += 1
            call = try call.redirected(redirect, by: rule)
            return true
        case .fail(let refusal): throw failure(refusal, answer, request)
        case .deliver: break
        }
        if let delay = delay(after: head, of: request) {
            if head.status == 408 { timeoutStatusCount += 1 }
            give(up: answer, from: request, reason: .retry, delay: delay)
            tryCount += 1
            try await wait(delay)
            return true
        }
        guard
            let delay = try await interceptorDelay(
                .response(HeadConversion.response(head)), of: request)
        else { return false }
        give(up: answer, from: request, reason: .interceptor, delay: delay)
        try await wait(delay)
        return true
    }

    private mutating func isChallenged(by head: ResponseHead, _ request: Call) async throws -> Bool {
        guard authentication != nil else { return false }
        do {
            return try await authentication?.isResent(
                request.authenticated,
                after: AuthenticationAnswer(status: head.status, fields: head.fields, party: .origin))
                ?? false
        } catch let error as AuthenticationError {
            throw HTTPError(
                .authenticationFailed, phase: .evaluating, message: error.description, wasSent: true,
                origin: request.url.origin.description, attempts: sentCount, underlying: error)
        } catch let error as CredentialsError {
            throw HTTPError(
                .invalidRequest, phase: .preparing, message: error.description, wasSent: true,
                origin: request.url.origin.description, attempts: sentCount, underlying: error)
        }
    }

    // MARK: After failures

    /// Whether a request follows one that failed, or whose answer broke off; returns when it is time for it.
    mutating func retries(after error: HTTPError, of request: Call) async throws -> Bool {
        if let delay = delay(after: .failure(error), of: request) {
            note(.retry, request, status: nil, error: error.code, delay: delay)
            tryCount += 1
            try await wait(delay)
            return true
        }
        guard let delay = try await interceptorDelay(.failure(error), of: request) else { return false }
        note(.interceptor, request, status: nil, error: error.code, delay: delay)
        try await wait(delay)
        return true
    }

    private func delay(after head: ResponseHead, of request: Call) -> Duration? {
        let policy = request.retryPolicy
        guard policy.attempts > 1, policy.statuses.contains(head.status) else { return nil }
        let retryAfter = head.fields.rawValues(of: "retry-after").first.flatMap {
            RetryAfter($0, now: WallClock.secondsSince1970)
        }
        return delay(after: .status(head.status, retryAfter: retryAfter), of: request)
    }

    private func delay(after outcome: RetryRule.Outcome, of request: Call) -> Duration? {
        let policy = request.retryPolicy
        guard policy.attempts > 1 else { return nil }
        let now = MonotonicTime.now()
        let deadline = request.totalDeadline
        let rule = RetryRule(
            policy: policy,
            isIdempotent: IdleRaceRule.isIdempotent(request.method) || request.rule.isDeclaredSafe,
            isReplayable: request.body.replay != .once)
        let delay = rule.delay(
            after: outcome, attempt: tryCount, timeouts408: timeoutStatusCount,
            elapsed: now.since(call.start),
            remaining: deadline == .distantFuture ? nil : deadline.since(now),
            random: Double.random(in: 0...1))
        guard let delay else { return nil }
        guard policy.budget == nil || core.retryBudget.withdraw() else { return nil }
        return delay
    }

    private mutating func interceptorDelay(_ outcome: HTTPCallOutcome, of request: Call) async throws
        -> Duration?
    {
        let interceptors = request.settings.configuration.interceptors
        guard !interceptors.isEmpty, request.body.replay != .once,
            interceptorRetryCount < CallContext.interceptorRetryLimit
        else { return nil }
        for interceptor in interceptors {
            if case .again(let delay) = try await interceptor.verdict(on: outcome, in: context()) {
                interceptorRetryCount += 1
                return delay
            }
        }
        return nil
    }

    /// Waits before the next request; a cancel ends it at once, and so does the total clock.
    private func wait(_ delay: Duration) async throws {
        guard delay > .zero else { return }
        let now = MonotonicTime.now()
        let end = now.advanced(by: delay)
        let pause = OneShot<Void>()
        control.begin(.pausing(pause))
        _ = await pause.wait(until: min(end, call.totalDeadline), on: core.loop)
        if control.isCancelled { throw CancellationError() }
        guard end <= call.totalDeadline else {
            throw HTTPError(
                .timedOut, phase: .preparing,
                message: "the total clock ran out while waiting for another try",
                wasSent: sentCount > 0, origin: call.url.origin.description, clock: .total,
                elapsed: MonotonicTime.now().since(call.start), attempts: sentCount)
        }
    }

    // MARK: What is told

    private mutating func context() -> CallContext {
        let number = number ?? CallNumber.next()
        self.number = number
        return CallContext(
            number: number, sentCount: sentCount, redirectCount: redirectCount,
            elapsed: MonotonicTime.now().since(call.start))
    }

    private mutating func give(
        up answer: Answer, from request: Call, reason: HTTPHop.Reason, delay: Duration = .zero
    ) {
        answer.exchange.finish()
        note(reason, request, status: answer.head.status, error: nil, delay: delay, answer)
    }

    private mutating func note(
        _ reason: HTTPHop.Reason, _ request: Call, status: Int?, error: HTTPError.Code?, delay: Duration,
        _ answer: Answer? = nil
    ) {
        let hop = HTTPHop(
            reason: reason, method: request.method, url: request.url, status: status, error: error,
            ended: MonotonicTime.now().since(call.start), delay: delay)
        hops.append(hop)
        control.observer?.followed(hop, answer?.exchange(with: []))
        request.settings.configuration.logger.debug(
            "another request follows",
            metadata: [
                "reason": "\(reason.rawValue)", "origin": "\(request.url.origin)",
                "status": "\(status ?? 0)", "delay": "\(delay)",
            ])
    }

    private func failure(_ refusal: RedirectRule.Refusal, _ answer: Answer, _ request: Call) -> HTTPError {
        let code: HTTPError.Code
        if case .tooMany = refusal { code = .tooManyRedirects } else { code = .redirectRefused }
        return HTTPError(
            code, phase: .evaluating, message: refusal.description, wasSent: true,
            origin: request.url.origin.description, attempts: sentCount,
            exchange: answer.exchange(with: []))
    }
}

extension RedirectRule.Refusal: CustomStringConvertible {
    /// What is wrong, in words.
    package var description: String {
        switch self {
        case .tooMany(let limit): "more than \(limit) redirects"
        case .downgrade(let origin): "a redirect from https to \(origin), which is not encrypted"
        case .unsupportedScheme(let text): "Location: \(text)"
        case .malformed(let text): "Location: \(text)"
        case .ambiguous: "several fields Location that differ"
        }
    }
}
