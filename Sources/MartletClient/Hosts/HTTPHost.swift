/// A service: the URL it begins at, and what its calls have in common.
///
/// ```swift
/// let api = try session.host("https://api.example.com/v2", headers: [.accept: "application/json"], encoding: .json)
/// let page: Page = try await api.get("posts", parameters: ["tags": ["swift", "linux"], "limit": 20]).decode()
/// ```
///
/// A path is one below the base, with or without a slash in front: with the base above, `posts` and `/posts` are both
/// `https://api.example.com/v2/posts`. The empty path is the base as it was given, and `/` the base with a slash at its end.
/// A query in the path is kept, and parameters come behind it. A path that would leave the base, by `..` or by two slashes
/// in front, is refused; a whole URL with its scheme goes where it says.
///
/// What is meant for the service stays with the service: where a whole URL, or a redirect, leads to another scheme, host or
/// port, it gets neither ``authentication`` nor any of ``headers`` but `Accept`, `Accept-Language`, `Accept-Encoding` and
/// `User-Agent`. What a call sets itself goes along, as with any request.
///
/// It is a value, and holds its session. ``with(_:)`` makes another with other settings.
public struct HTTPHost: Sendable {
    /// The URL as it was given, without user name and password.
    public let base: HTTPURL
    /// Where calls are made.
    public var session: HTTPSession
    /// Fields that each request has unless it sets them itself. A `Content-Type` gives way to that of a body.
    public var headers: HTTPFields
    /// How parameters are written.
    public var encoding: ParameterEncoding
    /// What calls that have no options of their own do otherwise than the session.
    ///
    /// Of these options, ``RequestOptions/authentication`` and ``RequestOptions/idempotencyKey`` stay at the base's origin.
    public var options: RequestOptions
    /// With what the service is answered when it asks who is calling; `nil` for the session's word. Options of a call that
    /// have some go before.
    public var authentication: AuthenticationSettings?

    private var validatesExplicitly: Bool?

    /// A service at a URL.
    /// - Parameters:
    ///   - base: Without query and fragment. A user name and a password in it become ``credentials``.
    ///   - headers: Fields that each request has unless it sets them itself.
    ///   - encoding: How parameters are written; as forms by default.
    ///   - options: What calls do otherwise than the session.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL` where the base has a query or a fragment.
    public init(
        _ base: HTTPURL, session: HTTPSession, headers: HTTPFields = HTTPFields(),
        encoding: ParameterEncoding = .form, options: RequestOptions = RequestOptions()
    ) throws(HTTPError) {
        guard base.query == nil, base.fragment == nil else {
            throw HTTPError(
                .invalidURL, phase: .preparing,
                message: "the base of a host is without query and fragment", origin: base.origin.description)
        }
        self.base = base.withoutUserInfo
        self.session = session
        self.headers = headers
        self.encoding = encoding
        self.options = options
        if let user = base.user { credentials = .basic(user: user, password: base.password ?? "") }
    }

    /// The credentials of ``authentication``, such as a name and a password.
    public var credentials: Credentials? {
        get { authentication?.credentials }
        set {
            if authentication == nil, newValue == nil { return }
            var settings = authentication ?? AuthenticationSettings()
            settings.credentials = newValue
            authentication = settings
        }
    }

    /// What TLS demands and shows where the service's host is concerned: a rule of the session for its name (see
    /// ``TLSHostRules``). Connections made under other rules are not used.
    public var tls: TLSHostSettings? {
        get { session.configuration.tls.hosts[base.host] }
        set { session = session.with { $0.tls.hosts[base.host] = newValue } }
    }

    /// What turns the failures of this host's calls into the service's own errors; the session's unless it is set.
    public var errorMapper: (any HTTPErrorMapping)? {
        get { session.configuration.errorMapper }
        set { session = session.with { $0.errorMapper = newValue } }
    }

    /// Whether calls throw where the status is not 2xx, with the code `.unacceptableStatus` and the exchange; unless it is
    /// set, they do if there is an ``errorMapper``, which would see none of these errors else.
    ///
    /// Downloads to a file and typed endpoints always do.
    public var validatesStatus: Bool {
        get { validatesExplicitly ?? (errorMapper != nil) }
        set { validatesExplicitly = newValue }
    }

    /// A host with other settings, at the same URL.
    public func with(_ change: (inout HTTPHost) -> Void) -> HTTPHost {
        var changed = self
        change(&changed)
        return changed
    }
}

extension HTTPHost: CustomStringConvertible, CustomReflectable {
    /// The base, and nothing of fields and credentials.
    public var description: String { base.description }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["base": base.description]) }
}
