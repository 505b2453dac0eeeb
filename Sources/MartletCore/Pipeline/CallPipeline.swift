/// A stage of a call: it may change the request, pass it on, and inspect the response.
///
/// The order of the stages is: redirects, retries, middleware, instruments, compression, authentication, cookies,
/// cache, network middleware, network. The list of a call contains only the stages that the call needs.
package protocol CallStage: Sendable {
    /// Returns the response to a request.
    /// - Parameter next: The following stages.
    /// - Throws: ``HTTPError``; `CancellationError`; any error of the program's code.
    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse
}

/// The stages after the current one, and the network after all of them.
package struct CallNext: Sendable {
    let stages: ArraySlice<any CallStage>
    let network: NetworkStage

    /// Passes a request to the next stage, and returns the response.
    package func callAsFunction(_ call: Call) async throws -> StreamedResponse {
        guard let stage = stages.first else { return try await network.answer(call) }
        return try await stage.answer(call, CallNext(stages: stages.dropFirst(), network: network))
    }
}

/// The last stage, which sends a request.
struct NetworkStage: Sendable {
    let progress: CallProgress
    var gate: (any TransferPauseGate)?

    func answer(_ call: Call) async throws -> StreamedResponse {
        if let answer = progress.takeFirstResponse() { return answer }
        let request = try progress.begin(call)
        do {
            let answer = try await CallRunner(
                core: progress.core, dialer: progress.dialer, call: request, control: progress.control, gate: gate
            ).run()
            progress.answered()
            return answer
        } catch let error as HTTPError { throw progress.own(error) }
    }
}

extension CallRunner {
    /// Sends a request of the cache through the network middleware, otherwise like ``run()``.
    package func runBelowCache() async throws -> StreamedResponse {
        let hasMiddleware = !call.settings.configuration.networkMiddleware.isEmpty
        return try await hasMiddleware ? runMiddleware() : run()
    }

    @inline(never) private func runMiddleware() async throws -> StreamedResponse {
        // The request may be that of a transfer that calls share, so it has a state of its own.
        let progress = CallProgress(call, core: core, dialer: dialer, control: control, after: nil)
        let middleware = call.settings.configuration.networkMiddleware
        let stages: [any CallStage] = middleware.map { MiddlewareStage(middleware: $0, progress: progress) }
        let next = CallNext(stages: stages[...], network: NetworkStage(progress: progress, gate: gate))
        let answer = try await next(call)
        guard case .made = answer.channel else { return answer }
        // The middleware's body is stored as it is: decoded, and perhaps of another length.
        let changed = ["content-encoding", "content-length", "content-digest", "repr-digest"]
        var head = answer.head
        head.fields = head.fields.filtered { !changed.contains($0) }
        return answer.passed(to: answer.call, head: head)
    }
}

// Functions that only some calls need are not inlined into the functions that every call waits in: see CallRunner.
extension HTTPSession {
    /// Runs a call up to the head of its response, then a closure with the response. Then the connection is released.
    @inline(__always) package nonisolated func run<Result>(
        _ call: Call, _ control: TransferControl, kind: HTTPTask.Kind = .data, isRestartable: Bool = false,
        before prepare: (() async throws -> Void)? = nil, _ consume: (StreamedResponse) async throws -> Result
    ) async throws -> Result {
        guard let number = core.calls.enter(control, call, kind) else { throw invalidated(call) }
        defer { leave(number, control) }
        do {
            return try await withTaskCancellationHandler {
                if Task.isCancelled { throw CancellationError() }
                if let prepare { try await prepare() }
                let first = try await firstResponse(call, control)
                if let first, !RedirectRule.mayFollow(first.head.status) {
                    return try await deliver(first, to: consume)
                }
                return try await runPipeline(
                    call, control, from: first, isRestartable: isRestartable, isDownload: kind == .download, consume)
            } onCancel: {
                control.cancel()
            }
        } catch let failure { throw reason(of: failure, call) }
    }

    /// Returns the response to the first request of a call that is not observed and needs at most one stage. If the
    /// response is a redirect, the pipeline follows it.
    /// - Returns: `nil` if the pipeline has to send the first request.
    @inline(__always) private nonisolated func firstResponse(_ call: Call, _ control: TransferControl) async throws
        -> StreamedResponse?
    {
        guard !call.addsStages, !core.observesCalls(settings) else { return nil }
        guard settings.activeStages.isEmpty else { return storedResponse(call, control) }
        return try await CallRunner(core: core, dialer: dialer, call: call, control: control).run()
    }

    /// Returns the response of the only stage, if it is available without waiting.
    @inline(never) private nonisolated func storedResponse(_ call: Call, _ control: TransferControl)
        -> StreamedResponse?
    {
        guard settings.activeStages.count == 1, !control.isCancelled else { return nil }
        return settings.activeStages[0].immediateResponse(call, core, dialer, control)
    }

