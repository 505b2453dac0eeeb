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
    private var call: Call

    private var redirectCount = 0
    private var tryCount = 1
    private var timeoutStatusCount = 0
    private var interceptorRetryCount = 0
    private var sentCount = 0
    private var hops: [HTTPHop] = []
    private var number: UInt64?
    private let observer: CallObserver?
    /// Whether the delegate has given the request at hand a body to be sent again.
    private var hasNewBody = false
    private var authentication: AuthenticationFlow?
    private let userCode: UserCode
    /// The exchange whose response is being decided about.
    private var held: Exchange?
    /// Whether a request without its body was accepted: the server asks for no credentials.
    private var hasProbed = false
    /// Whether what is stored is left alone, since it turned out damaged.
    private var ignoresStored = false

    init(core: SessionCore, dialer: Dialer, call: Call, control: TransferControl) {
        self.core = core
        self.dialer = dialer
        self.control = control
        self.call = call
        observer = call.observer
        userCode = UserCode(call, control: control, loop: core.loop)
        if let settings = CallSteps.authentication(of: call), !settings.isEmpty {
            authentication = AuthenticationFlow(
                AuthenticationMachine(
                    party: .origin, settings: settings, memory: core.authenticationMemory,
                    firstOrigin: call.url.origin,
                    trustsOtherOrigins: call.redirectPolicy.trustsOtherOrigins),
                userCode)
        }
        if let budget = call.retryPolicy.budget, call.retryPolicy.attempts > 1 {
            core.retryBudget.deposit(budget)
        }
    }

    private static func authentication(of call: Call) -> AuthenticationSettings? {
        guard let observer = call.observer else { return call.authentication }
        return observer.authentication(call.authentication)
    }

    // MARK: The next answer

    /// Sends requests until one has an answer that is the call's.
    /// - Throws: ``HTTPError``, `CancellationError`, or what an interceptor, a handler or a token provider threw.
    mutating func answer() async throws -> Answer {
        while true {
            let request = try await prepared()
            sentCount += 1
            hasNewBody = false
            let answer: Answer
            var step = request.cache.map { cache in
                CacheStep(
                    cache: cache, core: core, dialer: dialer, call: request, control: control,
                    ignoresStored: ignoresStored,
                    unwantedStatuses: tryCount > 1 ? request.retryPolicy.statuses : [])
            }
            do {
                if let cached = try await step?.answer() {
                    answer = cached
                } else {
                    answer = try await CallRunner(core: core, dialer: dialer, call: request, control: control)
                        .run()
                }
            } catch var error as HTTPError {
                guard try await retries(after: error, of: request) else {
                    guard let stale = try await step?.staleAnswer() else {
                        // What a redirect made another request of had been answered: whatever became of this one, that was
                        // sent (RFC 9110 §15.4).
                        if request.hops.contains(where: {
                            $0.reason == .redirect && $0.method != request.method
                        }) {
                            error.wasSent = true
                        }
                        throw error
                    }
                    return stale
                }
                continue
            }
            do {
                try await storeCookies(of: answer, to: request)
                guard try await leadsOn(answer, from: request) else {
                    guard let stale = answer.caching?.useFallback() else { return answer }
                    answer.finish()
                    return stale
                }
            } catch {
                answer.finish()
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
        observer?.note(sentCount: sentCount, redirectCount: redirectCount)
        for interceptor in call.settings.configuration.interceptors {
            let (given, context) = (request.publicRequest, context())
            let adapted = try await userCode.run(
                "the interceptor's adapt(_:in:)", .preparing, sentCount: sentCount
            ) {
                try await interceptor.adapt(given, in: context)
            }
            request = try request.adapted(adapted)
        }
        if let observer {
            var adapted = request.publicRequest
            observer.inject(into: &adapted.headerFields)
            request = try request.adapted(adapted)
        }
        var supplement = CallSupplement()
        if let jar = call.cookieJar, !jar.isEmpty {
            let url = request.url
            supplement.cookies = try await reading(jar, .preparing) { await jar.headerBytes(for: url) }
        }
        if authentication != nil {
            do {
                let asked = request.authenticated
                supplement.authorization = try await authentication?.value(for: asked)?.bytes
                supplement.identity = authentication?.identity(for: asked)
                // A challenge had better come before the body: one that can be read but once would be gone.
                supplement.withholdsBody =
                    !hasProbed && request.mayWithholdBody && authentication?.probes(asked) == true
                supplement.asksFirst =
                    !supplement.withholdsBody && request.isWorthAsking
                    && authentication?.expectsChallenge(asked) == true
            } catch let error as CredentialsError {
                throw failure(error, request)
            }
        }
        if control.isCancelled { throw CancellationError() }
        if supplement.isEmpty, hops.isEmpty, observer == nil { return request }
        return request.supplemented(supplement, hops: hops, observer: observer)
    }

    /// Runs what needs the public suffixes of a jar, which may be knowledge of the program, and its file.
    private func reading<Value: Sendable>(
        _ jar: CookieJar, _ phase: HTTPError.Phase, holding exchange: Exchange? = nil,
        _ body: @escaping @Sendable () async -> Value
    ) async throws -> Value {
        if jar.isReady { return await body() }
        return try await userCode.run(
            "the cookie jar's public suffixes and file", phase, holding: exchange, sentCount: sentCount, body)
    }

    private func storeCookies(of answer: Answer, to request: Call) async throws {
        guard let jar = call.cookieJar else { return }
        // A forwarding proxy's refusal says nothing of the origin, whether it is answered with credentials or returned.
        if answer.head.status == 407, request.isForwarded { return }
        // What is stored set its cookies when it came; what validated it may set others.
        guard answer.source == .network else {
            if let values = answer.caching?.setCookies, !values.isEmpty {
                try await store(values, in: jar, of: answer, request)
            }
            return
        }
        guard answer.head.fields.contains("set-cookie") else { return }
        try await store(
            answer.head.fields.rawValues(of: "set-cookie").map(Array.init), in: jar, of: answer, request)
    }

    private func store(
        _ values: [[UInt8]], in jar: CookieJar, of answer: Answer, _ request: Call
    ) async throws {
        let url = request.url
        try await reading(jar, .evaluating, holding: answer.channel.heldExchange) {
            _ = await jar.store(setCookieBytes: values, from: url)
        }
    }

    /// Whether another request follows an answer; it is made ready then, and the answer given up.
    private mutating func leadsOn(_ answer: Answer, from request: Call) async throws -> Bool {
        let head = answer.head
        if mayAskProgram(about: head) {
            // What leads on is brief, and worth a moment; another response must not be held up.
            let leadsOn = head.status >= 300 || answer.announcedByteCount != nil
            await answer.channel.heldExchange?.readAhead(
                until: leadsOn ? MonotonicTime.now().advanced(by: CallSteps.patience) : nil)
        }
        held = answer.channel.heldExchange
        defer { held = nil }
        observer?.note(sentCount: sentCount, redirectCount: redirectCount)
        if head.status == 401, authentication != nil { _ = try await isRepeatable(request) }
        if try await isChallenged(by: head, request) {
            // What was tried is given up before the next is begun, so that its connection can carry that.
            await give(up: answer, from: request, reason: .challenge)
            return true
        }
        if request.supplement?.withholdsBody == true, head.status < 300 {
            hasProbed = true
            await give(up: answer, from: request, reason: .challenge)
            return true
        }
        let rule = RedirectRule(policy: call.redirectPolicy)
        switch try await decision(by: rule, about: head, request) {
        case .follow(let redirect):
            guard let next = try await redirected(redirect, by: rule, head, request) else { return false }
            await give(up: answer, from: request, reason: .redirect, target: next.url)
            redirectCount += 1
            call = next
            return true
        case .fail(let refusal): throw failure(refusal, answer, request)
        case .deliver: break
        }
        // The cache would say the same again.
        if answer.source == .network, let delay = try await delay(after: head, of: request) {
            if head.status == 408 { timeoutStatusCount += 1 }
            await give(up: answer, from: request, reason: .retry, delay: delay)
            tryCount += 1
            try await wait(delay)
            return true
        }
        guard
            let delay = try await interceptorDelay(
                .response(HeadConversion.response(head)), of: request)
        else { return false }
        await give(up: answer, from: request, reason: .interceptor, delay: delay)
        try await wait(delay)
        return true
    }

    /// Whether code of the program may decide about a response.
    private func mayAskProgram(about head: ResponseHead) -> Bool {
        if observer?.delegate != nil || !call.settings.configuration.interceptors.isEmpty { return true }
        return head.status == 401 && authentication?.asksProgram == true
    }

    private mutating func decision(
        by rule: RedirectRule, about head: ResponseHead, _ request: Call
    ) async throws -> RedirectRule.Decision {
        // Nothing is sent any more of a body that such an answer came to.
        let isReplayable =
            (300..<400).contains(head.status)
            ? hasNewBody || request.body.takeBack() : hasBody(toRepeat: request)
        let decision = rule.decide(
            head, from: request.url, method: request.method, isReplayable: isReplayable,
            followed: redirectCount)
        guard decision == .deliver, !isReplayable, observer?.delegate != nil else { return decision }
        let other = rule.decide(
            head, from: request.url, method: request.method, isReplayable: true, followed: redirectCount)
        guard case .follow = other, try await isRepeatable(request) else { return decision }
        return other
    }

    /// The call that follows a redirect; `nil` where the delegate wants none.
    private func redirected(
        _ redirect: RedirectRule.Redirect, by rule: RedirectRule, _ head: ResponseHead, _ request: Call
    ) async throws -> Call? {
        var redirect = redirect
        // What the caller gave was for the call's own origin, wherever an interceptor had sent the request that was
        // redirected: within another origin, too, it leads away from the first.
        if redirect.url.origin != call.url.origin { redirect.leavesOrigin = true }
        let next = try call.redirected(redirect, by: rule)
        guard let observer, let delegate = observer.delegate else { return next }
        let (response, given, proposed) = (
            HeadConversion.response(head), request.publicRequest, next.publicRequest
        )
        let context = observer.context
        let chosen = try await userCode.run(
            "the delegate's redirect(by:from:to:in:)", .evaluating, holding: held, sentCount: sentCount
        ) {
            try await delegate.redirect(by: response, from: given, to: proposed, in: context)
        }
        if control.isCancelled { throw CancellationError() }
        return try chosen.map { try next.adapted($0) }
    }

    /// Whether there is a body to send the request again with.
    private func hasBody(toRepeat request: Call) -> Bool {
        hasNewBody || request.body.isWhole
    }

    /// The same, or a delegate who might have one.
    private func mayBeRepeatable(_ request: Call) -> Bool {
        hasBody(toRepeat: request) || observer?.delegate != nil
    }

    /// Whether the request can be sent again; where its body is gone, the delegate is asked for another one.
    private mutating func isRepeatable(_ request: Call) async throws -> Bool {
        if hasNewBody || request.body.takeBack() { return true }
        guard let observer, let delegate = observer.delegate else { return false }
        let (given, context) = (request.publicRequest, observer.context)
        let body = try await userCode.run(
            "the delegate's newBody(for:in:)", .evaluating, holding: held, sentCount: sentCount
        ) {
            try await delegate.newBody(for: given, in: context)
        }
        guard let body else { return false }
        call = call.with(body)
        hasNewBody = true
        return true
    }

    private mutating func isChallenged(by head: ResponseHead, _ request: Call) async throws -> Bool {
        guard authentication != nil else { return false }
        do {
            var authenticated = request.authenticated
            if hasNewBody { authenticated.isRepeatable = true }
            return try await authentication?.isResent(
                authenticated,
                after: AuthenticationAnswer(status: head.status, fields: head.fields, party: .origin),
                holding: held)
                ?? false
        } catch let error as AuthenticationError {
            throw HTTPError(
                .authenticationFailed, phase: .evaluating, message: error.description, wasSent: true,
                origin: request.url.origin.description, attempts: sentCount, underlying: error)
        } catch let error as CredentialsError {
            throw failure(error, request)
        }
    }

    // MARK: After failures

    /// Whether a request follows one that failed, or whose answer broke off; returns when it is time for it.
    /// - Parameter answer: What broke off; `nil` where no answer came.
    mutating func retries(
        after error: HTTPError, of request: Call, _ answer: Answer? = nil
    ) async throws -> Bool {
        if !ignoresStored, error.code == .storedBodyDamaged || answer?.isStoredBadly(error) == true {
            ignoresStored = true
            return true
        }
        if let delay = try await delay(after: .failure(error), of: request) {
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

    private mutating func delay(after head: ResponseHead, of request: Call) async throws -> Duration? {
        let policy = request.retryPolicy
        guard policy.attempts > 1, policy.statuses.contains(head.status) else { return nil }
        let retryAfter = head.fields.rawValues(of: "retry-after").first.flatMap {
            RetryAfter($0, now: WallClock.secondsSince1970)
        }
        return try await delay(after: .status(head.status, retryAfter: retryAfter), of: request)
    }

    private mutating func delay(after outcome: RetryRule.Outcome, of request: Call) async throws -> Duration?
    {
        let policy = request.retryPolicy
        guard policy.attempts > 1 else { return nil }
        let now = MonotonicTime.now()
        let deadline = request.totalDeadline
        let rule = RetryRule(
            policy: policy,
            isIdempotent: request.method.isIdempotent || request.rule.isDeclaredSafe,
            isReplayable: mayBeRepeatable(request))
        let delay = rule.delay(
            after: outcome, attempt: tryCount, timeouts408: timeoutStatusCount,
            elapsed: now.since(call.start),
            remaining: deadline == .distantFuture ? nil : deadline.since(now),
            random: Double.random(in: 0...1))
        guard let delay, try await isRepeatable(request) else { return nil }
        guard policy.budget == nil || core.retryBudget.withdraw() else { return nil }
        return delay
    }

    private mutating func interceptorDelay(
        _ outcome: @autoclosure () -> HTTPCallOutcome, of request: Call
    ) async throws -> Duration? {
        let interceptors = request.settings.configuration.interceptors
        guard !interceptors.isEmpty, mayBeRepeatable(request),
            interceptorRetryCount < CallContext.interceptorRetryLimit
        else { return nil }
        // Made only where somebody looks at it.
        let outcome = outcome()
        for interceptor in interceptors {
            let context = context()
            let verdict = try await userCode.run(
                "the interceptor's verdict(on:in:)", .evaluating, holding: held, sentCount: sentCount
            ) {
                try await interceptor.verdict(on: outcome, in: context)
            }
            if case .again(let delay) = verdict {
                guard try await isRepeatable(request) else { return nil }
                interceptorRetryCount += 1
                return delay.bounded
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

    /// How long the rest of an answer that is not the call's is waited for, so that its connection can carry the next
    /// request: less than another connection takes to open on most ways.
    private static let patience = Duration.milliseconds(50)

    // MARK: What is told

    private mutating func context() -> CallContext {
        let number = number ?? observer?.number ?? CallNumber.next()
        self.number = number
        return CallContext(
            number: number, sentCount: sentCount, redirectCount: redirectCount,
            elapsed: MonotonicTime.now().since(call.start))
    }

    private mutating func give(
        up answer: Answer, from request: Call, reason: HTTPHop.Reason, delay: Duration = .zero,
        target: HTTPURL? = nil
    ) async {
        let patience = MonotonicTime.now().advanced(by: CallSteps.patience)
        await answer.channel.finish(
            waitingUntil: min(patience, request.totalDeadline), for: control)
        note(
            reason, request, status: answer.head.status, error: nil, delay: delay, answer, target: target)
    }

    private mutating func note(
        _ reason: HTTPHop.Reason, _ request: Call, status: Int?, error: HTTPError.Code?, delay: Duration,
        _ answer: Answer? = nil, target: HTTPURL? = nil
    ) {
        let hop = HTTPHop(
            reason: reason, method: request.method, url: request.url, status: status, error: error,
            ended: MonotonicTime.now().since(call.start), delay: delay)
        hops.append(hop)
        control.watcher?.followed(hop, answer?.exchange(with: []))
        observer?.follows(hop, to: target)
        request.settings.configuration.logger.debug(
            "another request follows",
            metadata: [
                "reason": "\(reason.rawValue)", "origin": "\(request.url.origin)",
                "status": "\(status ?? 0)", "delay": "\(delay)",
            ])
    }

    private func failure(_ error: CredentialsError, _ request: Call) -> HTTPError {
        HTTPError(
            .invalidRequest, phase: .preparing, message: error.description, wasSent: sentCount > 0,
            origin: request.url.origin.description, attempts: max(1, sentCount), underlying: error)
    }

    private func failure(_ refusal: RedirectRule.Refusal, _ answer: Answer, _ request: Call) -> HTTPError {
        let code: HTTPError.Code
        switch refusal {
        case .tooMany: code = .tooManyRedirects
        case .ambiguous: code = .protocolViolation
        case .downgrade, .refusedScheme, .unsupportedScheme, .malformed: code = .redirectRefused
        }
        return HTTPError(
            code, phase: .evaluating, message: refusal.description, wasSent: true,
            origin: request.url.origin.description, attempts: sentCount, underlying: refusal.parseError,
            exchange: answer.exchange(with: []))
    }
}
