import MartletCredentials
import MartletURL
public import MartletAuthentication
public import MartletCore
public import MartletNetwork
import FoundationEssentials
public import MartletTransport

/// A service: its base URL, and the settings that its calls share.
///
/// ```swift
/// let api = try session.host("https://api.example.com/v2", headers: [.accept: "application/json"], encoding: .json)
/// let page: Page = try await api.get("posts", query: ["tags": ["swift", "linux"], "limit": 20]).decode()
/// ```
///
/// A path is one below the base, with or without a leading slash: with the base above, `posts` and `/posts` are both
/// `https://api.example.com/v2/posts`. The empty path is the base as it was given, and `/` the base with a trailing slash. A
/// query in the path is kept, and parameters follow it. A path that would leave the base, by `..` or two leading slashes, is
/// rejected, and so is a `#`; a whole URL with its scheme is used as it is.
///
/// Text that comes from elsewhere belongs in a list of segments, each of which is percent-encoded and stays one segment:
///
/// ```swift
/// let file = try await api.get(["files", "a/b #1.txt"])  // /v2/files/a%2Fb%20%231.txt
/// ```
///
/// Secrets of the service stay with it: a whole URL or a redirect to another scheme, host or port receives neither
/// ``authentication`` nor any of ``headers`` but `Accept`, `Accept-Language`, `Accept-Encoding` and `User-Agent`. Fields and
/// options of the call itself are sent, as with any request.
///
/// A host is a value that holds its session. ``with(_:)`` makes another with changed settings.
public struct HTTPHost: Sendable {
    /// The URL as it was given, without user name and password.
    public let base: HTTPURL
    /// The session that sends the requests.
    public var session: HTTPSession
    /// Fields of each request that does not set them itself. The type of a body overrides a `Content-Type`.
    public var headers: HTTPHeaders
    /// The encoding of parameters.
    public var encoding: ParameterEncoding
    /// The options of calls, which override those of the session. Options of a call override them one by one
    /// (``RequestOptions/merged(over:)``). ``RequestOptions/authentication``, ``RequestOptions/idempotencyKey`` and
    /// ``RequestOptions/trailers`` stay at the base's origin.
    public var options: RequestOptions
    /// The credentials used to answer the service's challenges; `nil` for those of the session. Those of a call's options
    /// come first.
    public var authentication: AuthenticationSettings?

    var validatesExplicitly: Bool?

    /// Creates a service at a URL.
    /// - Parameters:
    ///   - base: A URL without query and fragment. Its user name and password become ``credentials``.
    ///   - headers: Fields of each request that does not set them itself.
    ///   - encoding: The encoding of parameters; forms by default.
    ///   - options: Options of calls that override the session's.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL` for a base with a query or a fragment.
    public init(
        _ base: HTTPURL, session: HTTPSession, headers: HTTPHeaders = HTTPHeaders(),
        encoding: ParameterEncoding = .form, options: RequestOptions = RequestOptions()
    ) throws(HTTPError) {
        self.base = base.withoutUserInfo
        self.session = session
        self.headers = headers
        self.encoding = encoding
        self.options = options
        if let user = base.user { credentials = .basic(user: user, password: base.password ?? "") }
        guard base.query == nil, base.fragment == nil else {
            throw fault("the base of a host is without query and fragment")
        }
    }

    /// The credentials of ``authentication``, such as a name and a password.
    public var credentials: Credentials? {
        get { authentication?.credentials }
        set {
            if newValue != nil, authentication == nil { authentication = AuthenticationSettings() }
            authentication?.credentials = newValue
        }
    }

    /// The TLS settings for the service's host: a rule of the session for its name (see ``TLSHostOverrides``). Connections that
    /// were made under other rules are not used.
    public var tls: TLSHostSettings? {
        get { session.configuration.tls.hosts[base.host] }
        set { session = session.with { $0.tls.hosts[base.host] = newValue } }
    }

