import MartletCredentials
import MartletURL
import Logging
import MartletConnections
import MartletTransport
import MartletWire

/// How a call is taken through: entered, observed, stepped from answer to answer, and left.
///
/// What most calls do without is not made part of what they wait in: see ``CallRunner``.
extension HTTPSession {
    /// Runs a call up to its head, then a closure with the answer; ends everything the call has open.
    @inline(__always)
    package nonisolated func run<Result>(
        _ call: Call, _ control: TransferControl, isRestartable: Bool = false, isDownload: Bool = false,
        before prepare: (() async throws -> Void)? = nil, _ consume: (Answer) async throws -> Result
    ) async throws -> Result {
        guard let number = core.calls.enter(control) else { throw invalidated(call) }
        defer { leave(number, control) }
        do {
            return try await withTaskCancellationHandler {
                if Task.isCancelled { throw CancellationError() }
                if let prepare { try await prepare() }
                // A call that needs no stage. If its answer is a redirect, a pipeline continues from that.
                let answer: Answer
                if call.isPlain, !core.events.isWatched {
                    answer = try await CallRunner(core: core, dialer: dialer, call: call, control: control)
                        .run()
                } else if let found = call.answerAtOnce(core, dialer, control) {
                    answer = found
                } else {
                    return try await runPipeline(
                        call, control, from: nil, isRestartable: isRestartable, isDownload: isDownload,
                        consume)
                }
                if RedirectRule.mayFollow(answer.head.status) {
                    return try await runPipeline(
                        call, control, from: answer, isRestartable: isRestartable, consume)
                }
                defer { answer.finish() }
                log(call, answer)
                return try await consume(answer)
            } onCancel: {
                control.cancel()
            }
        } catch let failure {
            throw await reason(of: failure, call, control)
        }
    }

    /// The error that a failed call throws, as the session's mapper has it.
    @inline(never)
    private nonisolated func reason(
        of failure: any Error, _ call: Call, _ control: TransferControl
    ) async -> any Error {
        let error = AnswerRefusal.reason(of: failure)
        logFailure(of: call, error)
        return await settings.mapped(error, UserCode(call, control: control, loop: core.loop))
    }

    @inline(never)
    private nonisolated func invalidated(_ call: Call) -> HTTPError {
        HTTPError(
            .sessionInvalidated, phase: .preparing, message: "the session was invalidated",
            origin: call.url.origin.description)
    }

    @inline(never)
    private nonisolated func leave(_ number: Int, _ control: TransferControl) {
        core.calls.leave(number)
        if core.bandwidth.hasTransfers { control.endTransfer(core.bandwidth) }
        if control.isExposed {
            // Whoever still holds the task holds no connection, and no pool.
            control.begin(.none)
            control.upload?.update { $0.isFinished = true }
            control.download?.update { $0.isFinished = true }
        }
    }

    /// Runs a call that has observers, or may send more than one request.
    /// - Parameter first: The answer to its first request, if that was sent already.
    @inline(never)
    private nonisolated func runPipeline<Result>(
        _ call: Call, _ control: TransferControl, from first: Answer?, isRestartable: Bool,
        isDownload: Bool = false, _ consume: (Answer) async throws -> Result
    ) async throws -> Result {
        guard first == nil,
            let observer = CallObserver(call, core: core, control: control, isDownload: isDownload)
        else { return try await runStages(call, control, from: first, isRestartable, consume).result }
        return try await observer.accompany(call) {
            try await runStages(call.observed(by: observer), control, from: nil, isRestartable, consume)
        }
    }

    /// - Returns: The result; and what the call was, where somebody is told.
    @inline(never)
    private nonisolated func runStages<Result>(
        _ call: Call, _ control: TransferControl, from first: Answer?, _ isRestartable: Bool,
        _ consume: (Answer) async throws -> Result
    ) async throws -> (result: Result, exchange: HTTPExchange?) {
        let pipeline = CallPipeline(call, core: core, dialer: dialer, control: control, after: first)
        var answer: Answer
        do {
            answer = try await pipeline.answer()
        } catch {
            first?.finish()
            throw error
        }
        while true {
            do {
                defer { answer.finish() }
                log(answer.call, answer)
                guard let observer = call.observer else { return (try await consume(answer), nil) }
                answer = try await observer.admit(answer, control)
                let result = try await consume(answer)
                return (result, result as? HTTPExchange ?? answer.exchange(with: []))
            } catch let error as HTTPError where isRestartable {
                guard let another = try await pipeline.answer(after: error, in: answer) else { throw error }
                control.download?.update { $0.completedByteCount = 0 }
                answer = another
            }
        }
    }

    @inline(never)
    private nonisolated func logFailure(of call: Call, _ error: any Error) {
        settings.configuration.logger.debug(
            "call failed",
            metadata: ["method": "\(call.method)", "origin": "\(call.url.origin)", "error": "\(error)"])
    }

