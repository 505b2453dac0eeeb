import MartletNetwork
import MartletContent
import MartletURL
import MartletAuthentication
public import MartletCore
public import HTTPTypes

extension HTTPHost {
    /// Makes a request of this host's, and sends nothing.
    ///
    /// - Parameters:
    ///   - path: Below the base, or a whole URL; see ``url(for:)``.
    ///   - parameters: Written as ``encoding`` says; null for none.
    ///   - body: Sent as it is; then parameters go into the URL, whatever the method. `nil` for what the parameters make.
    ///   - headers: Fields of this request; they take the place of the host's.
    ///   - options: `nil` for the host's.
    /// - Throws: An ``HTTPError``: `.invalidURL`; `.invalidRequest` where the parameters cannot be encoded, with what their
    ///   encoding threw. What a ``QueryEncoding/serializer`` throws.
    public func prepare(
        _ method: HTTPRequest.Method, _ path: String = "", parameters: some Encodable, body: HTTPBody? = nil,
        headers: HTTPFields = HTTPFields(), options: RequestOptions? = nil
    ) throws -> PreparedRequest { try preparing(method, path, parameters, body, headers, options) }

    /// Makes a request of this host's; else as the other function of this name.
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
        var options = options ?? optionsByDefault(isAtHome: isAtHome)
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
        if isAtHome { keepHome(&options) }
        return PreparedRequest(
            request: HTTPRequest(method: method, url: url, headerFields: fields), body: body ?? .none,
            options: options, url: url)
    }

    // MARK: Fields

    /// What tells nobody more than any client would.
    private static let fieldsForAnybody: Set<HTTPField.Name> = [
        .accept, .acceptLanguage, .acceptEncoding, .userAgent,
    ]

    private func fields(
        _ own: HTTPFields, with body: HTTPBody, _ options: RequestOptions, isAtHome: Bool
    ) -> HTTPFields {
        var fields = own
        for field in headers where !own.contains(field.name) && !options.omittedFields.contains(field.name) {
            guard isAtHome || HTTPHost.fieldsForAnybody.contains(field.name) else { continue }
            // The body knows its type better than a default that was set for all.
            if field.name == .contentType, body.contentType != nil { continue }
            fields.append(field)
        }
        return fields
    }

    private func optionsByDefault(isAtHome: Bool) -> RequestOptions {
        guard !isAtHome, options.authentication != nil || options.idempotencyKey != nil else {
            return options
        }
        var options = options
        options.authentication = nil
        options.idempotencyKey = nil
        return options
    }

    /// Has redirects to other origins leave the host's fields behind.
    private func keepHome(_ options: inout RequestOptions) {
        let names = Set(headers.lazy.map(\.name)).subtracting(HTTPHost.fieldsForAnybody)
        guard !names.isEmpty else { return }
        var policy = options.redirects ?? session.configuration.redirects
        guard policy.isFollowing, !policy.trustsOtherOrigins, !names.isSubset(of: policy.fieldsOfOrigin)
        else { return }
        policy.secretFields.formUnion(names)
        options.redirects = policy
    }

    // MARK: Errors

    private func encoded<Value>(_ encode: () throws -> Value) throws -> Value {
        do {
            return try encode()
        } catch let error as HTTPURL.ParseError {
            throw HTTPError(
                .invalidURL, phase: .preparing, message: error.description, origin: base.origin.description,
                underlying: error)
        } catch {
            if encoding.query.serializer != nil, !(error is ParameterError), !(error is EncodingError) {
                throw error
            }
            let reason = (error as? ParameterError)?.description ?? "the encoder refused them"
            throw HTTPError(
                .invalidRequest, phase: .preparing, message: "the parameters could not be encoded: \(reason)",
                origin: base.origin.description, underlying: error)
        }
    }
}

/// A request of a host's, ready to be sent: by that host's session or whoever takes it.
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
    /// What the call does otherwise than its session. The host's credentials are here, where they are for this request.
    public var options: RequestOptions
    /// Where it goes.
    let url: HTTPURL
}

extension PreparedRequest: CustomStringConvertible, CustomReflectable {
    /// The method and the origin.
    public var description: String { "\(request.method.rawValue) \(url.origin)" }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["description": description]) }
}