    /// Encodes the values of `HTTPBody.json(_:)` and, if one is set, parameters: those that are sent as JSON, and the names and
    /// dates of queries and forms (``ParameterEncoding``). That of the session unless it is set.
    public var encoder: BodyEncoder {
        get { session.configuration.encoder }
        set { session = session.with { $0.encoder = newValue } }
    }

    /// Decodes the values of responses: those of `decode`, of endpoints and of streams; that of the session unless it is set.
    public var decoder: BodyDecoder {
        get { session.configuration.decoder }
        set { session = session.with { $0.decoder = newValue } }
    }

    /// Maps errors of this host's calls to the service's own errors; that of the session unless it is set.
    public var errors: ErrorMapper? {
        get { session.configuration.errors }
        set { session = session.with { $0.errors = newValue } }
    }

    /// Whether calls throw for a status that is not 2xx, with the code `.unacceptableStatus` and the exchange; by default if
    /// there is an ``errors``, which needs these errors. Downloads to a file and typed endpoints always do.
    public var validatesStatus: Bool {
        get { validatesExplicitly ?? (errors != nil) }
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
    /// The base, without fields and credentials.
    public var description: String { base.description }
    /// The same as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["base": base.description]) }
}

extension HTTPSession {
    /// A service at an absolute URL, with its settings in one place.
    ///
    /// ```swift
    /// let api = try session.host("https://api.example.com/v2") {
    ///     $0.encoder = .json(keys: .snakeCase, dates: .iso8601)
    ///     $0.decoder = .json(keys: .snakeCase, dates: .iso8601)
    ///     $0.authentication = .bearer(token) { try await session.post("https://id.example.com/token").text }
    ///     $0.errors = .decoding(APIProblem.self)
    /// }
    /// ```
    ///
    /// The parameters are those of ``HTTPHost/init(_:session:headers:encoding:options:)``.
    /// - Parameter configure: Changes further settings; it runs once, before this returns.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`, also for a URL without a host.
    public nonisolated func host(
        _ base: some HTTPTarget, headers: HTTPHeaders = HTTPHeaders(), encoding: ParameterEncoding = .form,
        options: RequestOptions = RequestOptions(), _ configure: (inout HTTPHost) -> Void = { _ in }
    ) throws(HTTPError) -> HTTPHost {
        let (url, fields) = try base.httpTarget.partsOfGET()
        var headers = headers
        headers.fill(from: fields)
        return try HTTPHost(url, session: self, headers: headers, encoding: encoding, options: options).with(configure)
    }

    /// A service by the name of its host.
    /// - Parameters:
    ///   - name: A name or an address; an IPv6 address with or without brackets.
    ///   - port: 1–65535; `nil` for that of the scheme.
    ///   - path: The path of the base, with or without a leading slash.
    ///   - isSecure: Whether it uses https; `true` by default.
    /// - Throws: As ``host(_:headers:encoding:options:_:)``.
    public nonisolated func host(
        named name: String, port: Int? = nil, path: String = "", isSecure: Bool = true,
        headers: HTTPHeaders = HTTPHeaders(), encoding: ParameterEncoding = .form,
        options: RequestOptions = RequestOptions(), _ configure: (inout HTTPHost) -> Void = { _ in }
    ) throws(HTTPError) -> HTTPHost {
        let bare = name.hasPrefix("[") && name.hasSuffix("]") ? String(name.dropFirst().dropLast()) : name
        let isAddress = bare.utf8.contains(UInt8(ascii: ":"))
        // Joined to a URL, a part must not reach into the next one.
        guard !bare.utf8.contains(where: { "/?#@\\[]".utf8.contains($0) }), isAddress || bare == name else {
            throw HTTPError(.invalidURL, phase: .preparing, message: "the name of a host is more than a name")
        }
        let authority = (isAddress ? "[\(bare)]" : bare) + (port.map { ":\($0)" } ?? "")
        let below = path.isEmpty || path.hasPrefix("/") ? path : "/\(path)"
        return try host(
            "\(isSecure ? "https" : "http")://\(authority)\(below)", headers: headers, encoding: encoding,
            options: options, configure)
    }
}

extension HTTPHost {
    /// The URL of a path of segments below the base; the base as it was given if there are none.
    /// - Parameter segments: Texts of which all characters but letters, digits and `-._~` are percent-encoded, a `/` and a `%` too.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL` for an empty segment, `.` and `..`, which would name another resource.
    public func url(for segments: [String]) throws(HTTPError) -> HTTPURL {
        for (index, segment) in segments.enumerated() where ["", ".", ".."].contains(segment) {
            throw fault("segment \(index + 1) of the path is “\(segment)”, which would name another resource")
        }
        // A query may have these two; a segment may not.
        let path = segments.map { QueryEncoding.escaped($0).replacing("/", with: "%2F").replacing("?", with: "%3F") }
        return try url(for: path.joined(separator: "/"))
    }

