/// An object that sends requests: a pool of connections, and the default settings of its calls.
///
/// A session needs no shutdown. When the last reference to it is released, its connections are closed; running calls
/// keep the resources that they need until they end. Views made by ``with(_:)`` share its connections.
///
/// Cancelling the task that awaits a call cancels it: it throws `CancellationError`, and its connection is closed.
public actor HTTPSession {
    /// The settings of the session. ``with(_:)`` makes a view with other settings.
    public nonisolated var configuration: SessionConfiguration { settings.configuration }

    package nonisolated let settings: SessionSettings
    /// The actor that owns the state of this session and its views.
    package nonisolated let core: SessionCore
    nonisolated let dialer: Dialer

    /// The executor that the session and its views share, so that they are isolated like one actor.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe core.unownedExecutor }

    /// A session with the default settings, for scripts and for code that needs no settings of its own.
    ///
    /// The session lives as long as the process. As on `URLSession.shared`, ``finishAndInvalidate()`` and
    /// ``invalidateAndCancel()`` have no effect on it and its views, because other code may use it.
    public static let shared = HTTPSession(configuration: .default, loop: EventLoop.sharedOrStalled, isPermanent: true)

    /// Creates a session with its own connections.
    public init(configuration: SessionConfiguration = .default) {
        self.init(configuration: configuration, loop: EventLoop.sharedOrStalled)
    }

    init(configuration: SessionConfiguration, loop: EventLoop, isPermanent: Bool = false) {
        self.init(
            settings: SessionSettings(configuration),
            core: SessionCore(configuration: configuration, loop: loop, isPermanent: isPermanent),
            dialer: Dialer(settings: configuration.dialSettings, loop: loop))
    }

    private init(settings: SessionSettings, core: SessionCore, dialer: Dialer) {
        (self.settings, self.core, self.dialer) = (settings, core, dialer)
    }

    /// The executor that runs tasks on the event loop's own thread.
    ///
    /// Tasks that prefer this executor (`Task(executorPreference:)`) are resumed without a change of threads. They send
    /// about a quarter more small requests per second over hundreds of busy connections, but fewer over a single one.
    /// Such tasks must not block, because the loop serves all sessions.
    public static var loopExecutor: any TaskExecutor { EventLoop.sharedOrStalled }

    /// Returns a view of this session with other settings.
    ///
    /// The view shares the session's connections and their limits. If the change affects how connections are opened
    /// (TLS, resolver, addresses, sockets), the view and the session do not use each other's connections.
    public nonisolated func with(_ change: (inout SessionConfiguration) -> Void) -> HTTPSession {
        var changed = configuration
        change(&changed)
        let keepsDialer = changed.dialSettings.isEqual(to: configuration.dialSettings)
        return HTTPSession(
            settings: SessionSettings(changed, environment: settings.environment), core: core,
            dialer: keepsDialer ? dialer : Dialer(settings: changed.dialSettings, loop: core.loop))
    }

    // MARK: Buffered

    /// Runs a call and collects its response.
    package nonisolated func collect(
        _ call: Call, _ control: TransferControl = TransferControl(reportsProgress: false),
        head: Promise<HTTPResponse>? = nil
    ) async throws -> HTTPExchange {
        try await run(call, control, isRestartable: true) { try await collect($0, call, control, head: head) }
    }

    /// Collects the response of a running call, and validates it.
    package nonisolated func collect(
        _ answer: StreamedResponse, _ call: Call, _ control: TransferControl, head: Promise<HTTPResponse>? = nil
    ) async throws -> HTTPExchange {
        var exchange = try await answer.collected(control, head: head)
        for validator in call.validators {
            exchange = try await validator.checked(exchange, by: UserCode(call, control: control, loop: core.loop))
        }
        return exchange
    }

    // MARK: Streamed

    /// Sends a request and passes the response and its body to a closure as they arrive.
    ///
    /// When the closure returns, a background task reads a small rest of the body; a larger rest closes the connection.
    /// Bodies have no limit here, unless `options` sets one.
    ///
    /// The closure may make calls on this session. They never wait for the connection that the closure's own call
    /// holds: they go first, and one at a time may use a connection above the limits of ``PoolLimits``. This applies to
    /// the closure's task, its child tasks and tasks made by `Task`, not to detached tasks.
    ///
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields.
    ///   - method: `nil` (the default) for the method of the request; for a URL, GET without a body and POST with one.
    ///   - validate: The conditions for the head under which the closure is called; `nil` to use those of `options` or
    ///     the session. A rejection carries up to 64 KiB of the body, see ``ResponseValidator``.
    /// - Throws: An ``HTTPError``; `CancellationError`; any error of the closure, unchanged.
    public nonisolated func stream<Result>(
        _ target: some HTTPTarget, method: HTTPRequest.Method? = nil, query: ParameterValue = .null,
        body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil,
        _ handle: (OpenResponse, ResponseBody) async throws -> Result
    ) async throws -> Result {
        try await stream(call(method, target, query, headers, body, timeout, options, validate), nil, handle)
    }

    /// Passes the response of a call to a closure as it arrives.
    /// - Parameter validators: The conditions for the head; `nil` to use those of the call.
    package nonisolated func stream<Result>(
        _ call: Call, _ validators: [ResponseValidator]?, _ handle: (OpenResponse, ResponseBody) async throws -> Result
    ) async throws -> Result {
        let control = TransferControl(reportsProgress: false)
        return try await run(call, control, kind: .stream) { answer in
            let reader = BodyReader(answer, control: control, byteLimit: call.options.bodyLimit?.bytes)
            for validator in validators ?? call.validators { try await validator.admit(answer, control, reader) }
            let response = OpenResponse(answer, reader)
            return try await UserCode.handle(control, core) { try await handle(response, response.body) }
        }
    }

    // MARK: Files

    /// Sends a body and reports its progress.
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields.
    ///   - method: `nil` (the default) for the method of the request; POST for a URL.
    ///   - progress: A closure that is called on the caller's actor with the latest state (``TransferProgress``).
    ///     Intermediate states may be skipped; the last one never is. The transfer does not wait for the closure.
    @discardableResult public nonisolated func upload(
        _ body: HTTPBody, to target: some HTTPTarget, method: HTTPRequest.Method? = nil, query: ParameterValue = .null,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil, progress: ((TransferProgress) -> Void)? = nil
    ) async throws -> HTTPExchange {
        let method = method ?? target.httpTarget.method ?? .post
        let call = try call(method, target, query, headers, body, timeout, options, validate)
        let control = TransferControl()
        return try await HTTPSession.reporting(control.upload, to: progress) { try await self.collect(call, control) }
    }

    /// Sends a request of any method once and writes the body of the response to a file, which is renamed to its final
    /// name when it is complete. With `import Martlet`, `download` resumes and may use several connections instead.
    ///
    /// Until then, and if any step fails, an existing file of that name is unchanged. The file is synced before it is
    /// renamed. The status must be 2xx; the error for another status carries up to 64 KiB of the body.
    ///
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. For a URL: GET, or POST with a body.
    ///   - path: The file's name, a `String` or a `FilePath`; its directory must exist.
    ///   - overwrites: Whether an existing file may be replaced; `false` by default.
    ///   - validate: Conditions for the head, in addition to a status of 2xx.
    ///   - progress: A closure like that of ``upload(_:to:method:query:headers:timeout:options:validate:progress:)``.
    /// - Returns: The exchange, with an empty body.
    /// - Throws: An ``HTTPError``, such as `.fileExists` before the request is sent, `.unacceptableStatus` with the
    ///   response, `.fileFailed` and `.diskFull`; `CancellationError`.
    @discardableResult public nonisolated func save(
        _ target: some HTTPTarget, to path: some FilePathConvertible, overwrites: Bool = false,
        query: ParameterValue = .null, body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil,
        progress: ((TransferProgress) -> Void)? = nil
    ) async throws -> HTTPExchange {
        let call = try call(nil, target, query, headers, body, timeout, options, validate)
        let (path, control) = (path.filePath, TransferControl())
        return try await HTTPSession.reporting(control.download, to: progress) {
            try await self.save(call, to: path, overwrites: overwrites, control: control)
        }
    }

    /// Saves the response to one GET request, like
    /// ``save(_:to:overwrites:query:body:headers:timeout:options:validate:progress:)``. With `import Martlet`, the
    /// `download` that resumes is used instead; it has these parameters too.
    @discardableResult @_disfavoredOverload
    public nonisolated func download(
        _ target: some HTTPTarget, to path: some FilePathConvertible, overwrites: Bool = false,
        query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil
    ) async throws -> HTTPExchange {
        try await save(target, to: path, overwrites: overwrites, query: query, headers: headers, timeout: timeout)
    }

    /// Runs a call and writes its response to a file.
    package nonisolated func save(
        _ call: Call, to path: FilePath, overwrites: Bool, control: TransferControl, head: Promise<HTTPResponse>? = nil
    ) async throws -> HTTPExchange {
        // A delegate may choose another name when the response arrives.
        let isNameFinal = settings.configuration.delegate == nil
        func prepare() async throws {
            guard !overwrites, isNameFinal else { return }
            let isTaken = await FileDownload.isTaken(path)
            if control.isCancelled { throw CancellationError() }
            if isTaken { throw call.error(.fileExists, .preparing, FileDownload.existing(path)) }
        }
        return try await run(call, control, kind: .download, isRestartable: true, before: prepare) { answer in
            control.enter(.receiving)
            head?.replace(with: HeadConversion.response(answer.head))
            let reader = BodyReader(answer, control: control, byteLimit: call.options.bodyLimit?.bytes)
            // A wrong status is reported even if the call's own validator would reject the body.
            try await ResponseValidator.success.admit(answer, control, reader)
            for validator in call.validators { try await validator.admit(answer, control, reader) }
            let observer = answer.call.observer
            let place = try await observer?.destination(of: answer, proposed: path) ?? path
            let download = FileDownload(path: place, overwrites: overwrites, call: answer.call)
            try await download.write(reader)
            await observer?.downloadFinished(at: place)
            return answer.exchange(with: [])
        }
    }

    // MARK: The session as a whole

    /// The number of connections in each state, and of requests that wait for a connection.
    public nonisolated var poolStatus: PoolStatus { core.pool.snapshot }
    /// The number of running calls.
    public nonisolated var runningCallCount: Int { core.runningCount }

    /// The current connections and calls of the session, by host, and the resources of all sessions of the process.
    /// The cost grows with the number of hosts and open descriptors: do not read it for each request.
    public nonisolated var diagnostics: SessionDiagnostics { SessionDiagnostics(core) }

    /// The connection limits in force: those of ``SessionConfiguration/pool`` or of the last ``setPoolLimits(_:)``,
    /// unless a feature such as the `concurrency` of `Martlet` has changed them.
    public nonisolated var poolLimits: PoolLimits { core.poolLimits }

    /// Changes the connection limits while calls run. Views share the change.
    ///
    /// Connections in use are never closed: lower limits take effect as they become free. A feature's limits take
    /// precedence.
    public nonisolated func setPoolLimits(_ limits: PoolLimits) { core.setPoolLimits(limits) }

    /// Changes the bandwidth limits of bodies, in bytes per second, also for running calls; `.none` removes them. Views
    /// share the change. The initial limits are ``SessionConfiguration/bandwidth``, none by default.
    ///
    /// ```swift
    /// let total = BandwidthLimit(download: .bytesPerSecond(2_000_000))
    /// session.setBandwidthLimits(BandwidthLimits(total: total))
    /// ```
    public nonisolated func setBandwidthLimits(_ limits: BandwidthLimits) { core.bandwidth.setLimits(limits) }

    /// Changes the minimum time between two requests to the origin of a URL, such as the `Crawl-delay` of a
    /// `robots.txt`; `nil` for ``SessionConfiguration/requestInterval``. Views share the change. It applies after the
    /// next request; if no origin has an interval any more, immediately.
    public nonisolated func setRequestInterval(_ interval: Duration?, for url: HTTPURL) {
        core.pacer.setInterval(interval?.bounded, for: url.origin)
    }

    /// The running calls of this session and its views, in the order they were made, including those of ``HTTPTask``s.
    public var tasks: [RunningCall] { core.calls.all }

    /// Returns the running calls of a kind, in the order they were made.
    public func tasks(of kind: HTTPTask.Kind) -> [RunningCall] { tasks.filter { $0.kind == kind } }

    /// Waits until the running calls have ended, with their redirects and retries, then closes all connections. New
    /// calls throw immediately, also those of views.
    ///
    /// If code of a running call awaits this function, such as the closure of a stream, it waits only for the other
    /// calls; the connections are closed when that call has ended. Opened responses (``OpenResponse``) are running
    /// calls until their body ends. Has no effect on ``shared``.
    ///
    /// The wait has no limit: with a call that never ends, such as an event stream, use
    /// ``finishAndInvalidate(within:)``.
    public func finishAndInvalidate() async { await core.end(cancelling: false, notifying: configuration.delegate) }

    /// Waits for the running calls for a limited time, then cancels the remaining ones, such as event streams, long
    /// polls, and calls that wait for a retry. Otherwise like ``finishAndInvalidate()``. Cancelled calls throw
    /// `CancellationError`, also if their own code awaits this.
    ///
    /// It is meant for a server that receives a signal to stop. The limit must be shorter than that of the environment:
    /// Kubernetes kills a process 30 s after SIGTERM, systemd after 90 s.
    ///
    /// ```swift
    /// // On SIGTERM, with swift-service-lifecycle or a DispatchSource:
    /// await session.finishAndInvalidate(within: .seconds(20))
    /// ```
    ///
    /// After the limit it waits like ``invalidateAndCancel()``, at most until the closures of streams have returned.
    /// Cancelling the task that awaits it has no effect.
    /// - Parameter limit: The maximum wait for the running calls; zero or less cancels them immediately.
    public func finishAndInvalidate(within limit: Duration) async {
        await core.end(cancelling: false, after: limit, notifying: configuration.delegate)
    }

    /// Cancels the running calls, waits for their end and closes all connections. New calls, also of views, throw.
    ///
    /// If code of a running call awaits this function, such as the closure of a stream, it does not wait for that call.
    /// That call ends with `CancellationError` like the others. Has no effect on ``shared``.
    public func invalidateAndCancel() async { await core.end(cancelling: true, notifying: configuration.delegate) }

    /// Returns the object that works for this session, such as an offline queue; `nil` without one.
    package nonisolated func companion<Object: AnyObject & Sendable>(as type: Object.Type) -> Object? {
        core.companion as? Object
    }

    /// Sets the object that works for this session and its views. They hold only a weak reference to it.
    package nonisolated func setCompanion(_ object: any AnyObject & Sendable) { core.companion = object }
}
