// Each verb takes its query as a literal of mixed values or as any `Encodable`. They differ in the method alone.

extension HTTPSession {
    /// Sends a request and collects the response. A status of 400 or more is a response, not an error.
    ///
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. The default method is GET, with a body POST.
    ///   - query: Parameters that are appended to the query of the URL by ``SessionConfiguration/queryEncoding``; null for none.
    ///   - headers: Fields that replace those of the request and of the session.
    ///   - body: The body; none by default.
    ///   - timeout: The maximum duration of the whole call, ``Timeouts/total``; the other timeouts are unchanged.
    ///   - options: The settings that override those of the session.
    /// - Throws: An ``HTTPError``, with the code `.invalidURL` if the string is not a URL, `.invalidHeader` for a field that cannot
    ///   be sent, and `.invalidRequest` for a query that cannot be encoded; the error of a ``QueryEncoding/serializer``;
    ///   `CancellationError`.
    public nonisolated func send(
        _ target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        body: HTTPBody = .none, timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(nil, target, query: query, headers: headers, body: body, timeout: timeout, options: options))
    }

    /// Sends a request by method and URL; otherwise like ``send(_:query:headers:body:timeout:options:)``.
    public nonisolated func send(
        _ method: HTTPRequest.Method, _ target: some HTTPTarget, query: ParameterValue = .null,
        headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none, timeout: Duration? = nil,
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(
                method, target, query: query, headers: headers, body: body, timeout: timeout, options: options
            ))
    }

    /// Fetches a URL and collects the response. Append `.decode()` to decode JSON, or `.validated()` to require 2xx.
    ///
    /// The method of a request is ignored. The parameters and errors are those of ``send(_:query:headers:body:timeout:options:)``.
    public nonisolated func get(
        _ target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(.get, target, query: query, headers: headers, timeout: timeout, options: options))
    }

    /// The same with a query of any `Encodable`.
    public nonisolated func get(
        _ target: some HTTPTarget, query: some Encodable, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(
                .get, target, query: HTTPSession.query(query), headers: headers, timeout: timeout,
                options: options))
    }

    /// Requests only the head (RFC 9110 §9.3.2). The parameters and errors are those of ``send(_:query:headers:body:timeout:options:)``.
    public nonisolated func head(
        _ target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(.head, target, query: query, headers: headers, timeout: timeout, options: options))
    }

    /// The same with a query of any `Encodable`.
    public nonisolated func head(
        _ target: some HTTPTarget, query: some Encodable, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(
                .head, target, query: HTTPSession.query(query), headers: headers, timeout: timeout,
                options: options))
    }

    /// Deletes the resource at a URL and collects the response. The parameters and errors are those of ``send(_:query:headers:body:timeout:options:)``.
    public nonisolated func delete(
        _ target: some HTTPTarget, query: ParameterValue = .null, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(.delete, target, query: query, headers: headers, timeout: timeout, options: options))
    }

    /// The same with a query of any `Encodable`.
    public nonisolated func delete(
        _ target: some HTTPTarget, query: some Encodable, headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(
                .delete, target, query: HTTPSession.query(query), headers: headers, timeout: timeout,
                options: options))
    }

    /// Posts a body to a URL and collects the response. The parameters and errors are those of ``send(_:query:headers:body:timeout:options:)``.
    public nonisolated func post(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(
                .post, target, query: query, headers: headers, body: body, timeout: timeout, options: options)
        )
    }

    /// The same with a query of any `Encodable`.
    public nonisolated func post(
        _ target: some HTTPTarget, query: some Encodable, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(
                .post, target, query: HTTPSession.query(query), headers: headers, body: body,
                timeout: timeout, options: options))
    }

    /// Puts a body at a URL and collects the response. The parameters and errors are those of ``send(_:query:headers:body:timeout:options:)``.
    public nonisolated func put(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(.put, target, query: query, headers: headers, body: body, timeout: timeout, options: options)
        )
    }

    /// The same with a query of any `Encodable`.
    public nonisolated func put(
        _ target: some HTTPTarget, query: some Encodable, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(
                .put, target, query: HTTPSession.query(query), headers: headers, body: body, timeout: timeout,
                options: options))
    }

    /// Patches the resource at a URL and collects the response. The parameters and errors are those of ``send(_:query:headers:body:timeout:options:)``.
    public nonisolated func patch(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(
                .patch, target, query: query, headers: headers, body: body, timeout: timeout, options: options
            ))
    }

    /// The same with a query of any `Encodable`.
    public nonisolated func patch(
        _ target: some HTTPTarget, query: some Encodable, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(),
        timeout: Duration? = nil, options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await collect(
            call(
                .patch, target, query: HTTPSession.query(query), headers: headers, body: body,
                timeout: timeout, options: options))
    }
}
