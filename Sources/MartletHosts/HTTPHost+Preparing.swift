import MartletConditions
import MartletAuthentication
public import MartletCore

extension HTTPHost {
    /// Prepares a request without sending it.
    /// - Parameters:
    ///   - path: A path below the base, its segments, or an absolute URL; see `url(for:)`. An `HTTPRequest` supplies
    ///     its URL and its header fields.
    ///   - parameters: The parameters, encoded by ``encoding``: into the URL for GET, HEAD and DELETE and if there is a
    ///     body, otherwise as the body; null for none.
    ///   - body: The body to send unchanged; `nil` to create it from the parameters.
    ///   - headers: The fields of this request, which replace those of the host.
    ///   - timeout: The maximum duration of the whole call; the other timeouts are unchanged.
    ///   - options: The options that override those of the host one by one (``RequestOptions/merged(over:)``).
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidHeader`; `.invalidRequest` if the parameters cannot be
    ///   encoded, with the underlying error. The error of a ``QueryEncoding/serializer``.
    public func prepare<Target: HTTPTarget>(
        _ method: HTTPRequest.Method, _ path: Target = "", parameters: some Encodable, body: HTTPBody? = nil,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions? = nil
    ) throws -> PreparedRequest { try preparing(method, path, parameters, body, headers, timeout, options) }

    /// Prepares a request with parameters written as literals; otherwise like the other function of this name.
    public func prepare<Target: HTTPTarget>(
        _ method: HTTPRequest.Method, _ path: Target = "", parameters: ParameterValue = .null, body: HTTPBody? = nil,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions? = nil
    ) throws -> PreparedRequest { try preparing(method, path, parameters, body, headers, timeout, options) }

    package func preparing(
        _ method: HTTPRequest.Method?, _ path: some HTTPTarget, _ parameters: some Encodable, _ body: HTTPBody?,
        _ headers: HTTPHeaders, _ timeout: Duration?, _ options: RequestOptions?, _ validate: ResponseValidator? = nil,
        inURL: Bool = false
    ) throws -> PreparedRequest {
        let target = path.httpTarget
        let method = method ?? target.method ?? (body == nil ? .get : .post)
        var (url, headers) = (base, headers)
        switch target {
        case .text(let path): url = try self.url(for: path)
        case .segments(let segments): url = try self.url(for: segments)
        case .url(let given): url = given
        case .request(let request):
            guard request.path != "*" else { throw makeError("OPTIONS * has no path: send it with the session") }
            url = try HTTPSession.url(of: request)
            headers.fill(from: request.headerFields)
        }
        let isAtHome = isHome(url)
        var options = self.options(merging: options, isAtHome: isAtHome).limited(to: timeout)
        if let validate { options.validator = validate }
        if isAtHome, options.authentication == nil { options.authentication = authentication.map(restricted) }
        if let user = url.user {
            if options.authentication == nil {
                options.authentication = AuthenticationSettings(
                    credentials: .basic(user: user, password: url.password ?? ""))
            }
            url = url.withoutUserInfo
        }
        var body = body
        if inURL || body != nil || encoding.methodsWithParametersInURL.contains(method) {
            url = try encoded(method, url) { try encoding.url(url, adding: parameters, by: encoder) }
        } else {
            body = try encoded(method, url) { try encoding.body(for: parameters, by: encoder) }
        }
        let fields = try fields(headers.checked(url), with: body ?? .none, options, isAtHome: isAtHome)
        if isAtHome { restrictToOrigin(&options) }
        return PreparedRequest(
            request: HTTPRequest(method: method, url: url, headers: fields), body: body ?? .none, options: options,
            url: url)
    }

    private func fields(_ own: HTTPFields, with body: HTTPBody, _ options: RequestOptions, isAtHome: Bool)
        throws(HTTPError) -> HTTPFields
    {
        var fields = own
        for field in try headers.checked(base)
        where !own.contains(field.name) && !options.omittedFields.contains(field.name) {
            guard isAtHome || HTTPFields.nonSecretNames.contains(field.name) else { continue }
            // The type of the body is more specific than a default for all requests.
            if field.name == .contentType, body.contentType != nil { continue }
            fields.append(field)
        }
        return fields
    }

    /// Returns the options of a call merged over the host's. Some options of the host apply only at its origin.
    private func options(merging own: RequestOptions?, isAtHome: Bool) -> RequestOptions {
        var base = options
        if let authentication = base.authentication {
            base.authentication = isAtHome ? restricted(authentication) : nil
        }
        if !isAtHome {
            if base.idempotencyKey != nil { base.idempotencyKey = nil }
            if !base.trailers.isEmpty { base.trailers = HTTPHeaders() }
        }
        return own?.merged(over: base) ?? base
    }

    /// The names of the host's fields that are sent only to its origin.
    package var secretFieldNames: Set<HTTPField.Name> {
        Set(headers.lazy.map(\.name)).subtracting(HTTPFields.nonSecretNames)
    }

    /// Adds the host's fields that a request lacks, if its URL has the base's origin. Use it in the closures of a
    /// download manager or an offline queue that add fields which must not be written to disk.
    public func addHeaders(to fields: inout HTTPHeaders, for url: HTTPURL) {
        if isHome(url) { fields.fill(from: headers.fields) }
    }

    /// Whether a URL has the origin of the base, or the one at which a feature such as HSTS requests the base.
    private func isHome(_ url: HTTPURL) -> Bool {
        url.origin == base.origin || url.origin == session.settings.effective(base, options).origin
    }

    /// Returns credentials whose handler does not answer the challenges of other origins after a redirect.
    private func restricted(_ authentication: AuthenticationSettings) -> AuthenticationSettings {
        let policy = options.redirects ?? session.configuration.redirects
        guard let handler = authentication.handler, !policy.sendsCredentialsCrossOrigin else { return authentication }
        let origins = [base.origin, session.settings.effective(base, options).origin]
        var restricted = authentication
        restricted.handler = { try await origins.contains($0.origin) ? handler($0) : nil }
        return restricted
    }

    /// Makes redirects to other origins drop the fields and trailers of the host.
    private func restrictToOrigin(_ options: inout RequestOptions) {
        let names = secretFieldNames.union(self.options.trailers.lazy.map(\.name))
        guard !names.isEmpty else { return }
        var policy = options.redirects ?? session.configuration.redirects
        guard policy.followsRedirects, !policy.sendsCredentialsCrossOrigin, !names.isSubset(of: policy.fieldsOfOrigin)
        else { return }
        policy.secretFields.formUnion(names)
        options.redirects = policy
    }

    private func encoded<Value>(_ method: HTTPRequest.Method, _ url: HTTPURL, _ encode: () throws -> Value) throws
        -> Value
    {
        do { return try encode() } catch let error as HTTPURL.ParseError {
            throw HTTPError(
                .invalidURL, phase: .preparing, message: error.description, method: method, url: url, underlying: error)
        } catch {
            if encoding.query.serializer != nil, !(error is ParameterError), !(error is EncodingError) { throw error }
            throw HTTPSession.invalidQuery(error, url, method)
        }
    }

    /// Returns an error in the preparation of a request.
    func makeError(_ message: String, _ underlying: (any Error)? = nil) -> HTTPError {
        HTTPError(.invalidURL, phase: .preparing, message: message, url: base, underlying: underlying)
    }
}

/// A prepared request of a host, which the host's session or another one can send.
///
/// ```swift
/// let prepared = try api.prepare(.post, "posts", parameters: draft)
/// let exchange = try await session.send(
///     prepared.request, body: prepared.body, options: prepared.options)
/// ```
public struct PreparedRequest: Sendable {
    /// The head, with the host's fields.
    public var request: HTTPRequest
    /// The body of the request.
    public var body: HTTPBody
    /// The options of the call, with the host's credentials if they apply to this request.
    public var options: RequestOptions
    /// The URL of the request.
    let url: HTTPURL
}

extension PreparedRequest: CustomStringConvertible, CustomReflectable {
    /// The method and the origin, without the path and the query.
    public var description: String { "\(request.method.rawValue) \(url.origin)" }
    /// The mirror, with the same content as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
