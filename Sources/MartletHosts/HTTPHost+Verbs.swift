public import MartletCore

// The verbs without a body take a query, and the others take parameters, as any `Encodable` or as a literal of mixed
// values. The verbs with a body also accept an `HTTPBody`, and those of HTTPSender `json:`, `form:` and `multipart:`.

extension HTTPHost: HTTPSender {
    /// Sends a request with any method and an unchanged body, like `request(method:_:parameters:)`. The query is
    /// appended to the URL.
    public func send<Target: HTTPTarget>(
        _ method: HTTPRequest.Method, _ path: Target = "", query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(method, path, query, body, headers, timeout, options, validate) }

    /// Sends GET with a query of any `Encodable`, like `request(method:_:parameters:)`.
    public func get<Target: HTTPTarget>(
        _ path: Target = "", query: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.get, path, query: query, headers, timeout, options, validate) }

    /// Sends GET with a query that may be a literal of mixed values, like `request(method:_:parameters:)`.
    public func get<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.get, path, query: query, headers, timeout, options, validate) }

    /// Sends HEAD with a query of any `Encodable`, like `request(method:_:parameters:)`.
    public func head<Target: HTTPTarget>(
        _ path: Target = "", query: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.head, path, query: query, headers, timeout, options, validate) }

    /// Sends HEAD with a query that may be a literal of mixed values, like `request(method:_:parameters:)`.
    public func head<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.head, path, query: query, headers, timeout, options, validate) }

    /// Sends DELETE with a query of any `Encodable`, like `request(method:_:parameters:)`.
    @discardableResult public func delete<Target: HTTPTarget>(
        _ path: Target = "", query: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.delete, path, query: query, headers, timeout, options, validate) }

    /// Sends DELETE with a query that may be a literal of mixed values, like `request(method:_:parameters:)`.
    @discardableResult public func delete<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.delete, path, query: query, headers, timeout, options, validate) }

    /// Sends POST with the parameters as the body, like `request(method:_:parameters:)`.
    @discardableResult public func post<Target: HTTPTarget>(
        _ path: Target = "", parameters: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.post, path, parameters, nil, headers, timeout, options, validate) }

    /// Sends POST with parameters that may be a literal of mixed values, like `request(method:_:parameters:)`.
    @discardableResult public func post<Target: HTTPTarget>(
        _ path: Target = "", parameters: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.post, path, parameters, nil, headers, timeout, options, validate) }

    /// Sends POST with an unchanged body, like `request(method:_:parameters:)`.
    @discardableResult public func post<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, body: HTTPBody, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.post, path, query, body, headers, timeout, options, validate) }

    /// Sends PUT with the parameters as the body, like `request(method:_:parameters:)`.
    @discardableResult public func put<Target: HTTPTarget>(
        _ path: Target = "", parameters: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.put, path, parameters, nil, headers, timeout, options, validate) }

    /// Sends PUT with parameters that may be a literal of mixed values, like `request(method:_:parameters:)`.
    @discardableResult public func put<Target: HTTPTarget>(
        _ path: Target = "", parameters: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.put, path, parameters, nil, headers, timeout, options, validate) }

    /// Sends PUT with an unchanged body, like `request(method:_:parameters:)`.
    @discardableResult public func put<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, body: HTTPBody, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.put, path, query, body, headers, timeout, options, validate) }

    /// Sends PATCH with the parameters as the body, like `request(method:_:parameters:)`.
    @discardableResult public func patch<Target: HTTPTarget>(
        _ path: Target = "", parameters: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.patch, path, parameters, nil, headers, timeout, options, validate)
    }

    /// Sends PATCH with parameters that may be a literal of mixed values, like `request(method:_:parameters:)`.
    @discardableResult public func patch<Target: HTTPTarget>(
        _ path: Target = "", parameters: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.patch, path, parameters, nil, headers, timeout, options, validate)
    }

    /// Sends PATCH with an unchanged body, like `request(method:_:parameters:)`.
    @discardableResult public func patch<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, body: HTTPBody, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.patch, path, query, body, headers, timeout, options, validate) }
}
