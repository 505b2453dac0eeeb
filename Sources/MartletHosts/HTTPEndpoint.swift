public import MartletCore
public import HTTPTypes
public import SystemPackage

/// One thing that a service can be asked, with the type of its answer.
///
/// ```swift
/// struct UserByName: HTTPEndpoint {
///     typealias Response = User
///     var name: String
///     var path: String { "users/\(name)" }
/// }
///
/// let user = try await api.call(UserByName(name: "anna"))
/// ```
///
/// Everything but the path and the answer has a default: GET, without parameters, body and fields, a status of 2xx
/// demanded, JSON decoded. An answer of the type `HTTPExchange` is the exchange itself, and one of `Void` is thrown away.
public protocol HTTPEndpoint<Response> {
    /// What comes back.
    associatedtype Response
    /// What goes along.
    associatedtype Parameters: Encodable = ParameterValue

    /// How; GET by default.
    var method: HTTPRequest.Method { get }
    /// Where, below the host's base; see ``HTTPHost/url(for:)``.
    var path: String { get }
    /// What goes along; nothing by default.
    var parameters: Parameters { get }
    /// A body as it is; `nil`, the default, for what the parameters make.
    var body: HTTPBody? { get }
    /// Fields, which take the place of the host's; none by default.
    var headers: HTTPFields { get }
    /// How parameters are written; `nil`, the default, for the host's way.
    var encoding: ParameterEncoding? { get }
    /// What the call does otherwise; `nil`, the default, for the host's options.
    var options: RequestOptions? { get }
    /// Whether a status that is not 2xx is an error, before ``response(from:)`` is asked; `true` by default.
    var validatesStatus: Bool { get }

    /// Makes the answer of the exchange. What it throws is what the call throws.
    func response(from exchange: HTTPExchange) throws -> Response
}

extension HTTPEndpoint {
    /// GET.
    public var method: HTTPRequest.Method { .get }
    /// None.
    public var body: HTTPBody? { nil }
    /// None.
    public var headers: HTTPFields { HTTPFields() }
    /// The host's.
    public var encoding: ParameterEncoding? { nil }
    /// The host's.
    public var options: RequestOptions? { nil }
    /// Yes.
    public var validatesStatus: Bool { true }
}

extension HTTPEndpoint where Parameters == ParameterValue {
    /// None.
    public var parameters: ParameterValue { .null }
}

extension HTTPEndpoint where Response: Decodable {
    /// The body, decoded as JSON.
    public func response(from exchange: HTTPExchange) throws -> Response { try exchange.decode() }
}

extension HTTPEndpoint where Response == HTTPExchange {
    /// The exchange.
    public func response(from exchange: HTTPExchange) -> HTTPExchange { exchange }
}

extension HTTPEndpoint where Response == Void {
    /// Nothing.
    public func response(from exchange: HTTPExchange) {}
}

extension HTTPHost {
    /// Asks a service one of the things it can be asked.
    ///
    /// - Throws: An ``HTTPError``, or what ``errorMapper`` makes of it, `.unacceptableStatus` among them whatever
    ///   ``validatesStatus`` says; what the endpoint's own `response(from:)` throws, as it is unless it is an ``HTTPError``;
    ///   `CancellationError`.
    public func call<Endpoint: HTTPEndpoint>(_ endpoint: Endpoint) async throws -> Endpoint.Response {
        var host = self
        // What the endpoint says is all there is to say about the status.
        host.validatesStatus = endpoint.validatesStatus
        if let encoding = endpoint.encoding { host.encoding = encoding }
        let prepared = try await mapped {
            try host.preparing(
                endpoint.method, endpoint.path, endpoint.parameters, endpoint.body, endpoint.headers,
                endpoint.options)
        }
        let exchange = try await host.send(prepared)
        return try await mapped { try endpoint.response(from: exchange) }
    }
}

extension HTTPHost {
    /// Sends a request by any method and collects its answer.
    ///
    /// - Parameters:
    ///   - method: How.
    ///   - path: Below the base, or a whole URL; see ``url(for:)``.
    ///   - parameters: Written as ``encoding`` says: into the URL for GET, HEAD and DELETE and where there is a body, else as
    ///     the body.
    ///   - body: Sent as it is; `nil` for what the parameters make.
    ///   - headers: Fields of this request; they take the place of the host's.
    ///   - options: `nil` for the host's.
    /// - Throws: An ``HTTPError``, or what ``errorMapper`` makes of it; `CancellationError`.
    public func request(
        method: HTTPRequest.Method, _ path: String = "", parameters: some Encodable, body: HTTPBody? = nil,
        headers: HTTPFields = HTTPFields(), options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await send(try await mapped { try preparing(method, path, parameters, body, headers, options) })
    }

