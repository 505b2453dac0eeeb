public import MartletCore

// The verbs without a body take a query, and the others take parameters, as any `Encodable` or as a literal of mixed
// values. The verbs with a body also accept an `HTTPBody`.

extension HTTPHost {
    /// Sends GET with a query of any `Encodable`, like `request(method:_:parameters:)`.
    public func get<Target: HTTPTarget>(
        _ path: Target = "", query: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.get, path, query, nil, headers, timeout, options, validate, inURL: true)
    }

    /// Sends GET with a query that may be a literal of mixed values, like `request(method:_:parameters:)`.
    public func get<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.get, path, query, nil, headers, timeout, options, validate, inURL: true)
    }

    /// Sends HEAD with a query of any `Encodable`, like `request(method:_:parameters:)`.
    public func head<Target: HTTPTarget>(
        _ path: Target = "", query: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.head, path, query, nil, headers, timeout, options, validate, inURL: true)
    }

    /// Sends HEAD with a query that may be a literal of mixed values, like `request(method:_:parameters:)`.
    public func head<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.head, path, query, nil, headers, timeout, options, validate, inURL: true)
    }

    /// Sends DELETE with a query of any `Encodable`, like `request(method:_:parameters:)`.
    @discardableResult public func delete<Target: HTTPTarget>(
        _ path: Target = "", query: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.delete, path, query, nil, headers, timeout, options, validate, inURL: true)
    }

    /// Sends DELETE with a query that may be a literal of mixed values, like `request(method:_:parameters:)`.
    @discardableResult public func delete<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.delete, path, query, nil, headers, timeout, options, validate, inURL: true)
    }

    /// Sends POST with the parameters as the body, like `request(method:_:parameters:)`.
    public func post<Target: HTTPTarget>(
        _ path: Target = "", parameters: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.post, path, parameters, nil, headers, timeout, options, validate) }

    /// Sends POST with parameters that may be a literal of mixed values, like `request(method:_:parameters:)`.
    public func post<Target: HTTPTarget>(
        _ path: Target = "", parameters: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.post, path, parameters, nil, headers, timeout, options, validate) }

    /// Sends POST with an unchanged body, like `request(method:_:parameters:)`.
    public func post<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, body: HTTPBody, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.post, path, query, body, headers, timeout, options, validate, inURL: true)
    }

    /// Sends PUT with the parameters as the body, like `request(method:_:parameters:)`.
    public func put<Target: HTTPTarget>(
        _ path: Target = "", parameters: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.put, path, parameters, nil, headers, timeout, options, validate) }

    /// Sends PUT with parameters that may be a literal of mixed values, like `request(method:_:parameters:)`.
    public func put<Target: HTTPTarget>(
        _ path: Target = "", parameters: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange { try await send(.put, path, parameters, nil, headers, timeout, options, validate) }

    /// Sends PUT with an unchanged body, like `request(method:_:parameters:)`.
    public func put<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, body: HTTPBody, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.put, path, query, body, headers, timeout, options, validate, inURL: true)
    }

    /// Sends PATCH with the parameters as the body, like `request(method:_:parameters:)`.
    public func patch<Target: HTTPTarget>(
        _ path: Target = "", parameters: some Encodable, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.patch, path, parameters, nil, headers, timeout, options, validate)
    }

    /// Sends PATCH with parameters that may be a literal of mixed values, like `request(method:_:parameters:)`.
    public func patch<Target: HTTPTarget>(
        _ path: Target = "", parameters: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.patch, path, parameters, nil, headers, timeout, options, validate)
    }

    /// Sends PATCH with an unchanged body, like `request(method:_:parameters:)`.
    public func patch<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, body: HTTPBody, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions? = nil, validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.patch, path, query, body, headers, timeout, options, validate, inURL: true)
    }

    /// Sends POST with a value as JSON, like `body: .json(value)`.
    public func post<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, json value: some Encodable & Sendable,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions? = nil,
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.post, path, query, .json(value), headers, timeout, options, validate, inURL: true)
    }

    /// Sends PUT with a value as JSON, like `body: .json(value)`.
    public func put<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, json value: some Encodable & Sendable,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions? = nil,
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.put, path, query, .json(value), headers, timeout, options, validate, inURL: true)
    }

    /// Sends PATCH with a value as JSON, like `body: .json(value)`.
    public func patch<Target: HTTPTarget>(
        _ path: Target = "", query: ParameterValue = .null, json value: some Encodable & Sendable,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions? = nil,
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.patch, path, query, .json(value), headers, timeout, options, validate, inURL: true)
    }
}
