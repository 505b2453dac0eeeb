import MartletCredentials

/// A stage of a call: it may change the request, pass it on, and look at the answer.
///
/// The order of the stages is: redirects, retries, middleware, instruments, authentication, cookies, cache, network. A stage
/// that has nothing to do for a call is not in its list.
package protocol CallStage: Sendable {
    /// Answers a request.
    /// - Parameter next: The stages that follow.
    /// - Throws: ``HTTPError``; `CancellationError`; what code of the program throws.
    func answer(_ call: Call, _ next: CallNext) async throws -> Answer
}

/// The stages after one, and the network after all of them.
package struct CallNext: Sendable {
    let stages: ArraySlice<any CallStage>
    let network: NetworkStage

    /// Answers a request.
    package func callAsFunction(_ call: Call) async throws -> Answer {
        guard let stage = stages.first else { return try await network.answer(call) }
        return try await stage.answer(call, CallNext(stages: stages.dropFirst(), network: network))
    }
}

/// The stages of one call, and what they share.
struct CallPipeline: Sendable {
    private let first: CallNext
    private let progress: CallProgress

    /// The stages that a call needs.
    /// - Parameter answer: The answer to its first request, if that was sent before the call needed a stage.
    init(_ call: Call, core: SessionCore, dialer: Dialer, control: TransferControl, after answer: Answer?) {
        let progress = CallProgress(call, core: core, dialer: dialer, control: control, after: answer)
        self.progress = progress
        var stages: [any CallStage] = [RedirectStage(progress: progress)]
        if call.retryPolicy.attempts > 1 { stages.append(RetryStage(progress: progress)) }
        for middleware in call.settings.configuration.middleware {
            stages.append(MiddlewareStage(middleware: middleware, progress: progress))
        }
        let features = call.stageSources
        func append(_ positions: ClosedRange<StagePosition>) {
            for source in features where positions.contains(source.position) {
                if let stage = source.stage(call, progress) { stages.append(stage) }
            }
        }
        append(.request ... .request)
        if let observer = call.observer, observer.hasInstruments {
            stages.append(InstrumentStage(observer: observer))
        }
        let hasAuthentication = features.contains { $0.isOwn && $0.position == .authentication }
        if !hasAuthentication, call.urlCredentials != nil || call.observer?.delegate != nil {
            stages.append(
                AuthenticationStage(CredentialSources(credentials: call.urlCredentials), call, progress))
        }
        append(.authentication ... .cache)
        first = CallNext(stages: stages[...], network: NetworkStage(progress: progress))
    }

    /// Sends requests until one has an answer that is the call's.
    /// - Throws: ``HTTPError``; `CancellationError`; what a middleware, a handler or a token provider threw.
    func answer() async throws -> Answer {
        do {
            let answer = try await first(progress.call)
            if progress.observer?.delegate != nil { await progress.readAhead(answer) }
            guard let stale = answer.provenance?.useFallback() else { return answer }
            answer.finish()
            return stale
        } catch let error as HTTPError where progress.isOwn(error) {
            guard let stale = try await progress.staleAnswer() else { throw error }
            return stale
        }
    }

    /// Sends the request again after an answer whose body was cut off or damaged.
    /// - Returns: The new answer; `nil` if the request is not sent again.
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

/// Adds the fields of instruments, such as `traceparent`.
struct InstrumentStage: CallStage {
    let observer: CallObserver

    func answer(_ call: Call, _ next: CallNext) async throws -> Answer {
        var request = call.publicRequest
        observer.inject(into: &request.headerFields)
        return try await next(try call.adapted(request))
    }
}
