public import MartletCore
public import HTTPTypes

// Each verb takes its parameters as any `Encodable` or as a literal of mixed values; those with a body also take one as it is.
// Parameters and a body together need ``HTTPHost/request(method:_:parameters:body:headers:options:)``.

private let none = ParameterValue.null

extension HTTPHost {
    /// Sends GET with the parameters in the URL, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func get(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.get, path, parameters, nil, headers, options) }

    /// Sends GET with parameters that may be a literal of mixed values, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func get(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.get, path, parameters, nil, headers, options) }

    /// Sends HEAD with the parameters in the URL, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func head(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.head, path, parameters, nil, headers, options) }

    /// Sends HEAD with parameters that may be a literal of mixed values, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func head(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.head, path, parameters, nil, headers, options) }

    /// Sends DELETE with the parameters in the URL, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func delete(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.delete, path, parameters, nil, headers, options) }

    /// Sends DELETE with parameters that may be a literal of mixed values, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func delete(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.delete, path, parameters, nil, headers, options) }

    /// Sends POST with the parameters as the body, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func post(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.post, path, parameters, nil, headers, options) }

    /// Sends POST with parameters that may be a literal of mixed values, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func post(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.post, path, parameters, nil, headers, options) }

    /// Sends POST with a body as it is, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func post(
        _ path: String = "", body: HTTPBody, headers: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.post, path, none, body, headers, options) }

    /// Sends PUT with the parameters as the body, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func put(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.put, path, parameters, nil, headers, options) }

    /// Sends PUT with parameters that may be a literal of mixed values, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func put(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.put, path, parameters, nil, headers, options) }

    /// Sends PUT with a body as it is, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func put(
        _ path: String = "", body: HTTPBody, headers: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.put, path, none, body, headers, options) }

    /// Sends PATCH with the parameters as the body, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func patch(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.patch, path, parameters, nil, headers, options) }

    /// Sends PATCH with parameters that may be a literal of mixed values, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func patch(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = [:],
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.patch, path, parameters, nil, headers, options) }

    /// Sends PATCH with a body as it is, as ``request(method:_:parameters:body:headers:options:)`` does.
    public func patch(
        _ path: String = "", body: HTTPBody, headers: HTTPFields = [:], options: RequestOptions? = nil
    ) async throws -> HTTPExchange { try await send(.patch, path, none, body, headers, options) }
}
