/// A stage of the way that a call takes: it may change the request, pass it on, and look at the answer.
///
/// The stages stand in this order: redirects, retries, middleware, authentication, cookies, the cache, the network. A stage
/// that has nothing to do for a call is not in its list.
protocol CallStage: Sendable {
    /// Answers a request.
    /// - Parameter next: The stages that follow.
    /// - Throws: ``HTTPError``; `CancellationError`; what code of the program throws.
    func answer(_ call: Call, _ next: CallNext) async throws -> Answer
}

/// The stages that follow one; the network stands at their end.
struct CallNext: Sendable {
    private let stages: ArraySlice<any CallStage>
    private let network: NetworkStage

    init(_ stages: [any CallStage], _ network: NetworkStage) {
        self.init(rest: stages[...], network)
    }

    private init(rest stages: ArraySlice<any CallStage>, _ network: NetworkStage) {
        self.stages = stages
        self.network = network
    }

    /// Answers a request.
    func callAsFunction(_ call: Call) async throws -> Answer {
        guard let stage = stages.first else { return try await network.answer(call) }
        return try await stage.answer(call, CallNext(rest: stages.dropFirst(), network))
    }
}

/// The stages of one call, and what they share.
struct CallPipeline: Sendable {
    private let first: CallNext
    private let progress: CallProgress

    /// The stages that a call needs.
    /// - Parameter answer: The answer to its first request, where that was made already: by a call that needed no stage.
    init(_ call: Call, core: SessionCore, dialer: Dialer, control: TransferControl, after answer: Answer?) {
        let progress = CallProgress(call, core: core, dialer: dialer, control: control, after: answer)
        self.progress = progress
        var stages: [any CallStage] = [RedirectStage(progress: progress)]
        if call.retryPolicy.attempts > 1 { stages.append(RetryStage(progress: progress)) }
        for middleware in call.settings.configuration.middleware {
            stages.append(MiddlewareStage(middleware: middleware, progress: progress))
        }
        if let observer = call.observer, observer.hasInstruments {
            stages.append(InstrumentStage(observer: observer))
        }
        if let authentication = AuthenticationStage(call, progress) { stages.append(authentication) }
        if let jar = call.cookieJar { stages.append(CookieStage(jar: jar, progress: progress)) }
        if call.settings.configuration.cache != nil { stages.append(CacheStage(progress: progress)) }
        first = CallNext(stages, NetworkStage(progress: progress))
    }

    /// Sends requests until one has an answer that is the call's.
    /// - Throws: ``HTTPError``; `CancellationError`; what a middleware, a handler or a token provider threw.
    func answer() async throws -> Answer {
        do {
            let answer = try await first(progress.call)
            if progress.observer?.delegate != nil { await progress.readAhead(answer) }
            guard let stale = answer.caching?.useFallback() else { return answer }
            answer.finish()
            return stale
        } catch let error as HTTPError where progress.isOwn(error) {
            guard let stale = try await progress.staleAnswer() else { throw error }
            return stale
        }
    }

    /// Sends the request again after an answer whose body broke off.
    /// - Returns: The new answer; `nil` where the request is not sent again.
    func answer(after error: HTTPError, in broken: Answer) async throws -> Answer? {
        let isStoredBadly = error.code == .storedBodyDamaged || broken.isStoredBadly(error)
        if isStoredBadly, progress.ignoreStored() { return try await answer() }
        guard try await progress.retries(after: error, of: broken.call) else { return nil }
        return try await answer()
    }
}

/// Sends a request.
struct NetworkStage: Sendable {
    let progress: CallProgress

    func answer(_ call: Call) async throws -> Answer {
        if let answer = progress.takeFirstAnswer() { return answer }
        let request = try progress.begin(call)
        do {
            let answer = try await CallRunner(
                core: progress.core, dialer: progress.dialer, call: request, control: progress.control
            ).run()
            progress.answered()
            return answer
        } catch let error as HTTPError {
            throw progress.own(error)
        }
    }
}

/// Adds the fields of instruments, by which a server can tell whose request it is.
struct InstrumentStage: CallStage {
    let observer: CallObserver

    func answer(_ call: Call, _ next: CallNext) async throws -> Answer {
        var request = call.publicRequest
        observer.inject(into: &request.headerFields)
        return try await next(try call.adapted(request))
    }
}
