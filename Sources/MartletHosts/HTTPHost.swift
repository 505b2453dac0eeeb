import MartletCredentials
import MartletURL
public import MartletAuthentication
public import MartletCore
public import MartletNetwork
public import HTTPTypes
import FoundationEssentials
public import MartletTransport

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

extension HTTPSession {
    /// A service at a URL, with what its calls have in common.
    ///
    /// - Parameters:
    ///   - base: An absolute URL without query and fragment, such as `https://api.example.com/v2`. A user name and a
    ///     password in it become the host's credentials.
    ///   - headers: Fields that each request has unless it sets them itself.
    ///   - encoding: How parameters are written; as forms by default.
    ///   - options: What calls do otherwise than the session.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`: also where the URL names no host.
    public nonisolated func host(
        _ base: String, headers: HTTPFields = HTTPFields(), encoding: ParameterEncoding = .form,
        options: RequestOptions = RequestOptions()
    ) throws(HTTPError) -> HTTPHost {
        try HTTPHost(
            try HTTPSession.url(base), session: self, headers: headers, encoding: encoding, options: options)
    }

    /// A service by the name of its host.
    ///
    /// - Parameters:
    ///   - name: A name, or an address; an IPv6 address with or without brackets.
    ///   - port: 1–65535; `nil` for the scheme's.
    ///   - path: What all paths are below, with or without a slash in front.
    ///   - isSecure: Whether it is https; `true` by default.
    /// - Throws: As ``host(_:headers:encoding:options:)``.
    public nonisolated func host(
        named name: String, port: Int? = nil, path: String = "", isSecure: Bool = true,
        headers: HTTPFields = HTTPFields(), encoding: ParameterEncoding = .form,
        options: RequestOptions = RequestOptions()
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
            options: options)
    }
}

extension HTTPHost {
    /// The URL of a path.
    ///
    /// - Parameter path: Below the base, with or without a slash in front and with a query if it has one; or a whole URL
    ///   with its scheme.
    /// - Throws: An ``HTTPError`` with the code `.invalidURL`: also where dot segments, or two slashes in front, would lead
    ///   away from the base.
    public func url(for path: String) throws(HTTPError) -> HTTPURL {
        if HTTPHost.isWhole(path) { return try HTTPSession.url(path) }
        switch path.utf8.first {
        case nil, UInt8(ascii: "?"), UInt8(ascii: "#"): return try resolving(path, at: base, shift: 0)
        default: break
        }
        guard !path.hasPrefix("//") else {
            throw fault("a path with two slashes in front would name another host: give the whole URL")
        }
        let isRooted = path.utf8.first == UInt8(ascii: "/")
        // Behind a dot segment, what looks like a scheme is part of the path.
        let reference = "./\(isRooted ? path.dropFirst() : path[...])"
        let folder = base.folder
        let url = try resolving(reference, at: folder, shift: isRooted ? -1 : -2)
        guard url.path.hasPrefix(folder.path) else {
            throw fault("the path leads out of \(folder.path): give the whole URL where that is meant")
        }
        return url
    }

    /// Whether a text is a URL with its scheme, rather than a path: whether it begins with letters, a colon and two slashes.
    private static func isWhole(_ text: String) -> Bool {
        let bytes = text.utf8
        guard let first = bytes.first, (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(first | 0x20),
            let end = bytes.firstIndex(where: { byte in
                !((UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "+-.".utf8.contains(byte))
            })
        else { return false }
        return bytes[end...].starts(with: "://".utf8)
    }

    private func resolving(_ reference: String, at url: HTTPURL, shift: Int) throws(HTTPError) -> HTTPURL {
        do throws(HTTPURL.ParseError) {
            return try url.resolving(reference)
        } catch {
            let error = HTTPURL.ParseError(
                code: error.code, offset: max(0, error.offset + shift), message: error.message)
            throw HTTPError(
                .invalidURL, phase: .preparing, message: error.description, origin: base.origin.description,
                underlying: error)
        }
    }

    private func fault(_ message: String) -> HTTPError {
        HTTPError(.invalidURL, phase: .preparing, message: message, origin: base.origin.description)
    }
}

extension HTTPURL {
    /// The address with a slash at the end of its path.
    var folder: HTTPURL {
        guard path.utf8.last != UInt8(ascii: "/") else { return self }
        return HTTPURL(
            scheme: scheme, userInfo: userInfo, host: host, hostKind: hostKind, explicitPort: explicitPort,
            path: "\(path)/", query: query, fragment: fragment)
    }
}

extension HTTPHost {
    /// Whether the service's host can be reached, as a monitor sees it; the first value as soon as it is known, then another
    /// whenever the path has changed and it is another.
    ///
    /// It is a hint: no call is held back for it. The base's own host is looked at, without proxies.
    /// - Parameters:
    ///   - monitor: By default that of the session's configuration, or ``NetworkMonitor/system`` where it has none.
    ///   - probe: What is done to find out; nothing is sent to the host by default.
    public func reachability(
        on monitor: NetworkMonitor? = nil, probe: ReachabilityProbe = .route
    ) -> some AsyncSequence<HostReachability, Never> & Sendable {
        let configuration = session.configuration
        return (monitor ?? configuration.networkMonitor ?? .system)
            .reachability(of: base, probe: probe, resolver: configuration.resolver)
    }
}
