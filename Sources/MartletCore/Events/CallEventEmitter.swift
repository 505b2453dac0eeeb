import Synchronization

/// An emitter of the events of one call to subscribers, middleware, instruments and the session's delegate.
///
/// Calls without any of these have no emitter.
package final class CallEventEmitter: Sendable {
    private struct Counts {
        var sent = 0
        var started = 0
        var redirects = 0
        /// Whether the call has ended. A transfer that it started may continue for other calls.
        var isOver = false
    }

    let number: UInt64
    package let delegate: (any SessionDelegate)?
    /// The progress of the request's body; `nil` without a delegate.
    let upload: ProgressState?
    private let start: MonotonicTime
    private let hub: EventBroadcaster<SessionEvent>
    private let middleware: [any HTTPMiddleware]
    private let instruments: [any CallInstrument]
    private let isDownload: Bool
    private let userCode: UserCode
    /// The lock on the counts, used by the call's tasks.
    private let counts = Mutex(Counts())

    /// Creates the emitter of a call; `nil` if it has no receiver.
    /// - Parameter isDownload: Whether the call itself is a download.
    init?(_ call: Call, core: SessionCore, control: TransferControl, isDownload: Bool) {
        let settings = call.settings
        guard core.observesCalls(settings) else { return nil }
        (number, start, hub) = (call.number, call.start, core.events)
        delegate = settings.configuration.delegate
        middleware = settings.middleware
        instruments = settings.instruments(for: call, pool: core.pool)
        upload = delegate != nil && call.body.isPresent ? ProgressState() : nil
        self.isDownload = isDownload
        userCode = UserCode(call, control: control, loop: core.loop)
    }

    // MARK: Events

    func emit(_ kind: SessionEvent.Kind, hop: HTTPHop? = nil) {
        guard !counts.withLock({ $0.isOver }) else { return }
        let event = SessionEvent(kind, call: number, elapsed: MonotonicTime.now().since(start))
        for instrument in instruments { instrument.observe(event, hop: hop) }
        hub.emit(event)
        guard !middleware.isEmpty else { return }
        let context = context
        for middleware in middleware { middleware.observe(event, in: context) }
    }

    func requestSent() {
        let attempt = counts.withLock { counts in
            counts.started += 1
            return counts.started
        }
        emit(.requestSent(attempt: attempt))
    }

    func connected(_ connection: ConnectionInformation, isReused: Bool) {
        emit(isReused ? .connectionReused(connection) : .connectionOpened(connection))
    }

    /// Reports that another request follows.
    func follows(_ hop: HTTPHop, to target: HTTPURL?) {
        switch hop.reason {
        case .redirect: emit(.redirected(status: hop.status ?? 0, to: (target ?? hop.url).bare.absoluteForm), hop: hop)
        case .challenge: emit(.challenged(status: hop.status ?? 0), hop: hop)
        case .retry, .middleware: emit(.retrying(status: hop.status, error: hop.error, delay: hop.delay), hop: hop)
        }
    }

    var context: CallContext {
        let counts = counts.withLock { $0 }
        return CallContext(
            number: number, sentCount: counts.sent, redirectCount: counts.redirects,
            elapsed: MonotonicTime.now().since(start))
    }

    func note(sentCount: Int, redirectCount: Int) {
        counts.withLock { ($0.sent, $0.redirects) = (sentCount, redirectCount) }
    }

    var hasInstruments: Bool { !instruments.isEmpty }

    func inject(into fields: inout HTTPFields) { for instrument in instruments { instrument.inject(into: &fields) } }

    // MARK: The delegate

    /// Runs a function of the delegate whose result the call needs.
    /// - Parameters:
    ///   - name: The name of the function, for the error at the total timeout.
    ///   - exchange: The exchange whose connection the call holds.
    ///   - otherwise: The result without a delegate.
    func ask<Value: Sendable>(
        _ name: String, _ phase: HTTPError.Phase, holding exchange: Exchange?, sentCount: Int? = nil, otherwise: Value,
        _ body: @escaping @Sendable (any SessionDelegate, CallContext) async throws -> Value
    ) async throws -> Value {
        guard let delegate else { return otherwise }
        let context = context
        return try await userCode.run(
            "the delegate's \(name)", phase, holding: exchange, sentCount: sentCount ?? context.sentCount
        ) { try await body(delegate, context) }
    }

    /// Runs a function of the delegate that has no effect on the call.
    private func notify(_ body: @escaping @Sendable (any SessionDelegate, CallContext) async -> Void) async {
        guard let delegate else { return }
        let context = context
        await userCode.notify { await body(delegate, context) }
    }

    /// Makes the delegate handle challenges before the handler.
    func addDelegate(to sources: inout CredentialSources) {
        guard let delegate else { return }
        let handler = sources.handler
        sources.handler = { challenge in
            switch try await delegate.respond(to: challenge, in: self.context) {
            case .credentials(let credentials): credentials
            case .performDefaultHandling: try await handler?(challenge)
            case .returnResponse: nil
            }
        }
    }

    /// Reports the progress of the request's body to the delegate, until its end or until the task is cancelled.
    /// - Returns: Whether the end was reported.
    private func notifyUpload() async -> Bool {
        guard let upload, delegate != nil else { return true }
        var isComplete = false
        for await progress in ProgressSequence(state: upload) {
            await notify { await $0.bodySent(progress, in: $1) }
            isComplete = progress.isFinished
        }
        return isComplete
    }

    /// Passes a response whose head was received to the delegate for its decision.
    /// - Returns: The response to continue with.
    func admit(_ answer: StreamedResponse, _ control: TransferControl) async throws -> StreamedResponse {
        emit(
            .responseReceived(
                status: answer.head.status, byteCount: answer.expectedContentLength, source: answer.source))
        guard delegate != nil else { return answer }
        let response = HeadConversion.response(answer.head)
        let disposition = try await ask(
            "received(_:in:)", .processingResponse, holding: answer.channel.heldExchange,
            otherwise: ResponseDisposition.allow
        ) { try await $0.received(response, in: $1) }
        if control.isCancelled { throw CancellationError() }
        switch disposition {
        case .allow: return answer
        case .cancel:
            // No more of the body is needed. The connection is closed rather than reused.
            answer.channel.reject()
            throw answer.call.error(
                .cancelledByDelegate, .processingResponse,
                "the session's delegate cancelled the call after the head of the response", wasSent: true,
                attempts: context.sentCount, exchange: answer.exchange(with: []))
        case .becomeDownload(let path, let overwrites):
            // A task that became a download before this decision writes the whole body to its own file.
            let place = DownloadDestination(path: path, overwrites: overwrites)
            guard !isDownload, control.setDelegatedDestination(place) else { return answer }
            let reader = BodyReader(answer, control: control, byteLimit: answer.call.options.bodyLimit?.bytes)
            let download = FileDownload(path: path, overwrites: overwrites, call: answer.call)
            try await download.write(reader)
            await downloadFinished(at: path)
            return answer.emptied
        }
    }

    func destination(of answer: StreamedResponse, proposed: FilePath) async throws -> FilePath {
        guard delegate != nil else { return proposed }
        let response = HeadConversion.response(answer.head)
        return try await ask(
            "destination(of:proposed:in:)", .processingResponse, holding: answer.channel.heldExchange,
            otherwise: proposed
        ) { try await $0.destination(of: response, proposed: proposed, in: $1) ?? proposed }
    }

    func downloadFinished(at path: FilePath) async { await notify { await $0.downloadFinished(at: path, in: $1) } }

    /// Reports received bytes of the body.
    /// - Parameter bytes: Returns the bytes; called only if the delegate receives them.
    func bodyReceived(_ byteCount: Int, from channel: ResponseBodySource, bytes: () -> [UInt8]) async throws {
        guard let delegate else { return }
        let bytes = delegate.receivesBodyBytes ? bytes() : nil
        try await ask("bodyReceived(_:in:)", .receivingBody, holding: channel.heldExchange, otherwise: ()) {
            await $0.bodyReceived(byteCount, in: $1)
            if let bytes { await $0.bodyBytesReceived(bytes, in: $1) }
        }
    }

    // MARK: The call

    /// Reports a call from its start to its end.
    /// - Parameter body: Runs the call, and returns its result and its exchange.
    func accompany<Value>(_ call: Call, _ body: () async throws -> (result: Value, exchange: HTTPExchange?))
        async throws -> Value
    {
        emit(.started(method: call.method, url: call.url.bare.absoluteForm))
        async let wasNotified = notifyUpload()
        let ended: Result<(result: Value, exchange: HTTPExchange?), any Error>
        do { ended = .success(try await body()) } catch { ended = .failure(error) }
        upload?.update { $0.isFinished = true }
        // If the task was cancelled, the last state is not reported yet.
        if !(await wasNotified), let progress = upload?.value { await notify { await $0.bodySent(progress, in: $1) } }
        switch ended {
        case .success(let (result, exchange)):
            guard let exchange else { return result }
            let metrics = exchange.metrics
            emit(.finished(metrics.bare))
            counts.withLock { $0.isOver = true }
            await notify { delegate, context in
                await delegate.metricsCollected(metrics, in: context)
                await delegate.completed(.succeeded(exchange), in: context)
            }
            return result
        case .failure(let failure):
            let error = call.reason(of: failure)
            emit(error is CancellationError ? .cancelled : .failed((error as? HTTPError)?.code))
            counts.withLock { $0.isOver = true }
            await notify { await $0.completed(.failed(error), in: $1) }
            throw error
        }
    }
}

/// An instrument that measures or traces one call, added by the package traits `Metrics` and `Tracing`.
protocol CallInstrument: Sendable {
    /// Receives an event. Must return quickly.
    func observe(_ event: SessionEvent, hop: HTTPHop?)
    /// Adds the fields that let the server link the request to a trace.
    func inject(into fields: inout HTTPFields)
}
