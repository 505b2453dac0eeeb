import MartletConnections
import MartletTransport
public import SystemPackage

/// A call one can hold: its progress, its pause, its end.
///
/// It runs from the moment it is made. Dropping it does not stop it; ``cancel()`` does. Awaiting ``value`` from a task
/// that is cancelled throws `CancellationError` there, and does not cancel the call, which others may be waiting for.
public actor HTTPTask {
    /// What a task moves.
    public enum Kind: String, Hashable, Sendable {
        /// A request and an answer in memory.
        case data
        /// A body that is sent.
        case upload
        /// A body that is written to a file.
        case download
    }

    /// What a task is doing.
    public enum State: String, Hashable, Sendable {
        /// It runs.
        case running
        /// It is paused: nothing is read or written, and the idle clock stands.
        case paused
        /// It ended with an answer.
        case completed
        /// It ended with an error.
        case failed
        /// It was cancelled.
        case cancelled
    }

    /// The number of its call, as in ``SessionEvent/call`` and ``CallContext/number``: it differs from that of every other
    /// call of the process.
    public nonisolated let id: UInt64
    /// What it moves; a task that became a download is one.
    public nonisolated var kind: Kind { control.destination == nil ? givenKind : .download }
    private nonisolated let givenKind: Kind
    /// What was asked for.
    public nonisolated let request: HTTPRequest
    private nonisolated let start = MonotonicTime.now()
    private nonisolated let events: EventHub<SessionEvent>
    private nonisolated let control: TransferControl
    private nonisolated let outcome: Outcome<HTTPExchange>
    private nonisolated let head: Outcome<HTTPResponse>

    package init(
        kind: Kind, request: HTTPRequest, core: SessionCore,
        run: @escaping @Sendable (TransferControl, Outcome<HTTPResponse>) async throws -> HTTPExchange
    ) {
        givenKind = kind
        self.request = request
        let id = CallNumber.next()
        self.id = id
        events = core.events
        let tasks = core.tasks
        let control = TransferControl(tellsProgress: true, callNumber: id)
        let outcome = Outcome<HTTPExchange>()
        let head = Outcome<HTTPResponse>()
        self.control = control
        self.outcome = outcome
        self.head = head
        tasks.add(self)
        // Unstructured, since the call is this object's and not its maker's: it outlives the scope that began it.
        Task {
            do {
                let exchange = try await run(control, head)
                tasks.remove(id)
                head.replace(with: exchange.response)
                outcome.settle(.success(exchange))
            } catch {
                tasks.remove(id)
                head.settle(.failure(error))
                outcome.settle(.failure(error))
            }
            control.upload?.update { $0.isFinished = true }
            control.download?.update { $0.isFinished = true }
        }
    }

    /// The answer, once it is complete.
    /// - Throws: An ``HTTPError``; `CancellationError` when the call, or the task that awaits it, was cancelled.
    public var value: HTTPExchange { get async throws { try await outcome.value } }

    /// The head of the answer, as soon as it has come; after a repetition, that of the latest answer.
    /// - Throws: As ``value``.
    public var response: HTTPResponse { get async throws { try await head.value } }

    /// How far the request's body has gone.
    public nonisolated var uploadProgress: ProgressSequence {
        ProgressSequence(state: control.upload ?? ProgressState(), task: self)
    }

    /// How far the answer's body has come.
    public nonisolated var downloadProgress: ProgressSequence {
        ProgressSequence(state: control.download ?? ProgressState(), task: self)
    }

    /// What it is doing.
    public var state: State {
        switch outcome.settled {
        case .success: .completed
        case .failure(let error): error is CancellationError ? .cancelled : .failed
        case nil: control.isPaused ? .paused : .running
        }
    }

    /// Stops reading and writing. The peer is held by the TCP window, and the clocks of the head and of idleness stand still;
    /// the total clock goes on.
    ///
    /// A task that waits for a connection leaves the line, so that a paused task keeps no connection from other calls. When
    /// it goes on, it has its old place by age; the clock ``Timeouts/poolWait`` stands still meanwhile.
    public func pause() { if control.pause() { tell(.suspended) } }

    /// Goes on after a pause.
    public func resume() { if control.resume() { tell(.resumed) } }

    /// Changes how urgent the call is, also while it waits for a connection: it stands in the line at once where it would
    /// had it come with that priority. A request that has its connection is not disturbed; those that may follow it, as
    /// after a redirect, have the new priority.
    public func setPriority(_ priority: RequestPriority) { control.setPriority(priority) }

    private func tell(_ kind: SessionEvent.Kind) {
        guard outcome.settled == nil else { return }
        events.tell(SessionEvent(kind, call: id, elapsed: MonotonicTime.now().since(start)))
    }

    /// Turns the task into a download, before its answer has come or amid its body: what was collected of the body, and all
    /// that follows, goes to a file, which appears under its name when it is complete. No byte is lost or doubled, and the
    /// limit of bodies in memory holds no longer. ``value`` has an empty body then.
    ///
    /// The body is written whatever the status is: ``response`` tells it before. Where the answer was complete already, its
    /// body, which ``value`` keeps, is written.
    ///
    /// Returns when the file is there. Cancelling the task that awaits this does not cancel the call.
    /// - Parameters:
    ///   - path: The file's name; its folder must exist.
    ///   - overwrites: Whether a file that has the name may be replaced; `false` by default.
    /// A file that cannot be created leaves the task as it was: its body is collected, and another file may be tried.
    /// - Throws: What ``value`` throws; ``HTTPError/Code/fileFailed``; `.invalidRequest` where the task, or the session's
    ///   delegate, has made it a download already.
    public func becomeDownload(to path: FilePath, overwrites: Bool = false) async throws {
        let destination = DownloadDestination(path: path, overwrites: overwrites)
        guard givenKind != .download, control.setDestination(destination) else {
            throw HTTPError(.invalidRequest, phase: .receivingBody, message: "the task is a download already")
        }
        let exchange = try await outcome.value
        if let failure = control.takeFailure(of: destination) { throw failure }
        // The last piece had been taken when the destination was set: nobody looked for one behind it.
        guard control.claimDestination() else { return }
        let download = FileDownload(
            path: path, overwrites: overwrites, origin: exchange.url.origin.description)
        do {
            try await download.write(exchange.body)
        } catch let error as HTTPError {
            control.refuseDestination(error)
            throw control.takeFailure(of: destination) ?? error
        }
    }

    /// Ends the call: ``value`` throws `CancellationError`, and the connection closes. Nothing where it has ended.
    public func cancel() { control.cancel() }
}

extension HTTPSession {
    /// Begins a call and returns it.
    ///
    /// It is an upload if it has a body, else a data task.
    public func task(
        for request: HTTPRequest, body: HTTPBody = .none, options: RequestOptions = RequestOptions()
    ) -> HTTPTask {
        HTTPTask(kind: body.isPresent ? .upload : .data, request: request, core: core) { control, head in
            let call = try Call(
                request: request, url: try HTTPSession.url(of: request), body: body, options: options,
                settings: self.settings)
            return try await self.collect(call, control, head: head)
        }
    }

    /// Begins a download to a file and returns it; else as ``download(_:to:overwrites:body:options:progress:)``.
    public func downloadTask(
        for request: HTTPRequest, to path: FilePath, overwrites: Bool = false,
        options: RequestOptions = RequestOptions()
    ) -> HTTPTask {
        HTTPTask(kind: .download, request: request, core: core) { control, head in
            try await self.download(
                request, from: try HTTPSession.url(of: request), to: path, overwrites: overwrites,
                body: .none, options: options, control: control, head: head)
        }
    }
}
