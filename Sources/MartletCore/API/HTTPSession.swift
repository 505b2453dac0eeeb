import MartletCredentials
import MartletURL
import Logging
import MartletConnections
import MartletTransport
import MartletWire
public import SystemPackage

/// Where calls are made: a pool of connections, and the settings calls start from.
///
/// A session needs no shutdown. When the last reference to it goes, its connections close; calls that run keep what they
/// need until they end. Views made by ``with(_:)`` share its connections.
///
/// Cancelling the task that awaits a call cancels the call: it throws `CancellationError` without waiting for the peer,
/// and its connection closes.
public actor HTTPSession {
    /// The settings. A view with others is made by ``with(_:)``.
    public nonisolated var configuration: SessionConfiguration { settings.configuration }

    package nonisolated let settings: SessionSettings
    package nonisolated let core: SessionCore
    nonisolated let dialer: Dialer

    /// A session with settings of its own.
    public init(configuration: SessionConfiguration = .default) {
        self.init(configuration: configuration, loop: EventLoop.sharedOrStalled)
    }

    init(configuration: SessionConfiguration, loop: EventLoop) {
        settings = SessionSettings(configuration)
        core = SessionCore(configuration: configuration, loop: loop)
        dialer = Dialer(settings: configuration.dialSettings, loop: loop)
    }

    private init(settings: SessionSettings, core: SessionCore, dialer: Dialer) {
        self.settings = settings
        self.core = core
        self.dialer = dialer
    }

    /// The executor that runs tasks on the event loop's own thread.
    ///
    /// Tasks that prefer it (`Task(executorPreference:)`) are resumed without a change of threads, which carries about a
    /// quarter more small requests where hundreds of connections are busy, and fewer where one is. Such tasks must not
    /// block: the loop serves all sessions.
    public static var loopExecutor: any TaskExecutor { EventLoop.sharedOrStalled }

    /// A view of this session with other settings.
    ///
    /// It shares the connections, and their limits. Where the change touches how connections are opened (TLS, resolver,
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

    /// Sends a request and collects its answer. A status of 400 or more is an answer, not an error.
    ///
    /// - Throws: An ``HTTPError``; `CancellationError`.
    public nonisolated func send(
        _ request: HTTPRequest, body: HTTPBody = .none, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        let call = try Call(
            request: request, url: try HTTPSession.url(of: request), body: body, options: options,
            settings: settings)
        return try await collect(call, TransferControl(tellsProgress: false))
    }

    /// Sends a request by method and URL; else as ``send(_:body:options:)``.
    public nonisolated func send(
        _ method: HTTPRequest.Method, _ url: HTTPURL, headers: HTTPFields = HTTPFields(),
        body: HTTPBody = .none, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        let call = try Call(method, headers, url: url, body: body, options: options, settings: settings)
        return try await collect(call, TransferControl(tellsProgress: false))
    }

    /// Runs a call and collects its answer.
    package nonisolated func collect(
        _ call: Call, _ control: TransferControl, head: Outcome<HTTPResponse>? = nil
    ) async throws -> HTTPExchange {
        try await run(call, control, isRestartable: true) { answer in
            let exchange = try await HTTPSession.collected(answer, call, control, head: head)
            guard let validator = call.validator else { return exchange }
            return try await HTTPSession.validated(exchange, validator, call, control, core)
        }
    }

    /// Collects an answer. It stands by itself, so that calls which wait for their answers hold nothing of it.
    @inline(never)
    private static func collected(
        _ answer: Answer, _ call: Call, _ control: TransferControl, head: Outcome<HTTPResponse>?
    ) async throws -> HTTPExchange {
        head?.replace(with: HeadConversion.response(answer.head))
        let limit = (call.options.bodyLimit ?? call.settings.configuration.bufferedBodyLimit).bytes
        var body: [UInt8] = []
        do {
            let smallest = UInt64(min(limit, HTTPSession.smallBodyByteCount))
            if !control.isExposed, let received = try answer.receivedBody(upTo: smallest) {
                body = received.bytes
                if !body.isEmpty, let observer = answer.call.observer {
                    try await observer.bodyReceived(body.count, from: answer.channel)
                }
                if received.isWhole { return answer.exchange(with: body, isCollected: true) }
            }
            let reader = BodyReader(answer, control: control, byteLimit: limit, received: body.count)
            if answer.codings.isEmpty, let length = answer.announcedByteCount, length > UInt64(limit),
                control.destination == nil
            {
                throw reader.tooLarge(limit)
            }
            reader.expectWhole()
            while true {
                // Asked before each piece: what was taken and what follows are parted here, and nowhere else.
                if control.isExposed, let destination = control.pendingDestination {
                    _ = control.claimDestination()
                    do {
                        try await answer.write(reader, after: body, to: destination)
                        return answer.exchange(with: [])
                    } catch let error as HTTPError where error.code == .fileFailed && !reader.hasLostBytes {
                        // The file could not be created: the body goes on in memory, and another file may be tried.
                        control.refuseDestination(error)
                        continue
                    }
                }
                guard let piece = try await reader.next() else { break }
                reader.gather(piece, behind: &body)
            }
        } catch var error as HTTPError {
            // What came of a body that was cut stays available (RFC 9112 §8).
            if body.isEmpty, case .stored(let stored) = answer.channel { body = stored.collected }
            error.exchange = answer.exchange(with: body)
            throw error
        }
        return answer.exchange(with: body, isCollected: true)
    }

    /// Asks a validator about an answer that is whole.
    /// - Throws: An ``AnswerRefusal``, which ``run(_:_:isRestartable:isDownload:_:)`` takes off again.
    @inline(never)
    private static func validated(
        _ exchange: HTTPExchange, _ validator: ResponseValidator, _ call: Call, _ control: TransferControl,
        _ core: SessionCore
    ) async throws -> HTTPExchange {
        do {
            try await validator.check(
                ValidationSubject(exchange), by: UserCode(call, control: control, loop: core.loop))
        } catch {
            throw AnswerRefusal(reason: error)
        }
        return exchange
    }

    /// Up to which length a body is expected to come with its head, and read without being waited for, in bytes.
    private static let smallBodyByteCount = 64 * 1024

    // MARK: Streamed

    /// Sends a request and hands its answer to a closure as it arrives.
    ///
    /// When the closure returns, what is left of the body is taken up if it is small, by a task that nobody waits for;
    /// else the connection is closed. Bodies have no limit here, unless `options` sets one.
    ///
    /// The closure may make calls on this session. They never wait for the connection that its own call holds: such calls
    /// are served before others, and one at a time may have a connection above the limits of ``PoolLimits``. This holds
    /// for the closure's task, its child tasks and tasks made by `Task`, not for detached tasks.
    ///
    /// - Parameter validate: What the head must be for the closure to be called; `nil` for what `options` or the session
    ///   say. A refusal carries up to 64 KiB of the body, see ``ResponseValidator``.
    /// - Throws: An ``HTTPError``; `CancellationError`; what the closure throws, as it is.
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
                    ResponseBody(reader: reader, announcedByteCount: answer.announcedByteCount))
            }
        }
    }

    // MARK: Files

    /// Sends a body and tells how far it has come.
    /// - Parameter progress: Called with the newest state, not with every one; the last state always comes.
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

    /// Sends a request and writes the body of its answer to a file, which appears under its name when it is complete.
    ///
    /// Until then, and whatever fails, a file of that name is what it was. The status must be 2xx; what is refused for
    /// another is told with up to 64 KiB of its body, see ``ResponseValidator``. The bytes are synced before the file is
    /// renamed.
    ///
    /// - Parameters:
    ///   - path: The file's name; its folder must exist.
    ///   - overwrites: Whether a file that has the name may be replaced; `false` by default.
    ///   - progress: Called with the newest state, not with every one; the last state always comes.
    /// - Returns: The exchange, with an empty body.
    /// - Throws: An ``HTTPError``: `.fileExists` before the request is made, `.unacceptableStatus` with the response,
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
                request, from: url, to: path, overwrites: overwrites, body: body, options: options,
                control: control)
        }
    }

    package nonisolated func download(
        _ request: HTTPRequest, from url: HTTPURL, to path: FilePath, overwrites: Bool, body: HTTPBody,
        options: RequestOptions, control: TransferControl, head: Outcome<HTTPResponse>? = nil
    ) async throws -> HTTPExchange {
        let call = try Call(request: request, url: url, body: body, options: options, settings: settings)
        return try await download(call, to: path, overwrites: overwrites, control: control, head: head)
    }

    /// Runs a call and writes its answer to a file.
    package nonisolated func download(
        _ call: Call, to path: FilePath, overwrites: Bool, control: TransferControl,
        head: Outcome<HTTPResponse>? = nil
    ) async throws -> HTTPExchange {
        // A delegate may choose another name when the response comes.
        let isNameFinal = settings.configuration.delegate == nil
        func prepare() async throws {
            guard !overwrites, isNameFinal else { return }
            let origin = call.url.origin.description
            let download = FileDownload(path: path, overwrites: overwrites, origin: origin)
            let isTaken = await download.isNameTaken
            if control.isCancelled { throw CancellationError() }
            if isTaken { throw download.fileExists }
        }
        return try await run(call, control, isRestartable: true, isDownload: true, before: prepare) {
            answer in
            head?.replace(with: HeadConversion.response(answer.head))
            let reader = BodyReader(answer, control: control, byteLimit: call.options.bodyLimit?.bytes)
            // The status is what the caller has to know, whatever becomes of a body that is no file's.
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

    /// Runs a call while a closure is told of its progress.
    package static func reporting(
        _ state: ProgressState?, to progress: (@Sendable (TransferProgress) -> Void)?,
        _ body: @escaping @Sendable () async throws -> HTTPExchange
    ) async throws -> HTTPExchange {
        guard let progress, let state else { return try await body() }
        async let exchange = {
            // Also where the call failed before it began: the last state always comes.
            defer { state.update { $0.isFinished = true } }
            return try await body()
        }()
        var isComplete = false
        for await value in ProgressSequence(state: state) {
            progress(value)
            isComplete = value.isFinished
        }
        // A cancelled task leaves the sequence before its end; the state is the last one when the call has ended.
        let result: Result<HTTPExchange, any Error>
        do { result = .success(try await exchange) } catch { result = .failure(error) }
        if !isComplete { progress(state.value) }
        return try result.get()
    }

    // MARK: Where a request goes

    /// The URL that a request is for.
    package static func url(of request: HTTPRequest) throws(HTTPError) -> HTTPURL {
        guard let scheme = request.scheme, let authority = request.authority else {
            throw HTTPError(
                .invalidURL, phase: .preparing,
                message: "the request has no scheme or no authority, and so no place to go")
        }
        let path = Call.isForServer(request) ? "/" : request.path ?? "/"
        // Joined to a URL, a part must not reach into the next one: what they say is where the request goes.
        guard !authority.utf8.contains(where: { "/?#@".utf8.contains($0) }) else {
            throw HTTPError(
                .invalidURL, phase: .preparing,
                message: "the request's authority is more than a host and a port")
        }
        guard path.isEmpty || path.utf8.first == UInt8(ascii: "/") || path.utf8.first == UInt8(ascii: "?")
        else {
            throw HTTPError(
                .invalidURL, phase: .preparing, message: "the request's path does not begin with a slash")
        }
        do throws(HTTPURL.ParseError) {
            // A path that was parsed has no dot segments, unless they were meant to stay.
            return try HTTPURL("\(scheme)://\(authority)\(path)", pathAsIs: true)
        } catch {
            throw HTTPError(.invalidURL, phase: .preparing, message: error.description, underlying: error)
        }
    }

    package static func url(_ string: String) throws(HTTPError) -> HTTPURL {
        do throws(HTTPURL.ParseError) {
            return try HTTPURL(string)
        } catch {
            throw HTTPError(.invalidURL, phase: .preparing, message: error.description, underlying: error)
        }
    }
}
