public import MartletAuthentication
public import MartletCore
import MartletFeatureSettings
public import MartletConditions
import FoundationEssentials

/// A service: its base URL, and the settings that its calls share.
///
/// ```swift
/// let api = try session.host("https://api.example.com/v2", encoding: .json)
/// let page: Page = try await api.get("posts", query: ["limit": 20]).decode()
/// ```
///
/// A path is relative to the base, with or without a leading slash: with the base above, `posts` and `/posts` are both
/// `https://api.example.com/v2/posts`. The empty path is the unchanged base, and `/` the base with a trailing slash. A
/// query in the path is preserved, and parameters are appended to it. A path with a `#`, or one that would leave the
/// base by `..` or two leading slashes, is rejected. An absolute URL with its scheme is used unchanged.
///
/// Text from other sources belongs in a list of segments. Each is percent-encoded and stays one segment:
///
/// ```swift
/// let file = try await api.get(["files", "a/b #1.txt"])  // /v2/files/a%2Fb%20%231.txt
/// let user = try await api.get(.path("users", 42))
/// ```
///
/// The secrets of the service are sent only to it. An absolute URL or a redirect to another scheme, host or port
/// receives neither ``authentication`` nor any of ``headers`` except `Accept`, `Accept-Language`, `Accept-Encoding` and
/// `User-Agent`. Fields and options of the call itself are sent, as with any request.
///
/// A host is a value that holds its session. ``with(_:)`` makes a copy with changed settings.
public struct HTTPHost: Sendable {
    /// The base URL as given, without user name and password.
    public let base: HTTPURL
    /// The session that sends the requests.
    public var session: HTTPSession
    /// The fields of each request that does not set them itself. The type of a body overrides a `Content-Type`.
    public var headers: HTTPHeaders
    /// The encoding of parameters into the URL or the body.
    public var encoding: ParameterEncoding
    /// The options of calls, which override those of the session. Options of a call override them one by one
    /// (``RequestOptions/merged(over:)``). ``RequestOptions/authentication``, ``RequestOptions/idempotencyKey`` and
    /// ``RequestOptions/trailers`` apply only at the base's origin.
    public var options: RequestOptions
    /// The credentials for the service's challenges, unless a call has its own; `nil` for those of the session.
    public var authentication: AuthenticationSettings?

    var validatesExplicitly: Bool?

