import MartletAuthentication
public import MartletCore
public import MartletHosts

// Requests of a host in an offline queue: its headers, options and credentials apply, except to other origins.

/// The part of a host, or of a URL, that is not written to disk.
struct HostPart: Sendable {
    var fieldNames: Set<HTTPField.Name> = []
    /// The key of the request's options.
    var idempotencyKey: IdempotencyKey?
    /// The user name and password of the URL.
    var urlCredentials: Credentials?
    /// The credentials of the request; `nil` for those of the queue's session.
    var authentication: AuthenticationSettings?
}

extension HostPart {
    init(_ host: HTTPHost, _ prepared: PreparedRequest, headers: HTTPHeaders) {
        // A field of the call itself is stored, as with any request.
        fieldNames = host.secretFieldNames.subtracting(headers.lazy.map(\.name))
        authentication = prepared.options.authentication
        idempotencyKey = prepared.options.idempotencyKey
    }

    /// Creates the part of a URL. A request has no user info.
    init(_ target: some HTTPTarget) throws(HTTPError) {
        let url: HTTPURL
        switch target.httpTarget {
        case .text(let text): url = try HTTPSession.url(text)
        case .url(let given): url = given
        case .request, .segments: return
        }
        urlCredentials = url.user.map { Credentials.basic(user: $0, password: url.password ?? "") }
    }
}

extension HTTPHost {
    /// Sends a request. If that is not possible now, a queue stores it and sends it later, like
    /// ``HTTPSession/send(_:query:body:headers:timeout:options:whenOffline:)``.
    ///
    /// The session of the queue sends the request. Neither the host's credentials nor its ``headers``, other than
    /// `Accept`, `Accept-Language`, `Accept-Encoding` and `User-Agent`, are stored: this process adds them to each
    /// attempt. A later process adds the headers if it opens the queue with ``OfflineCredentials/init(_:)``.
    /// - Returns: The response, or a ticket. With ``validatesStatus``, a status other than 2xx is thrown as an error.
    /// - Throws: The errors of both functions and of `prepare(_:_:parameters:)`, or their replacements by ``errors``.
    public func send<Target: HTTPTarget>(
        _ path: Target = "", method: HTTPRequest.Method = .post, parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPHeaders = HTTPHeaders(), options: RequestOptions? = nil,
        whenOffline fallback: OfflineFallback
    ) async throws -> OfflineOutcome {
        let prepared = try mapped {
            try prepare(method, path, parameters: parameters, body: body, headers: headers, options: options)
        }
        var attempt = prepared.options
        // As without a host: a GET after a 301 would deliver nothing. The policy is the session's, with secret fields.
        if options?.redirects == nil, self.options.redirects == nil {
            attempt.redirects?.methodPreservingStatuses.insert(301)
        }
        let outcome: OfflineOutcome
        do {
            outcome = try await fallback.queue(of: session, for: prepared.request).send(
                prepared.request, body: prepared.body, options: attempt, as: fallback.submission,
                HostPart(self, prepared, headers: headers))
        } catch { throw mapped(error) }
        guard case .response(let exchange) = outcome else { return outcome }
        return .response(try validated(exchange))
    }

    /// Sends a POST request now or later, like ``send(_:method:parameters:body:headers:options:whenOffline:)``.
    public func post<Target: HTTPTarget>(
        _ path: Target = "", parameters: ParameterValue = .null, body: HTTPBody? = nil,
        headers: HTTPHeaders = HTTPHeaders(), options: RequestOptions? = nil, whenOffline fallback: OfflineFallback
    ) async throws -> OfflineOutcome {
        try await send(
            path, method: .post, parameters: parameters, body: body, headers: headers, options: options,
            whenOffline: fallback)
    }
}

extension OfflineQueue {
    /// Stores a request of a host until a server accepts it, like ``submit(_:query:body:headers:as:)``. The headers and
    /// credentials of the host are used as in ``HTTPHost/send(_:method:parameters:body:headers:options:whenOffline:)``.
    /// - Throws: The errors of ``submit(_:query:body:headers:as:)`` and of `HTTPHost.prepare(_:_:parameters:)`.
    @discardableResult public func submit<Target: HTTPTarget>(
        _ path: Target = "", of host: HTTPHost, method: HTTPRequest.Method = .post, parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPHeaders = HTTPHeaders(),
        as submission: OfflineSubmission = OfflineSubmission()
    ) async throws -> OfflineTicket {
        let prepared = try host.prepare(method, path, parameters: parameters, body: body, headers: headers)
        return try await submit(
            prepared.request, body: prepared.body, as: submission, HostPart(host, prepared, headers: headers))
    }
}

extension OfflineCredentials {
    /// Adds a host's headers to requests to its origin. Authentication is left to the queue's session.
    public init(_ host: HTTPHost) {
        self.init { request in
            var request = request
            var fields = HTTPHeaders(request.headerFields)
            host.addHeaders(to: &fields, for: try HTTPSession.url(of: request))
            request.headerFields = try fields.validated()
            return request
        }
    }
}
