import MartletCredentials
import MartletURL
import MartletTransport
import Synchronization
import SystemPackage

/// What happens in one call, told to whom it concerns: subscribers, middleware, instruments and the session's delegate.
///
/// Calls that concern nobody have none.
package final class CallObserver: Sendable {
    private struct Counts {
        var sent = 0
        var begun = 0
        var redirects = 0
        /// Whether the call has ended: a transfer that it began for others as well may go on.
        var isOver = false
    }

    /// The call's number.
    let number: UInt64
    package let delegate: (any SessionDelegate)?
    /// What has gone up; `nil` where no delegate is told.
    let upload: ProgressState?
    private let start: MonotonicTime
    private let hub: EventHub<SessionEvent>
    private let middleware: [any HTTPMiddleware]
    private let instruments: [any CallInstrument]
    private let isDownload: Bool
    private let userCode: UserCode
    /// Guards what contexts say: the call's tasks.
    private let counts = Mutex(Counts())

    /// An observer of a call, where anybody wants to know of it.
    /// - Parameter isDownload: Whether its body is written to a file in any case.
    init?(_ call: Call, core: SessionCore, control: TransferControl, isDownload: Bool) {
        let settings = call.settings
        guard settings.isObserved || core.events.isWatched else { return nil }
        number = control.callNumber ?? CallNumber.next()
        start = call.start
        hub = core.events
        delegate = settings.configuration.delegate
        middleware = settings.configuration.middleware
        instruments = settings.instruments(for: call, pool: core.pool)
        upload = delegate != nil && call.body.isPresent ? ProgressState() : nil
        self.isDownload = isDownload
        userCode = UserCode(call, control: control, loop: core.loop)
    }

    // MARK: Telling

    /// Tells what happened.
    func tell(_ kind: SessionEvent.Kind, hop: HTTPHop? = nil) {
        guard !counts.withLock({ $0.isOver }) else { return }
        let event = SessionEvent(kind, call: number, elapsed: MonotonicTime.now().since(start))
        for instrument in instruments { instrument.observe(event, hop: hop) }
        hub.tell(event)
        guard !middleware.isEmpty else { return }
        let context = context
        for middleware in middleware { middleware.observe(event, in: context) }
    }

    /// Tells that a request went out.
    func requestSent() {
        let attempt = counts.withLock { counts in
            counts.begun += 1
            return counts.begun
        }
        tell(.requestSent(attempt: attempt))
    }

    /// Tells what a request is sent over.
    func connected(_ connection: ConnectionInformation, isReused: Bool) {
        tell(isReused ? .connectionReused(connection) : .connectionOpened(connection))
    }

    /// Tells that another request follows.
    func follows(_ hop: HTTPHop, to target: HTTPURL?) {
        switch hop.reason {
        case .redirect:
            tell(.redirected(status: hop.status ?? 0, to: (target ?? hop.url).bare.absoluteForm), hop: hop)
        case .challenge: tell(.challenged(status: hop.status ?? 0), hop: hop)
        case .retry, .middleware:
            tell(.retrying(status: hop.status, error: hop.error, delay: hop.delay), hop: hop)
        }
    }

    /// Where in the call this is.
    var context: CallContext {
        let counts = counts.withLock { $0 }
        return CallContext(
            number: number, sentCount: counts.sent, redirectCount: counts.redirects,
            elapsed: MonotonicTime.now().since(start))
    }

    /// Notes what contexts say.
    func note(sentCount: Int, redirectCount: Int) {
        counts.withLock { ($0.sent, $0.redirects) = (sentCount, redirectCount) }
    }

    /// Whether instruments have fields to add.
    var hasInstruments: Bool { !instruments.isEmpty }

    /// Adds the fields of instruments.
    func inject(into fields: inout HTTPFields) {
        for instrument in instruments { instrument.inject(into: &fields) }
    }

    // MARK: The delegate

    /// Has the delegate asked about challenges before the handler.
    func addDelegate(to sources: inout CredentialSources) {
        guard let delegate else { return }
        let handler = sources.handler
        sources.handler = { challenge in
            switch try await delegate.answer(to: challenge, in: self.context) {
            case .credentials(let credentials): credentials
            case .performDefault: try await handler?(challenge)
            case .leave: nil
            }
        }
    }

    /// Tells the delegate how far the request's body has gone, until that is at its end or the task is cancelled.
    /// - Returns: Whether it was told the end.
    func tellUpload() async -> Bool {
        guard let upload, let delegate else { return true }
        var isComplete = false
        for await progress in ProgressSequence(state: upload) {
            let context = context
            await userCode.tell { await delegate.bodySent(progress, in: context) }
            isComplete = progress.isFinished
        }
        return isComplete
    }

    /// Ends ``tellUpload()``.
    func endUpload() { upload?.update { $0.isFinished = true } }

    /// Tells the delegate the last state of the request's body, which a cancelled ``tellUpload()`` has not.
    func tellUploadEnd() async {
        guard let upload, let delegate else { return }
        let (progress, context) = (upload.value, context)
        await userCode.tell { await delegate.bodySent(progress, in: context) }
    }

    /// Tells that the answer is there, and asks what becomes of it.
    /// - Returns: The answer to go on with.
    func admit(_ answer: Answer, _ control: TransferControl) async throws -> Answer {
        tell(.responseReceived(status: answer.head.status, byteCount: answer.announcedByteCount))
        guard let delegate else { return answer }
        let (response, context) = (HeadConversion.response(answer.head), context)
        let disposition = try await userCode.run(
            "the delegate's received(_:in:)", .evaluating, holding: answer.channel.heldExchange,
            sentCount: context.sentCount
        ) { try await delegate.received(response, in: context) }
        if control.isCancelled { throw CancellationError() }
        switch disposition {
        case .allow: return answer
        case .cancel:
            control.cancel()
            throw CancellationError()
        case .becomeDownload(let path, let overwrites):
            // A task that became a download before has its own file, which the whole body goes to.
            let place = DownloadDestination(path: path, overwrites: overwrites)
            guard !isDownload, control.setDelegatedDestination(place) else { return answer }
            let reader = BodyReader(answer, control: control, byteLimit: answer.call.options.bodyLimit?.bytes)
            let download = FileDownload(
                path: path, overwrites: overwrites, origin: answer.call.url.origin.description)
            try await download.write(reader)
            await downloadFinished(at: path)
            return answer.emptied
        }
    }

    /// Where a download goes.
    func destination(of answer: Answer, proposed: FilePath) async throws -> FilePath {
        guard let delegate else { return proposed }
        let response = HeadConversion.response(answer.head)
        let context = context
        return try await userCode.run(
            "the delegate's destination(of:proposed:in:)", .evaluating, holding: answer.channel.heldExchange,
            sentCount: context.sentCount
        ) { try await delegate.destination(of: response, proposed: proposed, in: context) ?? proposed }
    }

    func downloadFinished(at path: FilePath) async {
        guard let delegate else { return }
        let context = context
        await userCode.tell { await delegate.downloadFinished(at: path, in: context) }
    }

    func bodyReceived(_ byteCount: Int, from channel: BodyChannel) async throws {
        guard let delegate else { return }
        let context = context
        try await userCode.run(
            "the delegate's bodyReceived(_:in:)", .receivingBody, holding: channel.heldExchange,
            sentCount: context.sentCount
        ) { await delegate.bodyReceived(byteCount, in: context) }
    }

    // MARK: The call

    /// Reports a call from its start to its end.
    /// - Parameter body: Runs the call, and returns its result and its exchange.
    func accompany<Result>(
        _ call: Call, _ body: () async throws -> (result: Result, exchange: HTTPExchange?)
    ) async throws -> Result {
        tell(.started(method: call.method, url: call.url.bare.absoluteForm))
        async let told = tellUpload()
        do {
            let (result, exchange) = try await body()
            endUpload()
            if !(await told) { await tellUploadEnd() }
            if let exchange { await completed(exchange) }
            return result
        } catch {
            endUpload()
            if !(await told) { await tellUploadEnd() }
            await failed(AnswerRefusal.reason(of: error))
            throw error
        }
    }

    /// Tells that the call ended with an answer.
    func completed(_ exchange: HTTPExchange) async {
        let metrics = exchange.metrics
        tell(.finished(metrics.bare))
        counts.withLock { $0.isOver = true }
        guard let delegate else { return }
        let context = context
        await userCode.tell {
            await delegate.collected(metrics, in: context)
            await delegate.completed(.answered(exchange), in: context)
        }
    }

    /// Tells that the call failed.
    func failed(_ error: any Error) async {
        tell(error is CancellationError ? .cancelled : .failed((error as? HTTPError)?.code))
        counts.withLock { $0.isOver = true }
        guard let delegate else { return }
        let context = context
        await userCode.tell { await delegate.completed(.failed(error), in: context) }
    }
}

/// Measures or traces one call: what the package traits `Metrics` and `Tracing` add.
protocol CallInstrument: Sendable {
    /// Takes note of what happened, at once.
    func observe(_ event: SessionEvent, hop: HTTPHop?)
    /// Adds the fields by which the server can tell whose request this is.
    func inject(into fields: inout HTTPFields)
}
