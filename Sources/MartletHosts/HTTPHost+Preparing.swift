import MartletNetwork
import MartletContent
import MartletURL
import MartletAuthentication
public import MartletCore
public import HTTPTypes

extension HTTPHost {
    /// Prepares a request without sending it.
    /// - Parameters:
    ///   - path: A path below the base, or a whole URL; see ``url(for:)``.
    ///   - parameters: Encoded by ``encoding``: into the URL for GET, HEAD and DELETE and if there is a body, otherwise as
    ///     the body; null for none.
    ///   - body: Sent as it is; `nil` for one made of the parameters.
    ///   - headers: Fields of this request, which replace those of the host.
    ///   - options: `nil` for those of the host.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidRequest` if the parameters cannot be encoded, with the underlying
    ///   error. The error of a ``QueryEncoding/serializer``.
    public func prepare(
        _ method: HTTPRequest.Method, _ path: String = "", parameters: some Encodable, body: HTTPBody? = nil,
        headers: HTTPFields = HTTPFields(), options: RequestOptions? = nil
    ) throws -> PreparedRequest { try preparing(method, path, parameters, body, headers, options) }

    /// Prepares a request with parameters written as literals; otherwise as the other function of this name.
    public func prepare(
        _ method: HTTPRequest.Method, _ path: String = "", parameters: ParameterValue = .null,
        body: HTTPBody? = nil, headers: HTTPFields = HTTPFields(), options: RequestOptions? = nil
    ) throws -> PreparedRequest { try preparing(method, path, parameters, body, headers, options) }

    func preparing(
        _ method: HTTPRequest.Method, _ path: String, _ parameters: some Encodable, _ body: HTTPBody?,
        _ headers: HTTPFields, _ options: RequestOptions?
    ) throws -> PreparedRequest {
        var url = try url(for: path)
        let isAtHome = url.origin == base.origin
        var options = options ?? defaultOptions(isAtHome: isAtHome)
        if isAtHome, options.authentication == nil { options.authentication = authentication }
        if let user = url.user {
            if options.authentication == nil {
                options.authentication = AuthenticationSettings(
                    credentials: .basic(user: user, password: url.password ?? ""))
            }
            url = url.withoutUserInfo
        }
        var body = body
        if body != nil || encoding.methodsWithParametersInURL.contains(method) {
            url = try encoded { try encoding.url(url, adding: parameters) }
        } else {
            body = try encoded { try encoding.body(for: parameters) }
        }
        let fields = fields(headers, with: body ?? .none, options, isAtHome: isAtHome)
        if isAtHome { restrictToOrigin(&options) }
        return PreparedRequest(
            request: HTTPRequest(method: method, url: url, headerFields: fields), body: body ?? .none,
            options: options, url: url)
    }

    /// Fields that reveal no more than any client would.
    private static let fieldsForAnybody: Set<HTTPField.Name> = [
        .accept, .acceptLanguage, .acceptEncoding, .userAgent,
    ]

    private func fields(
        _ own: HTTPFields, with body: HTTPBody, _ options: RequestOptions, isAtHome: Bool
    ) -> HTTPFields {
        var fields = own
        for field in headers where !own.contains(field.name) && !options.omittedFields.contains(field.name) {
            guard isAtHome || HTTPHost.fieldsForAnybody.contains(field.name) else { continue }
            // The type of the body is more specific than a default for all requests.
            if field.name == .contentType, body.contentType != nil { continue }
            fields.append(field)
        }
        return fields
    }

    private func defaultOptions(isAtHome: Bool) -> RequestOptions {
        var options = options
        if !isAtHome, options.authentication != nil { options.authentication = nil }
        if !isAtHome, options.idempotencyKey != nil { options.idempotencyKey = nil }
        return options
    }

    /// Makes redirects to other origins drop the fields of the host.
    private func restrictToOrigin(_ options: inout RequestOptions) {
        let names = Set(headers.lazy.map(\.name)).subtracting(HTTPHost.fieldsForAnybody)
        guard !names.isEmpty else { return }
        var policy = options.redirects ?? session.configuration.redirects
        guard policy.followsRedirects, !policy.sendsCredentialsCrossOrigin,
            !names.isSubset(of: policy.fieldsOfOrigin)
        else { return }
        policy.secretFields.formUnion(names)
        options.redirects = policy
    }

    private func encoded<Value>(_ encode: () throws -> Value) throws -> Value {
        do {
            return try encode()
        } catch let error as HTTPURL.ParseError {
            throw fault(error.description, error)
        } catch {
            if encoding.query.serializer != nil, !(error is ParameterError), !(error is EncodingError) {
                throw error
            }
            let reason = (error as? ParameterError)?.description ?? "the encoder refused them"
            throw fault("the parameters could not be encoded: \(reason)", error, .invalidRequest)
        }
    }

    /// An error in the preparation of a request.
    func fault(
        _ message: String, _ underlying: (any Error)? = nil, _ code: HTTPError.Code = .invalidURL
    ) -> HTTPError {
        HTTPError(
            code, phase: .preparing, message: message, origin: base.origin.description, underlying: underlying
        )
    }
}

/// A request of a host, ready to be sent by the host's session or another one.
///
/// ```swift
/// let prepared = try api.prepare(.post, "posts", parameters: draft)
/// let exchange = try await session.send(prepared.request, body: prepared.body, options: prepared.options)
/// ```
public struct PreparedRequest: Sendable {
    /// The head, with the host's fields.
    public var request: HTTPRequest
    /// The body.
    public var body: HTTPBody
    /// The options of the call, with the host's credentials if they apply to this request.
    public var options: RequestOptions
    /// The URL of the request.
    let url: HTTPURL
}

extension PreparedRequest: CustomStringConvertible, CustomReflectable {
    /// The method and the origin.
    public var description: String { "\(request.method.rawValue) \(url.origin)" }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
