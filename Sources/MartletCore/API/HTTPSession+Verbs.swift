// Each verb takes its query as a literal of mixed values or as any `Encodable`. The verbs differ only in the method.
// HTTPSender has the verbs with `json:`, `form:` and `multipart:`.

extension HTTPSession: HTTPSender {
    /// Sends a request and collects the response. A status of 400 or more is a response, not an error.
    ///
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. For a URL, the method is GET, or POST with a
    ///     body.
    ///   - query: Parameters that ``SessionConfiguration/queryEncoding`` appends to the query of the URL.
    ///   - body: The body; none by default.
    ///   - headers: Fields that replace those of the request and of the session.
    ///   - timeout: The maximum duration of the whole call, ``Timeouts/total``; the other timeouts are unchanged.
    ///   - options: The settings that override those of the session.
    ///   - validate: The conditions for the response, as in `validate: .success`; `nil` to use those of `options` or
    ///     the session. The error of a rejection carries the response.
    /// - Throws: An ``HTTPError``, with the code `.invalidURL` if the string is not a URL, `.invalidHeader` for a field
    ///   that cannot be sent, and `.invalidRequest` for a query that cannot be encoded; the error of a
    ///   ``QueryEncoding/serializer``; `CancellationError`.
    public nonisolated func send(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(nil, target, query, headers, body, timeout, options, validate))
    }

    /// Sends a request by method and URL; otherwise like ``send(_:query:body:headers:timeout:options:validate:)``.
    public nonisolated func send(
        _ method: HTTPRequest.Method, _ target: some HTTPTarget, query: ParameterValue = .null,
        body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil,
        options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(method, target, query, headers, body, timeout, options, validate))
    }

    /// Fetches a URL and collects the response. Append `.decode()` to decode JSON, or `.validated()` to require 2xx.
    ///
    /// If `target` is an `HTTPRequest`, its method is ignored. The parameters and errors are those of
    /// ``send(_:query:body:headers:timeout:options:validate:)``.
    public nonisolated func get(
        _ target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.get, target, query, headers, .none, timeout, options, validate))
    }

    /// Fetches a URL with a query of any `Encodable`; otherwise like the other function of this name.
    public nonisolated func get(
        _ target: some HTTPTarget, query: some Encodable, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.get, target, HTTPSession.query(query), headers, .none, timeout, options, validate))
    }

    /// Requests the head (RFC 9110 §9.3.2); otherwise like ``send(_:query:body:headers:timeout:options:validate:)``.
    public nonisolated func head(
        _ target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.head, target, query, headers, .none, timeout, options, validate))
    }

    /// Requests the head with a query of any `Encodable`; otherwise like the other function of this name.
    public nonisolated func head(
        _ target: some HTTPTarget, query: some Encodable, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.head, target, HTTPSession.query(query), headers, .none, timeout, options, validate))
    }

    /// Deletes the resource at a URL; otherwise like ``send(_:query:body:headers:timeout:options:validate:)``.
    @discardableResult public nonisolated func delete(
        _ target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.delete, target, query, headers, .none, timeout, options, validate))
    }

    /// Deletes the resource with a query of any `Encodable`; otherwise like the other function of this name.
    @discardableResult public nonisolated func delete(
        _ target: some HTTPTarget, query: some Encodable, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.delete, target, HTTPSession.query(query), headers, .none, timeout, options, validate))
    }

    /// Posts a body to a URL; otherwise like ``send(_:query:body:headers:timeout:options:validate:)``.
    @discardableResult public nonisolated func post(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.post, target, query, headers, body, timeout, options, validate))
    }

    /// Posts a body with a query of any `Encodable`; otherwise like the other function of this name.
    @discardableResult public nonisolated func post(
        _ target: some HTTPTarget, query: some Encodable, body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.post, target, HTTPSession.query(query), headers, body, timeout, options, validate))
    }

    /// Puts a body at a URL; otherwise like ``send(_:query:body:headers:timeout:options:validate:)``.
    @discardableResult public nonisolated func put(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.put, target, query, headers, body, timeout, options, validate))
    }

    /// Puts a body with a query of any `Encodable`; otherwise like the other function of this name.
    @discardableResult public nonisolated func put(
        _ target: some HTTPTarget, query: some Encodable, body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.put, target, HTTPSession.query(query), headers, body, timeout, options, validate))
    }

    /// Patches the resource at a URL; otherwise like ``send(_:query:body:headers:timeout:options:validate:)``.
    @discardableResult public nonisolated func patch(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.patch, target, query, headers, body, timeout, options, validate))
    }

    /// Patches the resource with a query of any `Encodable`; otherwise like the other function of this name.
    @discardableResult public nonisolated func patch(
        _ target: some HTTPTarget, query: some Encodable, body: HTTPBody = .none, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions(), validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await collect(call(.patch, target, HTTPSession.query(query), headers, body, timeout, options, validate))
    }
}
