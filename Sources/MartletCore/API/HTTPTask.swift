/// A running call with its progress, pause and end.
///
/// It runs from the moment it is made. Releasing it does not stop it; ``cancel()`` does. Awaiting ``value`` in a task
/// that is cancelled throws `CancellationError` there, and does not cancel the call, for which others may be waiting.
public actor HTTPTask {
    /// The kind of transfer.
    public enum Kind: String, Hashable, Sendable {
        /// A request and a response in memory.
        case data
        /// A body that is sent.
        case upload
        /// A body that is written to a file.
        case download
        /// A body that is read as it arrives: ``HTTPSession/stream(_:method:query:headers:body:timeout:options:validate:_:)``,
        /// ``HTTPSession/open(_:method:query:headers:body:timeout:options:validate:)``, event streams. Tasks are never of this kind.
        case stream
    }

    /// The state of a task.
    public enum State: Hashable, Sendable {
        /// It waits: for a connection, between two attempts, or for the transfer of another call that it shares.
        case waiting
        /// It has a connection: the request is sent, and its response awaited.
        case sending
        /// It has the head of a response, and receives the body.
        case receiving
        /// It is paused: nothing is read or written, and the idle timeout is suspended.
        case paused
        /// It has ended. No other state follows.
        case finished(Outcome)

        /// How a task ended.
        public enum Outcome: String, Hashable, Sendable {
            /// With a response.
            case completed
            /// With an error.
            case failed
            /// By a cancellation.
            case cancelled
        }

        /// Whether it is the last state.
        public var isFinished: Bool { if case .finished = self { true } else { false } }
    }

    /// The number of its call, as in ``HTTPExchange/callNumber``.
    public nonisolated let id: UInt64
    /// The kind of transfer. A task that became a download is one.
    public nonisolated var kind: Kind { control.destination == nil ? givenKind : .download }
    private nonisolated let givenKind: Kind
    /// The request as it was made; without a scheme, an authority and a path if its URL cannot be parsed.
    public nonisolated let request: HTTPRequest
    nonisolated let start = MonotonicTime.now()
    private nonisolated let events: EventBroadcaster<SessionEvent>
    nonisolated let control: TransferControl
    private nonisolated let outcome = Outcome<HTTPExchange>()
    private nonisolated let head = Outcome<HTTPResponse>()

    /// - Parameter callNumber: That of the call; `nil` if none could be made.
    package init(
        kind: Kind, request: HTTPRequest, callNumber: UInt64?, core: SessionCore,
        run: @escaping @Sendable (TransferControl, Outcome<HTTPResponse>) async throws -> HTTPExchange
    ) {
        givenKind = kind
        self.request = request
        id = callNumber ?? CallNumber.next()
        events = core.events
        control = TransferControl()
        let (id, calls, control, outcome, head) = (id, core.calls, control, outcome, head)
        calls.add(self)
        // Unstructured, since the call is this object's and not its maker's: it outlives the scope that began it.
        Task {
            do {
                let exchange = try await run(control, head)
                calls.remove(task: id)
                control.enter(.finished(.completed))
                head.replace(with: exchange.response)
                outcome.settle(.success(exchange))
            } catch {
                calls.remove(task: id)
                control.enter(.finished(error is CancellationError ? .cancelled : .failed))
                head.settle(.failure(error))
                outcome.settle(.failure(error))
            }
            control.upload?.update { $0.isFinished = true }
            control.download?.update { $0.isFinished = true }
        }
    }

    /// The exchange, once it is complete.
    /// - Throws: An ``HTTPError``; `CancellationError` if the call, or the task that awaits it, was cancelled.
    public var value: HTTPExchange { get async throws { try await outcome.value } }
    /// The head of the response, as soon as it has come; after a retry, that of the latest response.
    /// - Throws: As ``value``.
    public var response: HTTPResponse { get async throws { try await head.value } }

    /// The progress of the request's body.
    public nonisolated var uploadProgress: ProgressSequence {
        ProgressSequence(state: control.upload ?? ProgressState(), task: self)
    }

    /// The progress of the response's body.
    public nonisolated var downloadProgress: ProgressSequence {
        ProgressSequence(state: control.download ?? ProgressState(), task: self)
    }

    /// The state of the task.
    public var state: State { control.presentState }

    /// The states of the task: the current one immediately, then each that follows.
    ///
    /// Only the latest state is delivered: a slow consumer skips those that it missed. ``State/finished(_:)`` is always delivered,
    /// also to consumers that come after the end; then the sequence ends. Any number of tasks may iterate. Cancelling one of them
    /// ends its iteration only.
    public nonisolated var states: LatestValues<State> {
        LatestValues(control.states ?? CurrentValue(control.presentState)) { $0 }
    }

    /// Stops reading and writing. The peer is slowed down by the TCP window. The timeouts of the head and of idleness are
    /// suspended; the total timeout is not.
    ///
    /// A task that waits for a connection leaves the queue, so that a paused task keeps no connection from other calls. When
    /// it resumes, it has its old place by age; the timeout ``Timeouts/poolWait`` is suspended meanwhile.
    public func pause() { if control.pause() { tell(.suspended) } }

    /// Continues after a pause.
    public func resume() { if control.resume() { tell(.resumed) } }

    /// Changes the priority of the call. In the queue for a connection it moves to the place that it would have had with that
    /// priority from the start. A request that has its connection is not affected; those that may follow it, as
    /// after a redirect, have the new priority.
    public func setPriority(_ priority: RequestPriority) { control.setPriority(priority) }

    private func tell(_ kind: SessionEvent.Kind) {
        guard outcome.settled == nil else { return }
        events.tell(SessionEvent(kind, call: id, elapsed: MonotonicTime.now().since(start)))
    }

    /// Turns the task into a download, before its response has come or during its body: the part of the body that was collected,
    /// and all that follows, is written to a file, which gets its name when it is complete. No byte is lost or duplicated, and
    /// the limit of bodies in memory does not apply. ``value`` has an empty body then.
    ///
    /// The body is written whatever the status is; check ``response`` before. If the response was complete already, its
    /// body, which ``value`` keeps, is written.
    ///
    /// Returns when the file is there. Cancelling the task that awaits this does not cancel the call. A file that cannot be
    /// created leaves the task as it was: its body is collected, and another file may be tried.
    /// - Parameters:
    ///   - path: The file's name, a `String` or a `FilePath`; its directory must exist.
    ///   - overwrites: Whether an existing file may be replaced; `false` by default.
    /// - Throws: As ``value``; ``HTTPError/Code/fileFailed``; `.invalidRequest` if the task, or the session's
    ///   delegate, has made it a download already.
    public func becomeDownload(to path: some FilePathConvertible, overwrites: Bool = false) async throws {
        let path = path.filePath
        let destination = DownloadDestination(path: path, overwrites: overwrites)
        guard givenKind != .download, control.setDestination(destination) else {
            throw HTTPError(.invalidRequest, phase: .receivingBody, message: "the task is a download already")
        }
        let exchange = try await outcome.value
        if let failure = control.takeFailure(of: destination) { throw failure }
        // The last piece was taken before the destination was set, and nothing checks for one after it.
        guard control.claimDestination() else { return }
        let download = FileDownload(path: path, overwrites: overwrites, call: nil)
        do { try await download.write(exchange.body) } catch let error as HTTPError {
            control.refuseDestination(error.about(exchange.request.method, exchange.url))
            throw control.takeFailure(of: destination) ?? error
        }
    }

    /// Ends the call: ``value`` throws `CancellationError`, and the connection is closed. Does nothing if it has ended.
    public func cancel() { control.cancel() }
}

