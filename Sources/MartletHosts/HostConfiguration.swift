public import MartletAuthentication
public import MartletCore

/// The settings of a service, without the session that sends its requests.
///
/// ```swift
/// let stored = try JSONEncoder().encode(api.configuration)
/// let read = try JSONDecoder().decode(HostConfiguration.self, from: stored)
/// let again = try HTTPHost(read, session: session)
/// ```
///
/// It can be encoded, without secrets, unless it contains closures. Not included are the settings that belong to the
/// session, such as ``HTTPHost/tls`` and ``HTTPHost/errors``.
public struct HostConfiguration: Sendable {
    /// The URL of the service, without query and fragment.
    public var base: HTTPURL
    /// The fields of each request that does not set them itself.
    public var headers = HTTPHeaders()
    /// The encoding of parameters; forms by default.
    public var encoding = ParameterEncoding.form
    /// The options of calls, which override those of the session.
    public var options = RequestOptions()
    /// The credentials used to reply to the service's challenges; `nil` (the default) for those of the session.
    public var authentication: AuthenticationSettings?
    /// Whether a status that is not 2xx is an error; with `nil` (the default) if the session has an error mapper.
    public var validatesStatus: Bool?

    /// Creates the default settings of a service.
    public init(base: HTTPURL) { self.base = base }
}

extension HTTPHost {
    /// Creates a service with these settings.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL` for a base with a query or a fragment.
    public init(_ configuration: HostConfiguration, session: HTTPSession) throws(HTTPError) {
        try self.init(
            configuration.base, session: session, headers: configuration.headers, encoding: configuration.encoding,
            options: configuration.options)
        if let authentication = configuration.authentication { self.authentication = authentication }
        validatesExplicitly = configuration.validatesStatus
    }

    /// The settings of the service, without its session.
    public var configuration: HostConfiguration {
        var configuration = HostConfiguration(base: base)
        configuration.headers = headers
        configuration.encoding = encoding
        configuration.options = options
        configuration.authentication = authentication
        configuration.validatesStatus = validatesExplicitly
        return configuration
    }
}
