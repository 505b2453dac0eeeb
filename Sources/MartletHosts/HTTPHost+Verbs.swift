public import MartletCore
public import HTTPTypes

// Each verb takes its parameters as any `Encodable`, or as a literal of mixed values; and those with a body, one as it is.
// For more, such as parameters and a body, there is ``HTTPHost/request(method:_:parameters:body:headers:options:)``.

extension HTTPHost {
    /// Fetches a path and collects the answer, with the parameters in the URL.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func get(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .get, path, parameters: parameters, headers: headers, options: options)
    }

    /// Fetches a path and collects the answer; parameters may be a literal of mixed values.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func get(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .get, path, parameters: parameters, headers: headers, options: options)
    }

    /// Asks for the head of a path alone (RFC 9110 §9.3.2), with the parameters in the URL.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func head(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .head, path, parameters: parameters, headers: headers, options: options)
    }

    /// Asks for the head of a path alone (RFC 9110 §9.3.2); parameters may be a literal of mixed values.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func head(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .head, path, parameters: parameters, headers: headers, options: options)
    }

    /// Deletes what is at a path and collects the answer, with the parameters in the URL.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func delete(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .delete, path, parameters: parameters, headers: headers, options: options)
    }

    /// Deletes what is at a path and collects the answer; parameters may be a literal of mixed values.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func delete(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .delete, path, parameters: parameters, headers: headers, options: options)
    }

    /// Posts to a path and collects the answer, with the parameters as the body.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func post(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .post, path, parameters: parameters, headers: headers, options: options)
    }

    /// Posts to a path and collects the answer; parameters may be a literal of mixed values.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func post(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .post, path, parameters: parameters, headers: headers, options: options)
    }

    /// Posts to a path and collects the answer, with a body as it is.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func post(
        _ path: String = "", body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .post, path, body: body, headers: headers, options: options)
    }

    /// Puts something at a path and collects the answer, with the parameters as the body.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func put(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .put, path, parameters: parameters, headers: headers, options: options)
    }

    /// Puts something at a path and collects the answer; parameters may be a literal of mixed values.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func put(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .put, path, parameters: parameters, headers: headers, options: options)
    }

    /// Puts something at a path and collects the answer, with a body as it is.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func put(
        _ path: String = "", body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .put, path, body: body, headers: headers, options: options)
    }

    /// Patches what is at a path and collects the answer, with the parameters as the body.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func patch(
        _ path: String = "", parameters: some Encodable, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .patch, path, parameters: parameters, headers: headers, options: options)
    }

    /// Patches what is at a path and collects the answer; parameters may be a literal of mixed values.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func patch(
        _ path: String = "", parameters: ParameterValue = .null, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .patch, path, parameters: parameters, headers: headers, options: options)
    }

    /// Patches what is at a path and collects the answer, with a body as it is.
    /// - Throws: As ``request(method:_:parameters:body:headers:options:)``.
    public func patch(
        _ path: String = "", body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions? = nil
    ) async throws -> HTTPExchange {
        try await request(method: .patch, path, body: body, headers: headers, options: options)
    }
}
