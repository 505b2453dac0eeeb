import MartletCredentials
import MartletConnections
import MartletWire

/// Follows redirects, as ``RedirectRule`` decides.
struct RedirectStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> Answer {
        var call = call
        while true {
            let answer: Answer
            do {
                answer = try await next(call)
            } catch var error as HTTPError where progress.hasChangedMethod(to: call) && progress.isOwn(error)
            {
                // What a redirect made another request of had been answered: whatever became of this one, that was sent
                // (RFC 9110 §15.4).
                error.wasSent = true
                throw error
            }
            guard RedirectRule.mayFollow(answer.head.status) else { return answer }
            do {
                guard let redirected = try await redirected(answer, call) else { return answer }
                await progress.give(up: answer, reason: .redirect, target: redirected.url)
                progress.redirect(to: redirected)
                call = redirected
            } catch {
                answer.finish()
                throw error
            }
        }
    }

    /// The request that an answer leads to; `nil` where the answer is the call's.
    /// - Parameter call: What the answer is to, before other stages changed it.
    private func redirected(_ answer: Answer, _ call: Call) async throws -> Call? {
        let (head, request) = (answer.head, answer.call)
        let rule = RedirectRule(policy: call.redirectPolicy)
        func decision(isReplayable: Bool) -> RedirectRule.Decision {
            rule.decide(
                head, from: request.url, method: request.method, isReplayable: isReplayable,
                followed: progress.redirectCount)
        }
        if progress.observer?.delegate != nil { await progress.readAhead(answer) }
        // Nothing is sent any more of a body that such an answer came to.
        let call = progress.renewed(call)
        let isReplayable = call.body.takeBack() && request.body.isWhole
        var decided = decision(isReplayable: isReplayable)
        if decided == .deliver, !isReplayable, progress.observer?.delegate != nil {
            let other = decision(isReplayable: true)
            if case .follow = other,
                try await progress.isRepeatable(request, holding: answer.channel.heldExchange)
            {
                decided = other
            }
        }
        switch decided {
        case .deliver: return nil
        case .fail(let refusal): throw failure(refusal, answer)
        case .follow(var redirect):
            // What the caller gave was for the call's own origin, wherever a middleware had sent the request that was
            // redirected: within another origin, too, it leads away from the first.
            if redirect.url.origin != call.url.origin { redirect.leavesOrigin = true }
            let proposed = try progress.renewed(call).redirected(redirect, by: rule)
            return try await chosen(proposed, answer)
        }
    }

    /// The request that the delegate makes of the one that would follow; `nil` where it wants none.
    private func chosen(_ next: Call, _ answer: Answer) async throws -> Call? {
        guard let observer = progress.observer, let delegate = observer.delegate else { return next }
        let (response, given, proposed) = (
            HeadConversion.response(answer.head), answer.call.publicRequest, next.publicRequest
        )
        let context = observer.context
        let chosen = try await progress.userCode.run(
            "the delegate's redirect(by:from:to:in:)", .evaluating, holding: answer.channel.heldExchange,
            sentCount: progress.sentCount
        ) { try await delegate.redirect(by: response, from: given, to: proposed, in: context) }
        if progress.control.isCancelled { throw CancellationError() }
        return try chosen.map { try next.adapted($0) }
    }

    private func failure(_ refusal: RedirectRule.Refusal, _ answer: Answer) -> HTTPError {
        let code: HTTPError.Code
        switch refusal {
        case .tooMany: code = .tooManyRedirects
        case .ambiguous: code = .protocolViolation
        case .downgrade, .refusedScheme, .unsupportedScheme, .malformed: code = .redirectRefused
        }
        return HTTPError(
            code, phase: .evaluating, message: refusal.description, wasSent: true,
            origin: answer.call.url.origin.description, attempts: progress.sentCount,
            underlying: refusal.parseError, exchange: answer.exchange(with: []))
    }
}