    /// Sends a request by any method, with parameters written as literals; else as the other function of this name.
    public func request(
        method: HTTPRequest.Method, _ path: String = "", parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPFields = HTTPFields(), options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await send(try await mapped { try preparing(method, path, parameters, body, headers, options) })
    }

    /// Sends a request and hands its answer to a closure as it arrives; else as
    /// ``HTTPSession/stream(_:body:options:_:)``.
    ///
    /// Where ``validatesStatus`` is on, an answer that is not 2xx is thrown with up to 64 KiB of its body, and the closure not
    /// called; so is what the validator of the call or the session refuses, see ``ResponseValidator``.
    public func stream<Result>(
        _ path: String = "", method: HTTPRequest.Method = .get, parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPFields = HTTPFields(), options: RequestOptions? = nil,
        _ handle: (HTTPResponse, ResponseBody) async throws -> Result
    ) async throws -> Result {
        let call = try await mapped {
            try makeCall(preparing(method, path, parameters, body, headers, options))
        }
        let control = TransferControl(tellsProgress: false)
        let validates = validatesStatus
        return try await session.run(call, control) { answer in
            let reader = BodyReader(answer, control: control, byteLimit: call.options.bodyLimit?.bytes)
            if validates { try await ResponseValidator.success.admit(answer, reader) }
            if let validator = call.validator { try await validator.admit(answer, reader) }
            return try await UserCode.handle(control, session.core) {
                try await handle(
                    HeadConversion.response(answer.head),
                    ResponseBody(reader: reader, announcedByteCount: answer.announcedByteCount))
            }
        }
    }

    /// Sends a body, by POST unless another method is named, and tells how far it has come; parameters go into the URL.
    /// - Parameter progress: Called with the newest state, not with every one; the last state always comes.
    @discardableResult
    public func upload(
        _ body: HTTPBody, to path: String = "", method: HTTPRequest.Method = .post,
        parameters: ParameterValue = .null, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil, progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> HTTPExchange {
        let call = try await mapped {
            try makeCall(preparing(method, path, parameters, body, headers, options))
        }
        let control = TransferControl()
        let session = session
        return try await validated(
            try await HTTPSession.reporting(control.upload, to: progress) {
                try await session.collect(call, control)
            })
    }

    /// Fetches a path into a file; else as ``HTTPSession/download(_:to:overwrites:body:options:progress:)``.
    @discardableResult
    public func download(
        _ path: String, to file: FilePath, overwrites: Bool = false, parameters: ParameterValue = .null,
        headers: HTTPFields = HTTPFields(), options: RequestOptions? = nil,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> HTTPExchange {
        let call = try await mapped { try makeCall(preparing(.get, path, parameters, nil, headers, options)) }
        let control = TransferControl()
        let session = session
        return try await HTTPSession.reporting(control.download, to: progress) {
            try await session.download(call, to: file, overwrites: overwrites, control: control)
        }
    }

    /// Begins a call and returns it: an upload if it has a body, else a data task.
    /// - Throws: Where the request cannot be made. What befalls the call is thrown by ``HTTPTask/value``.
    public func task(
        method: HTTPRequest.Method = .get, _ path: String = "", parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPFields = HTTPFields(), options: RequestOptions? = nil
    ) async throws -> HTTPTask {
        let prepared = try await mapped { try preparing(method, path, parameters, body, headers, options) }
        return HTTPTask(
            kind: prepared.body.isPresent ? .upload : .data, request: prepared.request, core: session.core
        ) { control, head in
            let call = try await mapped { try makeCall(prepared) }
            return try await validated(try await session.collect(call, control, head: head))
        }
    }

    // MARK: Inside

    /// Sends a request that was prepared, and collects its answer.
    func send(_ prepared: PreparedRequest) async throws -> HTTPExchange {
        let call = try await mapped { try makeCall(prepared) }
        return try await validated(try await session.collect(call, TransferControl(tellsProgress: false)))
    }

    /// The call of a request.
    private func makeCall(_ prepared: PreparedRequest) throws -> Call {
        try Call(
            prepared.request.method, prepared.request.headerFields, url: prepared.url, body: prepared.body,
            options: prepared.options, settings: session.settings)
    }

    private func validated(_ exchange: HTTPExchange) async throws -> HTTPExchange {
        guard validatesStatus else { return exchange }
        return try await mapped { try exchange.validated() }
    }

    /// Runs what is no part of a call that the session runs, and so would escape the mapper.
    func mapped<Value>(_ body: () throws -> Value) async throws -> Value {
        do {
            return try body()
        } catch {
            throw await session.settings.mapped(error)
        }
    }
}