    /// Runs a call with all of its stages, and reports it to observers.
    /// - Parameter first: The response to its first request, if that was already sent.
    @inline(never) private nonisolated func runPipeline<Result>(
        _ call: Call, _ control: TransferControl, from first: StreamedResponse?, isRestartable: Bool, isDownload: Bool,
        _ consume: (StreamedResponse) async throws -> Result
    ) async throws -> Result {
        guard first == nil, let observer = CallEventEmitter(call, core: core, control: control, isDownload: isDownload)
        else { return try await runStages(call, control, from: first, isRestartable, consume).result }
        return try await observer.accompany(call) {
            try await runStages(call.observed(by: observer), control, from: nil, isRestartable, consume)
        }
    }

    /// Runs the stages of a call.
    /// - Returns: The result; and the exchange, if the call is observed.
    @inline(never) private nonisolated func runStages<Result>(
        _ call: Call, _ control: TransferControl, from first: StreamedResponse?, _ isRestartable: Bool,
        _ consume: (StreamedResponse) async throws -> Result
    ) async throws -> (result: Result, exchange: HTTPExchange?) {
        let pipeline = CallPipeline(call, core: core, dialer: dialer, control: control, after: first)
        var answer: StreamedResponse
        do { answer = try await pipeline.answer() } catch {
            first?.finish()
            throw error
        }
        while true {
            do {
                return try await deliver(answer) { answer in
                    guard let observer = call.observer else { return (try await consume(answer), nil) }
                    let admitted = try await observer.admit(answer, control)
                    let result = try await consume(admitted)
                    return (result, result as? HTTPExchange ?? admitted.exchange(with: []))
                }
            } catch {
                let failure = pipeline.redirected(error)
                guard isRestartable, let known = failure as? HTTPError else { throw failure }
                answer = try await pipeline.answer(after: known, in: answer)
                control.restartBody()
            }
        }
    }

    /// Passes a response to a closure, and ends the response.
    @inline(__always) private nonisolated func deliver<Result>(
        _ answer: StreamedResponse, to consume: (StreamedResponse) async throws -> Result
    ) async throws -> Result {
        defer { answer.finish() }
        answer.call.log(answer)
        return try await consume(answer)
    }

    /// Logs the error of a failed call, and returns the error that the session's mapper makes of it.
    @inline(never) private nonisolated func reason(of failure: any Error, _ call: Call) -> any Error {
        let error = call.reason(of: failure)
        call.log(error)
        return settings.mapped(error)
    }

    @inline(never) private nonisolated func invalidated(_ call: Call) -> HTTPError {
        call.error(.sessionInvalidated, .preparing, "the session was invalidated")
    }

    @inline(never) private nonisolated func leave(_ number: Int, _ control: TransferControl) {
        core.calls.leave(number)
        if core.bandwidth.hasTransfers { control.endTransfer(core.bandwidth) }
        if control.isExposed {
            // The task of the call may live longer, and must not retain the connection or the pool.
            control.begin(.none)
            control.upload?.update { $0.isFinished = true }
            control.download?.update { $0.isFinished = true }
        }
    }
}

/// The stages of one call, and the state that they share.
struct CallPipeline: Sendable {
    private let first: CallNext
    private let progress: CallProgress

    /// Creates the stages that a call needs.
    /// - Parameter answer: The response to its first request, if that was sent before the call needed a stage.
    init(_ call: Call, core: SessionCore, dialer: Dialer, control: TransferControl, after answer: StreamedResponse?) {
        let progress = CallProgress(call, core: core, dialer: dialer, control: control, after: answer)
        self.progress = progress
        if let budget = call.retryPolicy.budget, call.retryPolicy.maximumAttempts > 1 {
            core.retryBudget.deposit(budget)
        }
        let stages = call.stageSources.compactMap { $0.stage(call, progress) }
        first = CallNext(
            stages: [RedirectStage(progress: progress)] + stages, network: NetworkStage(progress: progress))
    }

    /// Sends requests until one has the response that the call returns.
    /// - Throws: ``HTTPError``; `CancellationError`; any error of a middleware, a handler or a token provider.
    func answer() async throws -> StreamedResponse {
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

    /// Returns the error of a response's body; after a redirect, with the URL that was redirected first.
    func redirected(_ error: any Error) -> any Error {
        guard let failure = error as? HTTPError else { return error }
        return progress.redirected(failure)
    }

    /// Sends the request again after a response whose body was truncated or corrupt, and returns the new response.
    /// - Throws: The error if the request is not sent again; the errors of ``answer()``.
    func answer(after error: HTTPError, in broken: StreamedResponse) async throws -> StreamedResponse {
        let isStoredBadly = error.code == .cachedBodyCorrupted || broken.isStoredBadly(error)
        let leavesCache = isStoredBadly && progress.ignoreStored()
        if !leavesCache { try await progress.retry(after: error, of: broken.call) }
        return try await answer()
    }
}

/// A stage that calls may need: a stage of the core, or of a feature's setting.
struct StageSource: Sendable {
    /// The setting that adds the stage; `nil` for a stage of the core.
    var key: ObjectIdentifier?
    let position: StagePosition
    /// Whether Martlet provides the stage. At one position, Martlet's stages follow those of other packages.
    var isOwn = true
    /// The function that decides whether calls without options of their own need the stage.
    let isActive: @Sendable (SessionConfiguration) -> Bool
    /// The function that creates the stage; it returns `nil` if the call does not need it.
    let stage: @Sendable (Call, CallProgress) -> (any CallStage)?
    /// The function that returns the stage's response without waiting, if possible, for a call without other stages.
    var immediateResponse: @Sendable (Call, SessionCore, Dialer, TransferControl) -> StreamedResponse? = { _, _, _, _ in
        nil
    }
    var urlReplacement: @Sendable (SessionConfiguration) -> (@Sendable (HTTPURL, RequestOptions) -> HTTPURL)? = { _ in
        nil
    }

