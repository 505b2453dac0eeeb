/// A stage that follows redirects, as ``RedirectRule`` decides.
struct RedirectStage: CallStage {
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        var call = call
        while true {
            let answer: StreamedResponse
            do { answer = try await next(call) } catch let error as HTTPError {
                var failure = progress.redirected(error)
                // The request whose redirect changed the method was sent, even if this one was not (RFC 9110 §15.4).
                if progress.hasChangedMethod(to: call), progress.isOwn(error) { failure.wasSent = true }
                throw failure
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

    /// Returns the request that follows a redirect; `nil` if the call returns the redirect.
    /// - Parameter call: The request before later stages changed it.
    private func redirected(_ answer: StreamedResponse, _ call: Call) async throws -> Call? {
        let (head, request) = (answer.head, answer.call)
        let rule = RedirectRule(policy: call.redirectPolicy) { call.settings.effective($0, call.options) }
        func decision(isReplayable: Bool) -> RedirectRule.Decision {
            rule.decide(
                head, from: request.url, method: request.method, isReplayable: isReplayable,
                followed: progress.redirectCount)
        }
        // A redirect that is not followed leaves the upload as it is.
        let best = decision(isReplayable: true)
        if best == .deliver { return nil }
        if progress.observer?.delegate != nil { await progress.readAhead(answer) }
        // From here on, the redirected request can read no more of a body that can be read only once.
        let call = progress.renewed(call)
        let isReplayable = call.body.rewind() && request.body.isWhole
        var decided = isReplayable ? best : decision(isReplayable: false)
        if decided == .deliver, progress.observer?.delegate != nil, case .follow = best,
            try await progress.isRepeatable(request, holding: answer.channel.heldExchange)
        {
            decided = best
        }
        switch decided {
        case .deliver: return nil
        case .fail(let rejection): throw failure(rejection, answer)
        case .follow(var redirect):
            // The caller's fields are for the origin of `call`. If a middleware sent the request to another origin, a
            // redirect within that origin still leaves the first.
            if redirect.url.origin != call.url.origin { redirect.leavesOrigin = true }
            let proposed = try progress.renewed(call).redirected(redirect, by: rule)
            return try await chosen(proposed, answer)
        }
    }

    /// Returns the request that the delegate chooses; `nil` to return the redirect.
    private func chosen(_ next: Call, _ answer: StreamedResponse) async throws -> Call? {
        guard let observer = progress.observer, observer.delegate != nil else { return next }
        let response = HeadConversion.response(answer.head)
        let (given, proposed) = (answer.call.publicRequest, next.publicRequest)
        let chosen = try await observer.ask(
            "redirect(by:from:to:in:)", .processingResponse, holding: answer.channel.heldExchange,
            sentCount: progress.sentCount, otherwise: proposed
        ) { try await $0.redirect(by: response, from: given, to: proposed, in: $1) }
        if progress.control.isCancelled { throw CancellationError() }
        return try chosen.map { try next.adapted($0) }
    }

    private func failure(_ rejection: RedirectRule.Rejection, _ answer: StreamedResponse) -> HTTPError {
        let code: HTTPError.Code
        switch rejection {
        case .tooMany: code = .tooManyRedirects
        case .ambiguous: code = .protocolViolation
        case .downgrade, .rejectedScheme, .unsupportedScheme, .malformed: code = .redirectRejected
        }
        return answer.call.error(
            code, .processingResponse, rejection.description, wasSent: true, attempts: progress.sentCount,
            underlying: rejection.parseError, exchange: answer.exchange(with: []))
    }
}
