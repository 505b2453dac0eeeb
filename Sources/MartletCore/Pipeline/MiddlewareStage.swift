import Synchronization

/// A stage that passes a request to a middleware.
struct MiddlewareStage: CallStage {
    let middleware: any HTTPMiddleware
    let progress: CallProgress

    func answer(_ call: Call, _ next: CallNext) async throws -> StreamedResponse {
        let run = MiddlewareRun(call, next, progress)
        let (middleware, context) = (middleware, progress.context())
        let request = HTTPCall.Request(call.publicRequest, body: call.body)
        do {
            let response = try await progress.userCode.run(
                "the middleware's handle(_:context:next:)", .preparing, sentCount: progress.sentCount,
                request: { run.request }
            ) { try await middleware.handle(request, context: context, next: HTTPNext(send: run.send)) }
            return try run.end(with: response)
        } catch {
            run.end()
            throw error
        }
    }
}

/// One run of a middleware: the requests that it sends, and its open response.
private final class MiddlewareRun: Sendable {
    private struct State {
        var answer: OpenMiddlewareResponse?
        var request = UserCode.RequestState.idle
        /// Whether the middleware has returned, or the call has stopped waiting for it.
        var isOver = false
    }

    private let call: Call
    private let next: CallNext
    private let progress: CallProgress
    /// The lock on the state, used by the middleware's tasks, and by the call that waits for it.
    private let state = Mutex(State())

    init(_ call: Call, _ next: CallNext, _ progress: CallProgress) {
        (self.call, self.next, self.progress) = (call, next, progress)
    }

    var request: UserCode.RequestState { state.withLock { $0.request } }

    /// Releases the previous response, and sends a request.
    func send(_ request: HTTPCall.Request) async throws -> HTTPCall.Response {
        if let rejection = request.headers.rejection {
            throw call.error(
                .invalidHeader, .preparing, rejection, wasSent: progress.sentCount > 0,
                attempts: max(1, progress.sentCount))
        }
        let former = try state.withLock { state throws -> OpenMiddlewareResponse? in
            if state.isOver { throw CancellationError() }
            guard !state.request.isRunning else {
                throw call.error(
                    .invalidRequest, .preparing, "a middleware called next while another call of next was running")
            }
            state.request = .running
            return state.answer.take()
        }
        do {
            let response = try await send(request, after: former)
            state.withLock { $0.request = .idle }
            return response
        } catch {
            let failedAtTimeout = call.totalDeadline <= .now() && !(error is CancellationError)
            state.withLock { $0.request = failedAtTimeout ? .failed(error) : .idle }
            throw error
        }
    }

    private func send(_ request: HTTPCall.Request, after former: OpenMiddlewareResponse?) async throws
        -> HTTPCall.Response
    {
        if let former {
            former.exemption?.end()
            await progress.give(up: former.answer, reason: .middleware)
        }
        if progress.control.isCancelled { throw CancellationError() }
        if request.body.replay == .once, !request.body.rewind() {
            throw call.error(
                .bodyNotReplayable, .preparing, "a middleware tried to send a body again that can be read only once",
                wasSent: progress.sentCount > 0, attempts: max(1, progress.sentCount))
        }
        let answer = try await next(try call.adapted(request.head).with(request.body))
        await progress.readAhead(answer)
        let open = OpenMiddlewareResponse(answer, progress.control)
        let isWanted = state.withLock { state in
            if !state.isOver { state.answer = open }
            return !state.isOver
        }
        guard isWanted else {
            open.exemption?.end()
            answer.finish()
            throw CancellationError()
        }
        return HTTPCall.Response(open)
    }

    /// Ends the run without a response.
    func end() { close()?.answer.finish() }

    /// Ends the run.
    /// - Returns: The open response.
    private func close() -> OpenMiddlewareResponse? {
        let open = state.withLock { state in
            state.isOver = true
            return state.answer.take()
        }
        open?.exemption?.end()
        return open
    }

    /// Ends the run with the response that the middleware returned.
    func end(with response: HTTPCall.Response) throws -> StreamedResponse {
        let open = close()
        guard response.answer === open || response.replacement != nil else {
            open?.answer.finish()
            throw call.error(
                .invalidRequest, .processingResponse,
                "a middleware returned a response that it had released by calling next again", wasSent: true,
                attempts: progress.sentCount)
        }
        return answer(for: response, over: open)
    }

