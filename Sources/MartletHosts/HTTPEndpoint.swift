public import MartletCore

/// A request of a service, with the type of its response.
///
/// ```swift
/// struct UserByName: HTTPEndpoint {
///     typealias Response = User
///     var name: String
///     var path: [String] { ["users", name] }
/// }
///
/// let user = try await api.call(UserByName(name: "anna"))
/// ```
///
/// Everything except the path and the response has a default: GET without parameters, body and fields; a status of 2xx
/// is required, and JSON is decoded. As `Response`, `HTTPExchange` returns the exchange, and `Void` discards it.
public protocol HTTPEndpoint<Response> {
    /// The value that the response is decoded to.
    associatedtype Response
    /// The type of the parameters.
    associatedtype Parameters: Encodable = ParameterValue

    /// The type of the path.
    associatedtype Path: HTTPTarget = String

    /// The method of the request; GET by default.
    var method: HTTPRequest.Method { get }
    /// The path below the host's base, as text or as segments that are percent-encoded; see `url(for:)`.
    var path: Path { get }
    /// The parameters; none by default.
    var parameters: Parameters { get }
    /// The body to send unchanged; `nil` (the default) to create it from the parameters.
    var body: HTTPBody? { get }
    /// The fields that replace those of the host; none by default.
    var headers: HTTPHeaders { get }
    /// The encoding of the parameters; `nil` (the default) for that of the host.
    var encoding: ParameterEncoding? { get }
    /// The options of the call, which override those of the host one by one; `nil` (the default) for none.
    var options: RequestOptions? { get }
    /// Whether a status that is not 2xx is an error, before ``response(from:)`` is called; `true` by default.
    var validatesStatus: Bool { get }

    /// Decodes the response. The call throws the error of this function.
    func response(from exchange: HTTPExchange) throws -> Response
}

extension HTTPEndpoint {
    /// The default method, GET.
    public var method: HTTPRequest.Method { .get }
    /// The default, `nil`: no body besides the parameters.
    public var body: HTTPBody? { nil }
    /// The default: no fields.
    public var headers: HTTPHeaders { HTTPHeaders() }
    /// The default, `nil`: the encoding of the host is used.
    public var encoding: ParameterEncoding? { nil }
    /// The default, `nil`: the options of the host are used.
    public var options: RequestOptions? { nil }
    /// The default, `true`.
    public var validatesStatus: Bool { true }
}

extension HTTPEndpoint where Parameters == ParameterValue {
    /// The default: no parameters.
    public var parameters: ParameterValue { .null }
}

extension HTTPEndpoint where Response: Decodable {
    /// Decodes the body as JSON.
    public func response(from exchange: HTTPExchange) throws -> Response { try exchange.decode() }
}

extension HTTPEndpoint where Response == HTTPExchange {
    /// Returns the exchange unchanged.
    public func response(from exchange: HTTPExchange) -> HTTPExchange { exchange }
}

extension HTTPEndpoint where Response == Void {
    /// Discards the exchange and returns nothing.
    public func response(from exchange: HTTPExchange) {}
}

extension HTTPHost {
    /// Sends the request of an endpoint and decodes its response.
    /// - Throws: An ``HTTPError``, or the error that ``errors`` maps it to. The endpoint's `validatesStatus` applies,
    ///   not the host's. An error of `response(from:)` that is not an ``HTTPError`` is thrown unchanged.
    ///   `CancellationError`.
    public func call<Endpoint: HTTPEndpoint>(_ endpoint: Endpoint) async throws -> Endpoint.Response {
        let host = with { host in
            host.validatesStatus = endpoint.validatesStatus
            if let encoding = endpoint.encoding { host.encoding = encoding }
        }
        let exchange = try await host.send(
            endpoint.method, endpoint.path, endpoint.parameters, endpoint.body, endpoint.headers, nil, endpoint.options)
        return try mapped { try endpoint.response(from: exchange) }
    }

    /// Sends a request with any method and collects the response. The parameters are those of
    /// `prepare(_:_:parameters:)`.
    /// - Parameter validate: The conditions for the response; `nil` to use those of the options or the session.
    /// - Throws: An ``HTTPError``, or the error that ``errors`` maps it to; `CancellationError`.
    public func request<Target: HTTPTarget>(
        method: HTTPRequest.Method, _ path: Target = "", parameters: some Encodable, body: HTTPBody? = nil,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions? = nil,
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(method, path, parameters, body, headers, timeout, options, validate)
    }

    /// Sends a request with parameters written as literals; otherwise like the other function of this name.
    public func request<Target: HTTPTarget>(
        method: HTTPRequest.Method, _ path: Target = "", parameters: ParameterValue = .null, body: HTTPBody? = nil,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions? = nil,
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(method, path, parameters, body, headers, timeout, options, validate)
    }

    /// Sends a request and passes the response to a closure as it arrives; otherwise like
    /// ``HTTPSession/stream(_:method:query:body:headers:timeout:options:validate:_:)``.
    ///
    /// With ``validatesStatus``, a response that is not 2xx is thrown as an error with up to 64 KiB of its body, and
    /// the closure is not called. The same applies to a response that a validator of the call or the session rejects.
    public func stream<Result, Target: HTTPTarget>(
        _ path: Target = "", method: HTTPRequest.Method? = nil, parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil,
        _ handle: (OpenResponse, ResponseBody) async throws -> Result
    ) async throws -> Result {
        let call = try makeCall(method, path, parameters, body, headers, timeout, options, validate)
        return try await session.stream(call, validators(of: call), handle)
    }

