/// Sends requests: a pool of connections, and the settings that calls start from.
///
/// A session needs no shutdown. When the last reference to it is released, its connections are closed; calls that run keep what
/// they need until they end. Views made by ``with(_:)`` share its connections.
///
/// Cancelling the task that awaits a call cancels the call: it throws `CancellationError` without waiting for the peer,
/// and its connection is closed.
public actor HTTPSession {
    /// The settings. ``with(_:)`` makes a view that has others.
    public nonisolated var configuration: SessionConfiguration { settings.configuration }

    package nonisolated let settings: SessionSettings
    /// The actor that owns the state of this session and its views.
    package nonisolated let core: SessionCore
    nonisolated let dialer: Dialer

    /// The executor of the session and its views: that of the state they share, so that all of them are one actor.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe core.unownedExecutor }

    /// Creates a session with its own connections.
    public init(configuration: SessionConfiguration = .default) {
        self.init(configuration: configuration, loop: EventLoop.sharedOrStalled)
    }

    init(configuration: SessionConfiguration, loop: EventLoop) {
        self.init(
            settings: SessionSettings(configuration),
            core: SessionCore(configuration: configuration, loop: loop),
            dialer: Dialer(settings: configuration.dialSettings, loop: loop))
    }

    private init(settings: SessionSettings, core: SessionCore, dialer: Dialer) {
        self.settings = settings
        self.core = core
        self.dialer = dialer
    }

    /// The executor that runs tasks on the event loop's own thread.
    ///
    /// Tasks that prefer it (`Task(executorPreference:)`) are resumed without a change of threads. Where hundreds of connections
    /// are busy this carries about a quarter more small requests, and fewer where only one is busy. Such tasks must not block:
    /// the loop serves all sessions.
    public static var loopExecutor: any TaskExecutor { EventLoop.sharedOrStalled }

    /// A view of this session with other settings.
    ///
    /// It shares the connections and their limits. Where the change affects how connections are opened (TLS, resolver,
    /// addresses, sockets), connections of the view and of the session are never exchanged.
    public nonisolated func with(_ change: (inout SessionConfiguration) -> Void) -> HTTPSession {
        var changed = configuration
        change(&changed)
        let keepsDialer = changed.dialSettings.isEqual(to: configuration.dialSettings)
        return HTTPSession(
            settings: SessionSettings(changed, environment: settings.environment), core: core,
            dialer: keepsDialer ? dialer : Dialer(settings: changed.dialSettings, loop: core.loop))
    }

    // MARK: Buffered

    /// Sends a request and collects the response. A status of 400 or more is a response, not an error.
    ///
    /// - Throws: An ``HTTPError``; `CancellationError`.
    public nonisolated func send(
        _ request: HTTPRequest, body: HTTPBody = .none, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        let url = try HTTPSession.url(of: request)
        let call = try Call(request: request, url: url, body: body, options: options, settings: settings)
        return try await collect(call, TransferControl(tellsProgress: false))
    }

    /// Sends a request by method and URL; otherwise like ``send(_:body:options:)``.
    public nonisolated func send(
        _ method: HTTPRequest.Method, _ url: HTTPURL, headers: HTTPFields = HTTPFields(),
        body: HTTPBody = .none, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        let call = try Call(method, headers, url: url, body: body, options: options, settings: settings)
        return try await collect(call, TransferControl(tellsProgress: false))
    }

    /// Runs a call and collects its response.
    package nonisolated func collect(
        _ call: Call, _ control: TransferControl, head: Outcome<HTTPResponse>? = nil
    ) async throws -> HTTPExchange {
        try await run(call, control, isRestartable: true) { answer in
            let exchange = try await answer.collected(control, head: head)
            guard let validator = call.validator else { return exchange }
            return try await validator.checked(
                exchange, by: UserCode(call, control: control, loop: core.loop))
        }
    }

    /// Fetches a URL and collects the response. Append `.decode()` to decode JSON, or `.validated()` to require 2xx.
    /// - Throws: An ``HTTPError``, with the code `.invalidURL` if the string is not a URL; `CancellationError`.
    public nonisolated func get(
        _ url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.get, try HTTPSession.url(url), headers: headers, options: options)
    }

    /// Requests only the head (RFC 9110 §9.3.2).
    public nonisolated func head(
        _ url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.head, try HTTPSession.url(url), headers: headers, options: options)
    }

    /// Posts a body to a URL and collects the response.
    public nonisolated func post(
        _ url: String, body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.post, try HTTPSession.url(url), headers: headers, body: body, options: options)
    }

    /// Puts a body at a URL and collects the response.
    public nonisolated func put(
        _ url: String, body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.put, try HTTPSession.url(url), headers: headers, body: body, options: options)
    }

    /// Patches the resource at a URL and collects the response.
    public nonisolated func patch(
        _ url: String, body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.patch, try HTTPSession.url(url), headers: headers, body: body, options: options)
    }

    /// Deletes the resource at a URL and collects the response.
    public nonisolated func delete(
        _ url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.delete, try HTTPSession.url(url), headers: headers, options: options)
    }

    // MARK: Streamed

    /// Sends a request and passes the response to a closure as it arrives.
    ///
    /// When the closure returns, a small rest of the body is read by a task that nothing waits for; a larger one closes the
    /// connection. Bodies have no limit here, unless `options` sets one.
    ///
    /// The closure may make calls on this session. They never wait for the connection that its own call holds: such calls
    /// go first, and one at a time may have a connection above the limits of ``PoolLimits``. This holds for the closure's
    /// task, its child tasks and tasks made by `Task`, not for detached tasks.
    ///
    /// - Parameter validate: The conditions for the head under which the closure is called; `nil` for those of `options` or the
    ///   session. A rejection carries up to 64 KiB of the body, see ``ResponseValidator``.
    /// - Throws: An ``HTTPError``; `CancellationError`; any error of the closure, as it is.
    public nonisolated func stream<Result>(
        _ request: HTTPRequest, body: HTTPBody = .none, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil, _ handle: (HTTPResponse, ResponseBody) async throws -> Result
    ) async throws -> Result {
        let url = try HTTPSession.url(of: request)
        let control = TransferControl(tellsProgress: false)
        let call = try Call(request: request, url: url, body: body, options: options, settings: settings)
        return try await run(call, control) { answer in
            let reader = BodyReader(answer, control: control, byteLimit: options.bodyLimit?.bytes)
            if let validator = validate ?? call.validator { try await validator.admit(answer, reader) }
            return try await UserCode.handle(control, core) {
                try await handle(
                    HeadConversion.response(answer.head),
                    ResponseBody(reader: reader, expectedContentLength: answer.expectedContentLength))
            }
        }
    }

    // MARK: Files

    /// Sends a body and reports its progress.
    /// - Parameter progress: Called with the latest state, not with every one. The last state is always reported.
    @discardableResult
    public nonisolated func upload(
        _ body: HTTPBody, to request: HTTPRequest, options: RequestOptions = RequestOptions(),
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> HTTPExchange {
        let url = try HTTPSession.url(of: request)
        let control = TransferControl()
        return try await HTTPSession.reporting(control.upload, to: progress) {
            try await self.collect(
                try Call(request: request, url: url, body: body, options: options, settings: self.settings),
                control)
        }
    }

    /// Sends a request and writes the body of the response to a file, which gets its name when it is complete.
    ///
    /// Until then, and whatever fails, an existing file of that name is unchanged. The status must be 2xx; the error for any
    /// other carries up to 64 KiB of the body, see ``ResponseValidator``. The bytes are synced before the file is renamed.
    ///
    /// - Parameters:
    ///   - path: The file's name; its directory must exist.
    ///   - overwrites: Whether an existing file may be replaced; `false` by default.
    ///   - progress: Called with the latest state, not with every one. The last state is always reported.
    /// - Returns: The exchange, with an empty body.
    /// - Throws: An ``HTTPError``: `.fileExists` before the request is sent, `.unacceptableStatus` with the response,
    ///   `.fileFailed`; `CancellationError`.
    @discardableResult
    public nonisolated func download(
        _ request: HTTPRequest, to path: FilePath, overwrites: Bool = false, body: HTTPBody = .none,
        options: RequestOptions = RequestOptions(), progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> HTTPExchange {
        let url = try HTTPSession.url(of: request)
        let control = TransferControl()
        return try await HTTPSession.reporting(control.download, to: progress) {
            try await self.download(
                try Call(request: request, url: url, body: body, options: options, settings: self.settings),
                to: path, overwrites: overwrites, control: control)
        }
    }

    /// Runs a call and writes its response to a file.
    package nonisolated func download(
        _ call: Call, to path: FilePath, overwrites: Bool, control: TransferControl,
        head: Outcome<HTTPResponse>? = nil
    ) async throws -> HTTPExchange {
        // A delegate may choose another name when the response comes.
        let isNameFinal = settings.configuration.delegate == nil
        func prepare() async throws {
            guard !overwrites, isNameFinal else { return }
            let isTaken = await FileDownload.isTaken(path)
            if control.isCancelled { throw CancellationError() }
            if isTaken { throw call.error(.fileExists, .preparing, "\(path): there is a file of that name") }
        }
        return try await run(call, control, isRestartable: true, isDownload: true, before: prepare) {
            answer in
            head?.replace(with: HeadConversion.response(answer.head))
            let reader = BodyReader(answer, control: control, byteLimit: call.options.bodyLimit?.bytes)
            // A wrong status is reported even if the call's own validator would reject the body.
            try await ResponseValidator.success.admit(answer, reader)
            if let validator = call.validator { try await validator.admit(answer, reader) }
            let observer = answer.call.observer
            let place = try await observer?.destination(of: answer, proposed: path) ?? path
            let download = FileDownload(
                path: place, overwrites: overwrites, origin: answer.call.url.origin.description)
            try await download.write(reader)
            await observer?.downloadFinished(at: place)
            return answer.exchange(with: [])
        }
    }

    // MARK: The session as a whole

    /// Counts of connections by what they do, and of requests that wait for one.
    public nonisolated var poolStatus: PoolStatus { core.pool.snapshot }
    /// The number of running calls.
    public nonisolated var runningCallCount: Int { core.runningCount }

    /// The connections and calls that the session holds now, by host, and the resources that all sessions of the process hold.
    ///
    /// Takes time in proportion to the number of hosts and of open descriptors: it is meant for occasional use, not for each
    /// request.
    public nonisolated var diagnostics: SessionDiagnostics { SessionDiagnostics(core) }

    /// The limits of connections in force: those of ``SessionConfiguration/pool`` or of the last ``setPoolLimits(_:)``, as
    /// changed by features such as the `concurrency` of `Martlet`.
    public nonisolated var poolLimits: PoolLimits { core.poolLimits }

    /// Changes the limits of connections while calls run. Views share the change.
    ///
    /// Connections in use are never closed: lower limits apply as these become free. Limits that a feature sets replace these.
    public nonisolated func setPoolLimits(_ limits: PoolLimits) { core.setPoolLimits(limits) }

    /// Changes the bandwidth limits of bodies, also for running calls. Views share the change.
    public nonisolated func setBandwidthLimits(_ limits: BandwidthLimits) { core.bandwidth.setLimits(limits) }

    /// The tasks of this session and its views that have not ended, in the order they were made.
    ///
    /// Calls that are awaited, such as ``send(_:body:options:)``, are not tasks; ``runningCallCount`` counts both.
    public var tasks: [HTTPTask] { core.calls.tasks }

    /// The tasks of a kind that have not ended, in the order they were made.
    public func tasks(of kind: HTTPTask.Kind) -> [HTTPTask] { tasks.filter { $0.kind == kind } }

    /// Lets the running calls end, then closes all connections. New calls throw immediately; views share the end.
    ///
    /// Awaited by code of a running call, such as the closure of a stream, it waits only for the other calls; the
    /// session is closed when that call has ended.
    public func finishAndInvalidate() async {
        await core.end(cancelling: false, notifying: configuration.delegate)
    }

    /// Cancels the running calls and closes all connections; returns when they have ended. New calls throw immediately;
    /// views share the end.
    ///
    /// Awaited by code of a running call, such as a handler or the closure of a stream, it does not wait for that call,
    /// which ends with `CancellationError` like the others.
    public func invalidateAndCancel() async {
        await core.end(cancelling: true, notifying: configuration.delegate)
    }

    /// The object that works on behalf of this session and its views; `nil` if none was set, or nothing keeps it.
    package nonisolated func companion<Object: AnyObject & Sendable>(as type: Object.Type) -> Object? {
        core.companion as? Object
    }

    /// Sets the object that works on behalf of this session and its views. They do not keep it.
    package nonisolated func setCompanion(_ object: any AnyObject & Sendable) { core.companion = object }
}

// The URL of a request.
extension HTTPSession {
    /// The URL that a request is for.
    package static func url(of request: HTTPRequest) throws(HTTPError) -> HTTPURL {
        guard let scheme = request.scheme, let authority = request.authority else {
            throw invalidURL("the request has no scheme or no authority, and so no place to go")
        }
        let path = Call.isAsteriskForm(request) ? "/" : request.path ?? "/"
        // Joined to a URL, a part must not reach into the next one: the parts decide where the request goes.
        guard !authority.utf8.contains(where: { "/?#@".utf8.contains($0) }) else {
            throw invalidURL("the request's authority is more than a host and a port")
        }
        guard path.isEmpty || path.utf8.first == UInt8(ascii: "/") || path.utf8.first == UInt8(ascii: "?")
        else { throw invalidURL("the request's path does not begin with a slash") }
        // A path that was parsed has no dot segments, unless they were meant to stay.
        return try url("\(scheme)://\(authority)\(path)", pathAsIs: true)
    }

    package static func url(_ string: String, pathAsIs: Bool = false) throws(HTTPError) -> HTTPURL {
        do throws(HTTPURL.ParseError) {
            return try HTTPURL(string, pathAsIs: pathAsIs)
        } catch {
            throw invalidURL(error.description, underlying: error)
        }
    }

    private static func invalidURL(_ message: String, underlying: HTTPURL.ParseError? = nil) -> HTTPError {
        HTTPError(.invalidURL, phase: .preparing, message: message, underlying: underlying)
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