extension HTTPSession {
    /// Starts a call and returns it.
    ///
    /// It is an upload if it has a body, otherwise a data task. The parameters are those of ``stream(_:method:query:headers:body:timeout:options:validate:_:)``. If
    /// no request can be made of them, ``HTTPTask/value`` throws the error.
    public func task(
        for target: some HTTPTarget, method: HTTPRequest.Method? = nil, query: ParameterValue = .null,
        headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none, timeout: Duration? = nil,
        options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) -> HTTPTask {
        let call = Result { try self.call(method, target, query, headers, body, timeout, options, validate) }
        return task(body.isPresent ? .upload : .data, call, target) { try await self.collect($0, $1, head: $2) }
    }

    /// Starts a download to a file and returns it; otherwise like
    /// ``download(_:to:overwrites:query:headers:body:timeout:options:validate:progress:)``.
    public func downloadTask(
        for target: some HTTPTarget, to path: some FilePathConvertible, overwrites: Bool = false,
        query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) -> HTTPTask {
        let path = path.filePath
        let call = Result { try self.call(nil, target, query, headers, .none, timeout, options, validate) }
        return task(.download, call, target) {
            try await self.download($0, to: path, overwrites: overwrites, control: $1, head: $2)
        }
    }

    private func task(
        _ kind: HTTPTask.Kind, _ call: Result<Call, any Error>, _ target: some HTTPTarget,
        _ run: @escaping @Sendable (Call, TransferControl, Outcome<HTTPResponse>) async throws -> HTTPExchange
    ) -> HTTPTask {
        let made = try? call.get()
        // Without a URL, if that could not be parsed.
        var request = HTTPRequest(method: .get, scheme: nil, authority: nil, path: nil)
        if let made {
            request = made.publicRequest
        } else if case .request(let given) = target.httpTarget {
            request = given
        }
        return HTTPTask(kind: kind, request: request, callNumber: made?.number, core: core) { control, head in
            try await run(try call.get(), control, head)
        }
    }
}