    /// The URL of a path.
    /// - Parameter path: A path below the base, with or without a leading slash and a query; or a whole URL with its scheme.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`, also if dot segments or two leading slashes would lead away
    ///   from the base, and for a `#` in a path.
    public func url(for path: String) throws(HTTPError) -> HTTPURL {
        if HTTPHost.isWhole(path) { return try HTTPSession.url(path) }
        guard !path.utf8.contains(UInt8(ascii: "#")) else {
            throw fault(
                "a # in a path begins a fragment, which is not sent: give the segments, [\"issues\", id], or write %23")
        }
        guard let first = path.utf8.first, first != UInt8(ascii: "?") else {
            return try resolving(path, at: base, shift: 0)
        }
        guard !path.hasPrefix("//") else {
            throw fault("a path with two slashes in front would name another host: give the whole URL")
        }
        let isRooted = first == UInt8(ascii: "/")
        // After a dot segment, a text like a scheme is part of the path.
        let reference = "./\(isRooted ? path.dropFirst() : path[...])"
        var folder = base
        if folder.path.utf8.last != UInt8(ascii: "/") {
            folder = HTTPURL(
                scheme: base.scheme, userInfo: nil, host: base.host, hostKind: base.hostKind,
                explicitPort: base.explicitPort, path: "\(base.path)/", query: nil, fragment: nil)
        }
        let url = try resolving(reference, at: folder, shift: isRooted ? -1 : -2)
        guard url.path.hasPrefix(folder.path) else {
            throw fault("the path leads out of \(folder.path): give the whole URL where that is meant")
        }
        return url
    }

    /// Whether a text is a whole URL rather than a path: a scheme, a colon and two slashes.
    private static func isWhole(_ text: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
        let scheme = text.utf8.prefix { isLetter($0) || "0123456789+-.".utf8.contains($0) }
        return scheme.first.map(isLetter) == true && text.utf8[scheme.endIndex...].starts(with: "://".utf8)
    }

    private func resolving(_ reference: String, at url: HTTPURL, shift: Int) throws(HTTPError) -> HTTPURL {
        do throws(HTTPURL.ParseError) { return try url.resolving(reference) } catch {
            let error = HTTPURL.ParseError(
                code: error.code, offset: max(0, error.offset + shift), message: error.message)
            throw fault(error.description, error)
        }
    }

    /// Whether the service's host can be reached, as a monitor sees it: the first value once it is known, then each other
    /// value after a change of the network path.
    ///
    /// It is a hint: calls are not held back. The base's own host is checked, without proxies.
    /// - Parameters:
    ///   - monitor: By default that of the session's configuration, or ``NetworkMonitor/system`` if it has none.
    ///   - probe: The check that is made; nothing is sent to the host by default.
    public func reachability(on monitor: NetworkMonitor? = nil, probe: ReachabilityProbe = .route)
        -> some AsyncSequence<HostReachability, Never> & Sendable
    {
        let configuration = session.configuration
        return (monitor ?? configuration.networkMonitor ?? .system).reachability(
            of: base, probe: probe, resolver: configuration.resolver)
    }
}