    /// Returns the response of the stage.
    /// - Parameter open: The last response from the network, whose body the new body may wrap.
    private func answer(for response: HTTPCall.Response, over open: OpenMiddlewareResponse?) -> StreamedResponse {
        let base = open?.answer
        let isHeadKept = base.map { HeadConversion.response($0.head) == response.head } ?? false
        let head = isHeadKept ? nil : ResponseHead(response.head)
        let (source, length): ((any RequestBodySource)?, UInt64?) =
            switch response.replacement {
            case .bytes(let bytes): (BytesSource(bytes, trailers: response.madeTrailers), UInt64(bytes.count))
            case .source(let made, let known): (made, known)
            case nil: (open?.rest, nil)
            }
        if let base, source == nil { return base.passed(to: base.call, head: head) }
        return StreamedResponse(
            call: base?.call ?? progress.continued(call),
            channel: .made(MiddlewareBody(source ?? BytesSource([]), base: base, progress.userCode)),
            head: head ?? base?.head ?? ResponseHead(response.head), codings: [], expectedContentLength: length,
            hasTrailers: true, interim: base?.interim ?? [], attempts: base?.attempts ?? 0, waited: call.start,
            provenance: base?.provenance)
    }
}

/// A response that a middleware may read.
final class OpenMiddlewareResponse: Sendable {
    let answer: StreamedResponse
    /// The exemption of the connection from the pool's limits while the middleware runs.
    let exemption: Exemption?
    private let control: TransferControl
    /// The lock on the reader, which is created when the body is accessed.
    private let reader = Mutex<BodyReader?>(nil)

    init(_ answer: StreamedResponse, _ control: TransferControl) {
        (self.answer, self.control) = (answer, control)
        exemption = answer.channel.heldExchange?.exemption()
    }

    /// The body. The caller receives the part that the middleware has not read.
    var body: ResponseBody {
        let reader = reader.withLock { reader in
            // Only the caller's reader reports to the observer.
            let made = reader ?? BodyReader(answer.passed(to: answer.call.unobserved), control: control, byteLimit: nil)
            reader = made
            return made
        }
        return ResponseBody(reader: reader)
    }

    /// The rest of the body, if the middleware has started to read it.
    var rest: (any RequestBodySource)? { reader.withLock { $0 } }
}

extension BodyReader: RequestBodySource {}

/// The body of a response that a middleware has created or changed.
package final class MiddlewareBody: Sendable {
    private let source: any RequestBodySource
    private let userCode: UserCode
    /// The network's response that the body wraps; `nil` if it wraps no response.
    let base: StreamedResponse?
    /// Whether the control of the call that reads the body has counted the bytes from the network.
    let isCounted: Bool

    init(_ source: any RequestBodySource, base: StreamedResponse?, _ userCode: UserCode, isAdopted: Bool = false) {
        (self.source, self.base, self.userCode) = (source, base, userCode)
        isCounted = base != nil && !isAdopted
    }

    func adopted(by userCode: UserCode) -> MiddlewareBody {
        MiddlewareBody(source, base: base, userCode, isAdopted: true)
    }

    var trailers: FieldBlock? {
        base?.trailers ?? (source as? BytesSource)?.trailers.map { FieldBlock($0) }
    }

    /// Returns the next piece; throws an error if there is none at the deadline.
    func next(until deadline: MonotonicTime?) async throws -> [UInt8]? {
        let (source, name) = (source, "the body of a middleware's response")
        let reader = source as? BodyReader
        if let deadline { reader?.end(by: deadline) }
        while true {
            let isOwn = reader != nil || source is BytesSource
            let piece =
                isOwn
                ? try await source.next()
                : try await userCode.run(
                    name, .receivingBody, holding: base?.channel.heldExchange, until: deadline, sentCount: 1
                ) { try await source.next() }
            if piece?.isEmpty != true { return piece }
        }
    }
}

extension ResponseHead {
    /// Creates the head of a response of the public API.
    fileprivate init(_ response: HTTPResponse) {
        self.init(
            status: response.status.code, reason: response.status.reasonPhrase,
            fields: FieldBlock(response.headerFields))
    }
}