    @inline(never)
    private nonisolated func log(_ call: Call, _ answer: Answer) {
        settings.configuration.logger.debug(
            "response",
            metadata: [
                "method": "\(call.method)", "origin": "\(call.url.origin)", "status": "\(answer.head.status)",
                "reused": "\(answer.channel.isReused)", "source": "\(answer.source.rawValue)",
            ])
    }
}

// The session as a whole: what it holds, what bounds it, and its end.
extension HTTPSession {
    /// Counts of connections by what they do, and of requests that wait for one.
    public nonisolated var poolStatus: PoolStatus { core.pool.snapshot }

    /// How many calls run.
    public nonisolated var runningCallCount: Int { core.runningCount }

    /// What the session holds at this moment, host by host, and what all sessions of the process hold together.
    ///
    /// Takes time in proportion to the number of hosts and of open descriptors: meant for a look now and then, not for each
    /// request.
    public nonisolated var diagnostics: SessionDiagnostics { SessionDiagnostics(core) }

    /// The limits of connections in force: those of ``SessionConfiguration/pool``, or of the last ``setPoolLimits(_:)``, as
    /// features such as the `concurrency` of `Martlet` have changed them.
    public nonisolated var poolLimits: PoolLimits { core.poolLimits }

    /// Changes the limits of connections while calls run; views share the change.
    ///
    /// Connections in use are never closed: lower limits hold as these become free. Limits that a feature sets replace these.
    public nonisolated func setPoolLimits(_ limits: PoolLimits) { core.setPoolLimits(limits) }

    /// Changes how fast bodies may go, while calls run, which heed it at once; views share the change.
    public nonisolated func setBandwidthLimits(_ limits: BandwidthLimits) { core.bandwidth.setLimits(limits) }

    /// Lets the calls that run end, then closes all connections. New calls throw at once; views share the end.
    ///
    /// Awaited by code of a call that runs, such as the closure of a stream, it waits for the other calls only; the
    /// session is closed when that call has ended.
    public func finishAndInvalidate() async { await invalidate(cancelling: false) }

    /// Cancels the calls that run and closes all connections; returns when they have ended. New calls throw at once;
    /// views share the end.
    ///
    /// Awaited by code of a call that runs, such as a handler or the closure of a stream, it does not wait for that call,
    /// which ends with `CancellationError` like the others.
    public func invalidateAndCancel() async { await invalidate(cancelling: true) }

    private func invalidate(cancelling: Bool) async {
        let delegate = configuration.delegate
        await core.invalidate(cancelling: cancelling) {
            guard let delegate else { return }
            try? await waitUnlessCancelled { await delegate.sessionInvalidated() }
        }
    }
}

extension HTTPSession {
    /// Fetches a URL and collects the answer. Append `.decode()` to have JSON decoded, or `.validated()` to insist on 2xx.
    /// - Throws: An ``HTTPError``, with the code `.invalidURL` when the string is no URL; `CancellationError`.
    public nonisolated func get(
        _ url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.get, try HTTPSession.url(url), headers: headers, options: options)
    }

    /// Asks for the head alone (RFC 9110 §9.3.2).
    public nonisolated func head(
        _ url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.head, try HTTPSession.url(url), headers: headers, options: options)
    }

    /// Posts a body to a URL and collects the answer.
    public nonisolated func post(
        _ url: String, body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.post, try HTTPSession.url(url), headers: headers, body: body, options: options)
    }

    /// Puts a body at a URL and collects the answer.
    public nonisolated func put(
        _ url: String, body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.put, try HTTPSession.url(url), headers: headers, body: body, options: options)
    }

    /// Patches what is at a URL and collects the answer.
    public nonisolated func patch(
        _ url: String, body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.patch, try HTTPSession.url(url), headers: headers, body: body, options: options)
    }

    /// Deletes what is at a URL and collects the answer.
    public nonisolated func delete(
        _ url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.delete, try HTTPSession.url(url), headers: headers, options: options)
    }
}

extension HTTPRequest {
    /// A request to a URL.
    public init(method: HTTPRequest.Method, url: HTTPURL, headerFields: HTTPFields = HTTPFields()) {
        self.init(
            method: method, scheme: url.scheme.rawValue, authority: url.hostFieldValue,
            path: url.requestTarget, headerFields: headerFields)
    }

    /// A request to a URL given as a string.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`, whose message points at the character.
    public init(
        method: HTTPRequest.Method, url: String, headerFields: HTTPFields = HTTPFields()
    ) throws(HTTPError) {
        self.init(method: method, url: try HTTPSession.url(url), headerFields: headerFields)
    }
}

/// A session that is not kept: it can be ended as long as somebody else keeps it, or a call of it runs.
package struct WeakSession: Sendable {
    private weak var core: SessionCore?

    /// A reference to a session and its views.
    package init(_ session: HTTPSession) { core = session.core }

    /// Whether there is still a session to end.
    package var isAlive: Bool { core != nil }

    /// Ends it as ``HTTPSession/invalidateAndCancel()`` does; delegates are not told.
    package func invalidateAndCancel() async { await core?.invalidate(cancelling: true) {} }
}