    /// Sends a request and returns its response with an unread body; otherwise like
    /// ``HTTPSession/open(_:method:query:body:headers:timeout:options:validate:)``.
    ///
    /// With ``validatesStatus``, a response that is not 2xx is thrown as an error with up to 64 KiB of its body.
    public func open<Target: HTTPTarget>(
        _ path: Target = "", method: HTTPRequest.Method? = nil, parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> OpenResponse {
        let call = try makeCall(method, path, parameters, body, headers, timeout, options, validate)
        return try await session.open(call, validators(of: call))
    }

    /// Returns the pages of a list; otherwise like
    /// ``HTTPSession/pages(_:query:headers:timeout:options:validate:maximumCount:)``.
    public func pages<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil,
        maximumCount: Int = 10_000
    ) -> HTTPPages {
        let path = path.httpTarget
        return HTTPPages(maximumCount: maximumCount) { link in
            var all = headers
            if case .request(let request) = path { all.fill(from: request.headerFields) }
            let call = try makeCall(
                .get, link.map { HTTPTargetForm.url($0) } ?? path, link == nil ? query : .null, nil, all, timeout,
                options, validate, inURL: true)
            return (call.url, try await session.collect(call))
        }
    }

    private func validators(of call: Call) -> [ResponseValidator] {
        (validatesStatus ? [.success] : []) + call.validators
    }

    /// Sends a body and reports its progress. The method is POST unless another method or a request is given.
    /// - Parameter progress: Called on the caller's actor with the latest state; states before the last may be skipped.
    @discardableResult public func upload<Target: HTTPTarget>(
        _ body: HTTPBody, to path: Target = "", method: HTTPRequest.Method? = nil, query: ParameterValue = .null,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions? = nil,
        validate: ResponseValidator? = nil, progress: ((TransferProgress) -> Void)? = nil
    ) async throws -> HTTPExchange {
        let call = try makeCall(method, path, query, body, headers, timeout, options, validate)
        let control = TransferControl()
        let session = session
        return try validated(
            try await HTTPSession.reporting(control.upload, to: progress) { try await session.collect(call, control) })
    }

    /// Fetches a path into a file; otherwise like
    /// ``HTTPSession/save(_:to:overwrites:query:body:headers:timeout:options:validate:progress:)``.
    @discardableResult public func save(
        _ path: some HTTPTarget, to file: some FilePathConvertible, overwrites: Bool = false,
        query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil,
        progress: ((TransferProgress) -> Void)? = nil
    ) async throws -> HTTPExchange {
        let call = try makeCall(nil, path, query, nil, headers, timeout, options, validate, inURL: true)
        let (file, control) = (file.filePath, TransferControl())
        let session = session
        return try await HTTPSession.reporting(control.download, to: progress) {
            try await session.save(call, to: file, overwrites: overwrites, control: control)
        }
    }

    /// Starts a call and returns it: an upload if it has a body, otherwise a data task.
    /// - Throws: An ``HTTPError`` if the request is invalid. Errors of the call are thrown by ``HTTPTask/value``.
    public func task<Target: HTTPTarget>(
        method: HTTPRequest.Method? = nil, _ path: Target = "", parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPTask {
        let call = try makeCall(method, path, parameters, body, headers, timeout, options, validate)
        return HTTPTask(
            kind: call.body.isPresent ? .upload : .data, request: call.publicRequest, callNumber: call.number,
            core: session.core
        ) { try validated(try await session.collect(call, $0, head: $1)) }
    }

    /// Sends a request and collects the response. With a body, the parameters are appended to the URL.
    func send(
        _ method: HTTPRequest.Method, _ path: some HTTPTarget, _ parameters: some Encodable, _ body: HTTPBody?,
        _ headers: HTTPHeaders, _ timeout: Duration?, _ options: RequestOptions?, _ validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        let call = try makeCall(method, path, parameters, body, headers, timeout, options, validate)
        return try validated(try await session.collect(call))
    }

    /// Sends a request without a body, with a query in the URL, and collects the response.
    func send(
        _ method: HTTPRequest.Method, _ path: some HTTPTarget, query: some Encodable, _ headers: HTTPHeaders,
        _ timeout: Duration?, _ options: RequestOptions?, _ validate: ResponseValidator?
    ) async throws -> HTTPExchange {
        let call = try makeCall(method, path, query, nil, headers, timeout, options, validate, inURL: true)
        return try validated(try await session.collect(call))
    }

    private func makeCall(
        _ method: HTTPRequest.Method?, _ path: some HTTPTarget, _ parameters: some Encodable, _ body: HTTPBody?,
        _ headers: HTTPHeaders, _ timeout: Duration?, _ options: RequestOptions?, _ validate: ResponseValidator? = nil,
        inURL: Bool = false
    ) throws -> Call {
        try mapped {
            let prepared = try preparing(
                method, path, parameters, body, headers, timeout, options, validate, inURL: inURL)
            return try Call(
                prepared.request.method, prepared.request.headerFields, url: prepared.url, body: prepared.body,
                options: prepared.options, settings: session.settings)
        }
    }

    /// Checks the status of a response if the host validates it.
    package func validated(_ exchange: HTTPExchange) throws -> HTTPExchange {
        // Mapped here as well, because the exchange may belong to a session with another mapper.
        validatesStatus ? try mapped { try exchange.validated() } : exchange
    }

    /// Runs code that is not part of a call of the session, and maps its errors.
    package func mapped<Value>(_ body: () throws -> Value) throws -> Value {
        do { return try body() } catch { throw mapped(error) }
    }

    /// Returns the error to throw instead of an error that was not mapped yet.
    package func mapped(_ error: any Error) -> any Error { session.settings.mapped(error) }
}
