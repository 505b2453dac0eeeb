/// A session or a host. The protocol adds the verbs whose body is JSON or a form.
///
/// ```swift
/// let made: User = try await session.post(url, json: draft).decode()
/// try await session.put(url, form: ["name": "Ada", "nick": nick])
/// try await api.post("photos", multipart: [.field("title", "Sea"), .file("photo", at: "/data/sea.jpg")])
/// ```
///
/// A host also accepts a path, whose default is its base. The other parameters, and the errors, are those of
/// ``HTTPSession/send(_:query:body:headers:timeout:options:validate:)``.
public protocol HTTPSender: Sendable {
    /// Sends a request by method and URL, or by the path of a host, and collects the response.
    func send(
        _ method: HTTPRequest.Method, _ target: some HTTPTarget, query: ParameterValue, body: HTTPBody,
        headers: HTTPHeaders, timeout: Duration?, options: RequestOptions, validate: ResponseValidator?
    ) async throws -> HTTPExchange
}

extension HTTPSender {
    /// Posts a value as JSON, like `body: .json(value)`.
    @discardableResult public func post<Target: HTTPTarget>(
        _ target: Target = "", query: ParameterValue = .null, json value: some Encodable & Sendable,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.post, target, query, .json(value), headers, timeout, options, validate)
    }

    /// Posts a form of names and values, like `body: .form(items)`; items that are `nil` are omitted.
    @discardableResult public func post<Target: HTTPTarget>(
        _ target: Target = "", query: ParameterValue = .null, form items: KeyValuePairs<String, String?>,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.post, target, query, .form(items), headers, timeout, options, validate)
    }

    /// Posts a form in parts, like `body: .multipart(form)`.
    @discardableResult public func post<Target: HTTPTarget>(
        _ target: Target = "", query: ParameterValue = .null, multipart form: MultipartForm,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.post, target, query, .multipart(form), headers, timeout, options, validate)
    }

    /// Puts a value as JSON, like `body: .json(value)`.
    @discardableResult public func put<Target: HTTPTarget>(
        _ target: Target = "", query: ParameterValue = .null, json value: some Encodable & Sendable,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.put, target, query, .json(value), headers, timeout, options, validate)
    }

    /// Puts a form of names and values, like `body: .form(items)`; items that are `nil` are omitted.
    @discardableResult public func put<Target: HTTPTarget>(
        _ target: Target = "", query: ParameterValue = .null, form items: KeyValuePairs<String, String?>,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.put, target, query, .form(items), headers, timeout, options, validate)
    }

    /// Puts a form in parts, like `body: .multipart(form)`.
    @discardableResult public func put<Target: HTTPTarget>(
        _ target: Target = "", query: ParameterValue = .null, multipart form: MultipartForm,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.put, target, query, .multipart(form), headers, timeout, options, validate)
    }

    /// Patches with a value as JSON, like `body: .json(value)`.
    @discardableResult public func patch<Target: HTTPTarget>(
        _ target: Target = "", query: ParameterValue = .null, json value: some Encodable & Sendable,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.patch, target, query, .json(value), headers, timeout, options, validate)
    }

    /// Patches with a form of names and values, like `body: .form(items)`; items that are `nil` are omitted.
    @discardableResult public func patch<Target: HTTPTarget>(
        _ target: Target = "", query: ParameterValue = .null, form items: KeyValuePairs<String, String?>,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.patch, target, query, .form(items), headers, timeout, options, validate)
    }

    /// Patches with a form in parts, like `body: .multipart(form)`.
    @discardableResult public func patch<Target: HTTPTarget>(
        _ target: Target = "", query: ParameterValue = .null, multipart form: MultipartForm,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        validate: ResponseValidator? = nil
    ) async throws -> HTTPExchange {
        try await send(.patch, target, query, .multipart(form), headers, timeout, options, validate)
    }

    private func send(
        _ method: HTTPRequest.Method, _ target: some HTTPTarget, _ query: ParameterValue, _ body: HTTPBody,
        _ headers: HTTPHeaders, _ timeout: Duration?, _ options: RequestOptions, _ validate: ResponseValidator?
    ) async throws -> HTTPExchange {
        try await send(
            method, target, query: query, body: body, headers: headers, timeout: timeout, options: options,
            validate: validate)
    }
}
