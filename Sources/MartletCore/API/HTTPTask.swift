/// A running call with its progress, which can be paused, resumed and cancelled.
///
/// The call starts when this object is made. Releasing the object does not stop the call; ``cancel()`` does. If a Swift
/// task that awaits ``value`` is cancelled, only that wait ends, with `CancellationError`: others may wait as well.
public actor HTTPTask {
    /// The kind of transfer.
    public enum Kind: String, Hashable, Sendable {
        /// A request and a response, both in memory.
        case data
        /// An upload: the request has a body.
        case upload
        /// A download: the body of the response is written to a file.
        case download
        /// A response whose body is read as it arrives, such as an event stream. An ``HTTPTask`` never has this kind.
        case stream
    }

    /// The state of a task.
    public enum State: Hashable, Sendable {
        /// The task waits for a connection, for the next attempt, or for a transfer that it shares with another call.
        case waiting
        /// The task has a connection: the request is being sent, or the response is awaited.
        case sending
        /// The task has received the head of a response and receives the body.
        case receiving
        /// The task is paused: nothing is read or written, and the idle timeout is suspended.
        case paused
        /// The task has ended. No other state follows.
        case finished(Outcome)

        /// The way a task ended.
        public enum Outcome: String, Hashable, Sendable {
            /// The task received a response.
            case completed
            /// The task failed with an error.
            case failed
            /// The task was cancelled.
            case cancelled
        }

        /// Whether this state is the last one.
        public var isFinished: Bool { if case .finished = self { true } else { false } }
    }

    /// The number of the call, as in ``HTTPExchange/callNumber``.
    public nonisolated let id: UInt64
    /// The kind of transfer. A task that became a download has the kind `.download`.
    public nonisolated var kind: Kind { control.destination == nil ? givenKind : .download }
    private nonisolated let givenKind: Kind
    /// The request, before redirects. If its URL cannot be parsed, it has no scheme, authority and path.
    public nonisolated let request: HTTPRequest
    nonisolated let start = MonotonicTime.now()
    private nonisolated let events: EventBroadcaster<SessionEvent>
    nonisolated let control: TransferControl
    private nonisolated let outcome = Promise<HTTPExchange>()
    private nonisolated let head = Promise<HTTPResponse>()

    /// Creates the task of a call and starts it.
    /// - Parameter callNumber: The number of the call; `nil` if the call could not be made.
    package init(
        kind: Kind, request: HTTPRequest, callNumber: UInt64?, core: SessionCore,
        run: @escaping @Sendable (TransferControl, Promise<HTTPResponse>) async throws -> HTTPExchange
    ) {
        givenKind = kind
        self.request = request
        id = callNumber ?? CallNumber.next()
        events = core.events
        control = TransferControl()
        let (id, calls, control, outcome, head) = (id, core.calls, control, outcome, head)
        calls.add(self)
        // Unstructured, because the call outlives the scope that starts it. ``cancel()`` ends it.
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

    /// The exchange; waits until it is complete.
    /// - Throws: An ``HTTPError``; `CancellationError` if the call, or the task that awaits it, was cancelled.
    public var value: HTTPExchange { get async throws { try await outcome.value } }
    /// The head of the response, as soon as it is received; after a retry, the head of the latest response.
    /// - Throws: The same errors as ``value``.
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

    /// The states of the task: the current one immediately, then each new one.
    ///
    /// Only the latest state is delivered: a slow consumer misses intermediate states. ``State/finished(_:)`` is always
    /// delivered, also to consumers that start after the end; then the sequence ends. Any number of tasks may iterate.
    /// Cancelling one of them ends only its iteration.
    public nonisolated var states: LatestValues<State> {
        LatestValues(control.states ?? CurrentValue(control.presentState)) { $0 }
    }

    /// Stops reading and writing; the TCP window then stops the peer. All timeouts except the total one are suspended.
    ///
    /// A task that waits for a connection leaves the queue, so that a paused task does not keep a connection from other
    /// calls. When it resumes, it returns to its old position by age.
    public func pause() { if control.pause() { emit(.suspended) } }

    /// Continues after a pause.
    public func resume() { if control.resume() { emit(.resumed) } }

    /// Changes the priority of the call. In the queue for a connection, it moves to the position that it would have had
    /// with that priority from the start. A request that has its connection is not affected; later requests of the
    /// call, as after a redirect, have the new priority.
    public func setPriority(_ priority: RequestPriority) { control.setPriority(priority) }

    private func emit(_ kind: SessionEvent.Kind) {
        guard outcome.settled == nil else { return }
        events.emit(SessionEvent(kind, call: id, elapsed: MonotonicTime.now().since(start)))
    }

    /// Turns the task into a download, before its response arrives or during its body. The collected part of the body,
    /// and all that follows, is written to a file, which is renamed to its final name when it is complete. No byte is
    /// lost or duplicated, and the limit of bodies in memory does not apply. ``value`` then has an empty body.
    ///
    /// The body is written for any status that the call's validator accepts; check ``response`` before. If the response
    /// was already complete, its body is written, and ``value`` keeps it.
    ///
    /// Returns when the file is complete. Cancelling the Swift task that awaits this does not cancel the call. If the
    /// file cannot be created, the body is collected in memory as before, and another file may be tried.
    /// - Parameters:
    ///   - path: The file's name, a `String` or a `FilePath`; its directory must exist.
    ///   - overwrites: Whether an existing file may be replaced; `false` by default.
    /// - Throws: The same errors as ``value``; ``HTTPError/Code/fileFailed``; `.invalidRequest` if the task, or the
    ///   session's delegate, has already made it a download.
    public func becomeDownload(to path: some FilePathConvertible, overwrites: Bool = false) async throws {
        let path = path.filePath
        let destination = DownloadDestination(path: path, overwrites: overwrites)
        guard givenKind != .download, control.setDestination(destination) else {
            throw HTTPError(.invalidRequest, phase: .receivingBody, message: "the task is already a download")
        }
        let exchange = try await outcome.value
        if let failure = control.takeFailure(of: destination) { throw failure }
        // If the call collected its last piece before the destination was set, the body is written here.
        guard control.claimDestination() else { return }
        let download = FileDownload(path: path, overwrites: overwrites, call: nil)
        do { try await download.write(exchange.body) } catch let error as HTTPError {
            control.rejectDestination(error.about(exchange.request.method, exchange.url))
            throw control.takeFailure(of: destination) ?? error
        }
    }

    /// Cancels the call: ``value`` throws `CancellationError`, and the connection is closed. No effect after its end.
    public func cancel() { control.cancel() }
}

extension HTTPSession {
    /// Starts a call and returns its task.
    ///
    /// A request with a body is an upload, otherwise a data task. If it is invalid, ``HTTPTask/value`` throws. The
    /// parameters are those of ``stream(_:method:query:body:headers:timeout:options:validate:_:)``.
    public func task(
        for target: some HTTPTarget, method: HTTPRequest.Method? = nil, query: ParameterValue = .null,
        body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) -> HTTPTask {
        let call = Result { try self.call(method, target, query, headers, body, timeout, options, validate) }
        return task(body.isPresent ? .upload : .data, call, target) { try await self.collect($0, $1, head: $2) }
    }

    /// Starts a download to a file and returns its task; otherwise like
    /// ``save(_:to:overwrites:query:body:headers:timeout:options:validate:progress:)``.
    public func downloadTask(
        for target: some HTTPTarget, to path: some FilePathConvertible, overwrites: Bool = false,
        query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) -> HTTPTask {
        let path = path.filePath
        let call = Result { try self.call(nil, target, query, headers, .none, timeout, options, validate) }
        return task(.download, call, target) {
            try await self.save($0, to: path, overwrites: overwrites, control: $1, head: $2)
        }
    }

    private func task(
        _ kind: HTTPTask.Kind, _ call: Result<Call, any Error>, _ target: some HTTPTarget,
        _ run: @escaping @Sendable (Call, TransferControl, Promise<HTTPResponse>) async throws -> HTTPExchange
    ) -> HTTPTask {
        let made = try? call.get()
        // Without a valid URL, the request has none.
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