    /// Creates a service at a URL.
    /// - Parameters:
    ///   - base: A URL without query and fragment. Its user name and password become ``credentials``.
    ///   - headers: The fields of each request that does not set them itself.
    ///   - encoding: The encoding of parameters; forms by default.
    ///   - options: The options of calls, which override the session's.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL` for a base with a query or a fragment.
    public init(
        _ base: HTTPURL, session: HTTPSession, headers: HTTPHeaders = HTTPHeaders(),
        encoding: ParameterEncoding = .form, options: RequestOptions = RequestOptions()
    ) throws(HTTPError) {
        self.base = base.withoutUserInfo
        (self.session, self.headers, self.encoding, self.options) = (session, headers, encoding, options)
        if let user = base.user { credentials = .basic(user: user, password: base.password ?? "") }
        guard base.query == nil, base.fragment == nil else {
            throw makeError("the base URL of a host must not have a query or a fragment")
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

    /// The TLS settings for the service's host, stored under its name in the ``TLSHostOverrides`` of the session.
    /// Connections that were opened with other settings are not used.
    public var tls: TLSHostSettings? {
        get { session.configuration.tls.hosts[base.host] }
        set { session = session.with { $0.tls.hosts[base.host] = newValue } }
    }

    /// The encoder for the values of `HTTPBody.json(_:)`; by default the session's. If one was set, it is also used for
    /// JSON parameters, and for the names and dates of queries and forms (``ParameterEncoding``).
    public var encoder: BodyEncoder {
        get { session.configuration.encoder }
        set { session = session.with { $0.encoder = newValue } }
    }

    /// The decoder for the values of responses, also of endpoints and streams; by default the session's.
    public var decoder: BodyDecoder {
        get { session.configuration.decoder }
        set { session = session.with { $0.decoder = newValue } }
    }

    /// The mapper from errors of this host's calls to the service's own errors; by default the session's.
    public var errors: ErrorMapper? {
        get { session.configuration.errors }
        set { session = session.with { $0.errors = newValue } }
    }

    /// Whether a status that is not 2xx makes calls throw an error, with the code `.unacceptableStatus` and the
    /// exchange. By default `true` if ``errors`` is set, because the mapper needs these errors. Downloads to a file
    /// always throw it, and endpoints have their own ``HTTPEndpoint/validatesStatus``.
    public var validatesStatus: Bool {
        get { validatesExplicitly ?? (errors != nil) }
        set { validatesExplicitly = newValue }
    }

    /// Returns a host with other settings, at the same URL.
    public func with(_ change: (inout HTTPHost) -> Void) -> HTTPHost {
        var changed = self
        change(&changed)
        return changed
    }
}

extension HTTPHost: CustomStringConvertible, CustomReflectable {
    /// The base URL, without fields and credentials.
    public var description: String { base.description }
    /// The mirror, with the same content as ``description``.
    public var customMirror: Mirror { Mirror(self, children: ["base": base.description]) }
}

extension HTTPSession {
    /// Creates a service at an absolute URL, with its settings in one place.
    ///
    /// ```swift
    /// let api = try session.host("https://api.example.com/v2") {
    ///     $0.encoder = .json(keys: .snakeCase, dates: .iso8601)
    ///     $0.decoder = .json(keys: .snakeCase, dates: .iso8601)
    ///     $0.authentication = .bearer(token) { try await identity.post("token").text }
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

    /// Creates a service by the name of its host.
    /// - Parameters:
    ///   - name: A host name or an IP address; an IPv6 address with or without brackets.
    ///   - port: The port, 1–65535; `nil` for the scheme's default.
    ///   - path: The path of the base, with or without a leading slash.
    ///   - isSecure: Whether the service uses https; `true` by default.
    /// - Throws: The errors of ``host(_:headers:encoding:options:_:)``.
    public nonisolated func host(
        named name: String, port: Int? = nil, path: String = "", isSecure: Bool = true,
        headers: HTTPHeaders = HTTPHeaders(), encoding: ParameterEncoding = .form,
        options: RequestOptions = RequestOptions(), _ configure: (inout HTTPHost) -> Void = { _ in }
    ) throws(HTTPError) -> HTTPHost {
        let bare = name.hasPrefix("[") && name.hasSuffix("]") ? String(name.dropFirst().dropLast()) : name
        let isAddress = bare.utf8.contains(UInt8(ascii: ":"))
        // In the joined URL, a delimiter within the host name would change the other parts of the URL.
        guard !bare.utf8.contains(where: { "/?#@\\[]".utf8.contains($0) }), isAddress || bare == name else {
            let reason = "give a name or an IP address, without scheme, user, port and path"
            let message = "invalid host name “\(HTTPSession.withoutSecrets(name))”: \(reason)"
            throw HTTPError(.invalidURL, phase: .preparing, message: message)
        }
        let authority = (isAddress ? "[\(bare)]" : bare) + (port.map { ":\($0)" } ?? "")
        let below = path.isEmpty || path.hasPrefix("/") ? path : "/\(path)"
        return try host(
            "\(isSecure ? "https" : "http")://\(authority)\(below)", headers: headers, encoding: encoding,
            options: options, configure)
    }
}

extension HTTPHost {
    /// Returns the URL of a path of segments below the base; the unchanged base for an empty list.
    /// - Parameter segments: The segments; all characters except ASCII letters, digits and `-._~` are percent-encoded.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL` for an empty segment, `.` and `..`.
    public func url(for segments: [String]) throws(HTTPError) -> HTTPURL {
        do throws(HTTPURL.ParseError) { return try base.appending(segments: segments) } catch {
            throw makeError(error.description, error)
        }
    }

    /// Returns the URL of a path below the base.
    /// - Parameter path: A path below the base, with or without a leading slash and a query; or an absolute URL.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`, also for a path with a `#` or one that leaves the base.
    public func url(for path: String) throws(HTTPError) -> HTTPURL {
        if HTTPHost.isWhole(path) { return try HTTPSession.url(path) }
        guard !path.utf8.contains(UInt8(ascii: "#")) else {
            throw makeError(
                "a # in a path begins a fragment, which is not sent: give the segments, [\"issues\", id], or write %23")
        }
        guard let first = path.utf8.first, first != UInt8(ascii: "?") else {
            return try resolving(path, at: base, shift: 0)
        }
        guard !path.hasPrefix("//") else {
            throw makeError("a path that begins with two slashes would name another host: pass an absolute URL")
        }
        let isRooted = first == UInt8(ascii: "/")
        // After a dot segment, a text that looks like a scheme is part of the path.
        let reference = "./\(isRooted ? path.dropFirst() : path[...])"
        var directory = base
        if directory.path.utf8.last != UInt8(ascii: "/") {
            directory = HTTPURL(
                scheme: base.scheme, userInfo: nil, host: base.host, hostKind: base.hostKind,
                explicitPort: base.explicitPort, path: "\(base.path)/", query: nil, fragment: nil)
        }
        let url = try resolving(reference, at: directory, shift: isRooted ? -1 : -2)
        guard url.path.hasPrefix(directory.path) else {
            throw makeError("the path leads out of \(directory.path): pass an absolute URL")
        }
        return url
    }

    /// Whether a text is an absolute URL rather than a path: a scheme, a colon and two slashes.
    private static func isWhole(_ text: String) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) }
        let scheme = text.utf8.prefix { isLetter($0) || "0123456789+-.".utf8.contains($0) }
        return scheme.first.map(isLetter) == true && text.utf8[scheme.endIndex...].starts(with: "://".utf8)
    }

    private func resolving(_ reference: String, at url: HTTPURL, shift: Int) throws(HTTPError) -> HTTPURL {
        do throws(HTTPURL.ParseError) { return try url.resolving(reference) } catch {
            let error = HTTPURL.ParseError(
                code: error.code, offset: max(0, error.offset + shift), message: error.message)
            throw makeError(error.description, error)
        }
    }

    /// Returns the reachability of the service's host: the first value once it is known, then each changed value after
    /// a change of the network path. It is a hint: calls are not delayed. Proxies are ignored.
    /// - Parameters:
    ///   - monitor: The monitor; by default that of the session's configuration, or else ``NetworkMonitor/system``.
    ///   - probe: The check to make; by default nothing is sent to the host.
    public func reachability(on monitor: NetworkMonitor? = nil, probe: ReachabilityProbe = .route)
        -> some AsyncSequence<HostReachability, Never> & Sendable
    {
        let configuration = session.configuration
        return (monitor ?? configuration.networkMonitor ?? .system).reachability(
            of: base, probe: probe, resolver: configuration.resolver)
    }
}