    func isOwn(at position: StagePosition) -> Bool { isOwn && self.position == position }

    /// Returns the stage of a setting; `nil` if the setting has none.
    static func of<Key: SettingKey>(_ key: Key.Type) -> StageSource? {
        if let key = key as? any StageKey.Type { return own(key) }
        if let key = key as? any FeatureKey.Type { return feature(key) }
        return nil
    }

    private static func own<Key: StageKey>(_ key: Key.Type) -> StageSource {
        StageSource(
            key: ObjectIdentifier(key), position: Key.position, isActive: { Key.isActive($0[key]) },
            stage: { Key.stage(for: $0, $1) }, immediateResponse: { Key.immediateResponse($0, $1, $2, $3) },
            urlReplacement: { Key.urlReplacement($0[key]) })
    }

    private static func feature<Key: FeatureKey>(_ key: Key.Type) -> StageSource {
        StageSource(
            key: ObjectIdentifier(key), position: Key.position, isOwn: false,
            isActive: { Key.middleware(for: $0[key]) != nil },
            stage: { call, progress in
                Key.middleware(for: call[key]).map { MiddlewareStage(middleware: $0, progress: progress) }
            })
    }

    /// Returns all stages that calls may need, between redirects and the network, in the order of the pipeline.
    static func pipeline(_ configuration: SessionConfiguration, _ features: [StageSource]) -> [StageSource] {
        let features = features.enumerated().sorted { ($0.element.place, $0.offset) < ($1.element.place, $1.offset) }
            .map(\.element)
        func stages(_ middleware: [any HTTPMiddleware]) -> [StageSource] {
            middleware.map { middleware in
                StageSource(position: .request, isActive: { _ in true }) { _, progress in
                    MiddlewareStage(middleware: middleware, progress: progress)
                }
            }
        }
        let first = [retry] + stages(configuration.middleware) + features.filter { $0.position == .request }
        let hasAuthentication = features.contains { $0.isOwn(at: .authentication) }
        let last = features.filter { $0.position != .request } + stages(configuration.networkMiddleware)
        return first + [instruments, compression] + (hasAuthentication ? [] : [authentication]) + last
    }

    private var place: Int { 2 * position.rawValue + (isOwn ? 1 : 0) }

    private static let retry = StageSource(position: .request, isActive: { $0.retry.maximumAttempts > 1 }) {
        call, progress in call.retryPolicy.maximumAttempts > 1 ? RetryStage(progress: progress) : nil
    }

    private static let instruments = StageSource(position: .request, isActive: { _ in false }) { call, _ in
        call.observer.flatMap { $0.hasInstruments ? InstrumentStage(observer: $0) : nil }
    }

    /// A middleware may compress the body of any call that has one.
    private static let compression = StageSource(position: .request, isActive: { _ in false }) { call, progress in
        call.body.isPresent ? CompressionStage(progress) : nil
    }

    /// The stage for sessions without authentication settings: it uses the credentials of the URL and of the delegate.
    private static let authentication = StageSource(position: .authentication, isActive: { $0.delegate != nil }) {
        call, progress in
        guard call.urlCredentials != nil || call.observer?.delegate != nil else { return nil }
        return AuthenticationStage(CredentialSources(credentials: call.urlCredentials), call, progress)
    }
}

extension Call {
    /// Whether the call may need stages in addition to those of its session.
    var addsStages: Bool { options.hasStages || urlCredentials != nil || body.compression != nil }

    /// The stages that the call may need, in the order of the pipeline.
    var stageSources: [StageSource] {
        let added = options.settings.stages.filter { own in !settings.features.contains { $0.key == own.key } }
        guard !added.isEmpty else { return settings.stages }
        return StageSource.pipeline(settings.configuration, settings.features + added)
    }
}

/// A stage that adds the fields of instruments, such as `traceparent`.
private struct InstrumentStage: CallStage {
    let observer: CallEventEmitter

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        var request = call.publicRequest
        let own = request.headerFields
        observer.inject(into: &request.headerFields)
        let added = Set(request.headerFields.filter { !own.contains($0) }.map(\.name.canonicalName))
        let traced = try call.adapted(request)
        return try await next(added.isEmpty ? traced : traced.supplemented { $0.tracingFields = added })
    }
}
