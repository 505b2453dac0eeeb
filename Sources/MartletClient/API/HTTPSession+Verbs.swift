extension HTTPSession {
    /// Fetches a URL and collects the answer. Append `.decode()` to have JSON decoded, or `.validated()` to insist on 2xx.
    /// - Throws: An ``HTTPError``, with the code `.invalidURL` when the string is no URL; `CancellationError`.
    public nonisolated func get(
        _ url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.get, try HTTPSession.url(url), headers: headers, options: options)
    }

    /// Asks for the head alone (RFC 9110 §9.3.2).
    public nonisolated func head(
        _ url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.head, try HTTPSession.url(url), headers: headers, options: options)
    }

    /// Posts a body to a URL and collects the answer.
    public nonisolated func post(
        _ url: String, body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.post, try HTTPSession.url(url), headers: headers, body: body, options: options)
    }

    /// Puts a body at a URL and collects the answer.
    public nonisolated func put(
        _ url: String, body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.put, try HTTPSession.url(url), headers: headers, body: body, options: options)
    }

    /// Patches what is at a URL and collects the answer.
    public nonisolated func patch(
        _ url: String, body: HTTPBody, headers: HTTPFields = HTTPFields(),
        options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.patch, try HTTPSession.url(url), headers: headers, body: body, options: options)
    }

    /// Deletes what is at a URL and collects the answer.
    public nonisolated func delete(
        _ url: String, headers: HTTPFields = HTTPFields(), options: RequestOptions = RequestOptions()
    ) async throws -> HTTPExchange {
        try await send(.delete, try HTTPSession.url(url), headers: headers, options: options)
    }
}

extension HTTPRequest {
    /// A request to a URL.
    public init(method: HTTPRequest.Method, url: HTTPURL, headerFields: HTTPFields = HTTPFields()) {
        self.init(
            method: method, scheme: url.scheme.rawValue, authority: url.hostFieldValue,
            path: url.requestTarget,
            headerFields: headerFields)
    }

    /// A request to a URL given as a string.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`, whose message points at the character.
    public init(
        method: HTTPRequest.Method, url: String, headerFields: HTTPFields = HTTPFields()
    ) throws(HTTPError) {
        self.init(method: method, url: try HTTPSession.url(url), headerFields: headerFields)
    }
}
