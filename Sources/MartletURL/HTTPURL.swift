import Synchronization

/// An absolute `http` or `https` URL, parsed once and strictly, so that every layer sees the same host.
///
/// Results follow the WHATWG URL Standard: hosts are lower-cased and IDNA-encoded, and IPv4 addresses in any spelling
/// become dotted quads. Dot segments and the default port are removed, and the path is never empty. Some input that
/// causes only a warning in the standard is an error here, because attackers use it: control characters, tabs, line
/// breaks and backslashes anywhere, spaces at either end, anything but exactly `//` after the scheme, encoded control
/// characters in user info, IPv6 zones.
///
/// Path, query and fragment stay percent-encoded. Valid encodings are preserved as written (`%2f` stays `%2f`).
/// Characters that a component does not allow are encoded in UTF-8: `ä` becomes `%C3%A4`, a blank `%20`, and a `%`
/// without two hex digits `%25`. In the host, `ä` becomes part of an A-label (`xn--…`), and a blank is an error.
///
/// Two URLs are equal if their components are. Parsing takes time linear in the input.
public struct HTTPURL: Hashable, Sendable {
    /// The maximum length of the input in UTF-8 and of the serialized URL: 65,536 bytes (64 KiB).
    ///
    /// It prevents a long `Location` from making every later copy and log line expensive.
    public static let lengthLimit = 65_536
    /// The components and the strings derived from them. They are one object, so that a copy costs one reference.
    let components: Components

    /// The scheme: http or https.
    public var scheme: Scheme { components.parts.scheme }
    /// The host in ASCII and lower case: a name with A-labels, a dotted quad, or an IPv6 address without brackets in
    /// the form of RFC 5952. A trailing dot is preserved, as in the WHATWG URL Standard.
    public var host: String { components.parts.host }
    /// The port as written, 1–65535; `nil` if it was omitted or is the scheme's default.
    public var explicitPort: Int? { components.parts.explicitPort }
    /// The path, percent-encoded, beginning with `/`.
    public var path: String { components.parts.path }
    /// The query, percent-encoded, without `?`; `nil` if it is missing, which differs from an empty one.
    public var query: String? { components.parts.query }
    /// The fragment, percent-encoded, without `#`; `nil` if it is missing. It is never sent.
    public var fragment: String? { components.parts.fragment }
    /// The kind of ``host``.
    package var hostKind: HostKind { components.parts.hostKind }
    /// The user name and password in their percent-encoded form.
    package var userInfo: UserInfo? { components.parts.userInfo }

    /// The kinds of a host.
    package enum HostKind: Hashable, Sendable {
        case name
        case ipv4
        case ipv6
    }

    /// The user name and password, percent-encoded; at least one of them is not empty.
    package struct UserInfo: Hashable, Sendable {
        package let user: String
        package let password: String?

        package init(user: String, password: String?) { (self.user, self.password) = (user, password) }
    }

    /// The components of a URL.
    struct Parts: Hashable, Sendable {
        var scheme: Scheme
        var userInfo: UserInfo?
        var host: String
        var hostKind: HostKind
        var explicitPort: Int?
        var path: String
        var query: String?
        var fragment: String?
    }

    /// The components of a URL, and the strings that requests need, created once.
    final class Components: Sendable {
        let parts: Parts
        let hostFieldValue: String
        let requestTarget: String
        /// The absolute form, created on first use: most URLs never need it.
        private let form = Mutex<String?>(nil)

        init(_ parts: Parts) {
            self.parts = parts
            let bracketed = parts.hostKind == .ipv6 ? "[\(parts.host)]" : parts.host
            hostFieldValue = parts.explicitPort.map { "\(bracketed):\($0)" } ?? bracketed
            requestTarget = parts.query.map { "\(parts.path)?\($0)" } ?? parts.path
        }

        var absoluteForm: String {
            if let form = form.withLock({ $0 }) { return form }
            let made = "\(parts.scheme)://\(hostFieldValue)\(requestTarget)"
            form.withLock { $0 = made }
            return made
        }
    }

    // MARK: Making

    /// Parses an absolute URL.
    ///
    /// - Parameters:
    ///   - string: The URL, with a scheme, of at most ``lengthLimit`` bytes.
    ///   - pathAsIs: Whether `.` and `..` segments stay in the path instead of being removed; `false` by default.
    /// - Throws: ``ParseError``, with the position of the error in `string`.
    public init(_ string: String, pathAsIs: Bool = false) throws(ParseError) {
        do throws(RawURLParseError) {
            var parser = try URLParser(string, pathAsIs: pathAsIs)
            self = try parser.absoluteURL()
        } catch { throw error.located(in: string) }
    }

    /// Resolves a reference that was found at this URL (RFC 3986 §5.2, WHATWG URL Standard).
    ///
    /// Accepts `//host/path`, `/path`, `path`, `?query`, `#fragment`, the empty string and absolute URLs. User info is
    /// preserved unless the reference has a host. The fragment is always that of the reference.
    ///
    /// - Parameter reference: The reference, at most ``lengthLimit`` bytes.
    /// - Throws: ``ParseError`` with the position of the error in `reference`.
    public func resolving(_ reference: String) throws(ParseError) -> HTTPURL {
        do throws(RawURLParseError) {
            var parser = try URLParser(reference, pathAsIs: false)
            return try parser.reference(base: self)
        } catch { throw error.located(in: reference) }
    }

    /// Creates a URL from components that are in their final form.
    package init(
        scheme: Scheme, userInfo: UserInfo?, host: String, hostKind: HostKind, explicitPort: Int?, path: String,
        query: String?, fragment: String?
    ) {
        self.init(
            Parts(
                scheme: scheme, userInfo: userInfo, host: host, hostKind: hostKind,
                explicitPort: explicitPort == scheme.defaultPort ? nil : explicitPort, path: path, query: query,
                fragment: fragment))
    }

    init(_ parts: Parts) { components = Components(parts) }

    private func with(_ change: (inout Parts) -> Void) -> HTTPURL {
        var parts = components.parts
        change(&parts)
        return HTTPURL(parts)
    }

    /// The same URL without user name and password.
    public var withoutUserInfo: HTTPURL { userInfo == nil ? self : with { $0.userInfo = nil } }

    /// Returns the same URL with this user info.
    package func with(_ userInfo: UserInfo) -> HTTPURL { with { $0.userInfo = userInfo } }

    /// The same URL without fragment, for example as the key of a page in an index.
    public var withoutFragment: HTTPURL { fragment == nil ? self : with { $0.fragment = nil } }

    /// Returns this URL, with the fragment of another URL if it has none, as in redirects (RFC 9110 §10.2.2).
    package func inheritingFragment(of other: HTTPURL) -> HTTPURL {
        guard fragment == nil, let inherited = other.fragment else { return self }
        return with { $0.fragment = inherited }
    }

    /// Returns the same URL with segments added to the end of its path, each percent-encoded so that it stays one.
    package func appending(segments: [String]) throws(ParseError) -> HTTPURL {
        var path = Array(self.path.utf8)
        for (index, segment) in segments.enumerated() {
            guard !["", ".", ".."].contains(segment) else {
                throw ParseError(
                    code: .invalidSegment, offset: 0,
                    message: "segment \(index + 1) of the path is “\(segment)”, which would name another resource")
            }
            if path.last != UInt8(ascii: "/") { path.append(UInt8(ascii: "/")) }
            PercentEncoding.append(segment, escaping: PercentEncoding.segmentSet, to: &path)
        }
        return try with { $0.path = String(decoding: path, as: UTF8.self) }.checkedLength(after: self)
    }

    /// Returns the same URL with items added to the end of its query.
    ///
    /// Names and values are encoded as in a form (``FormEncoding``), but with `%20` for a space, which all servers
    /// decode in the same way. An item without a value is written as its name.
    ///
    /// - Throws: ``ParseError/Code/tooLong`` above ``lengthLimit``; the offset is the start of the added part.
    public func appending(queryItems: [QueryItem]) throws(ParseError) -> HTTPURL {
        try appending(encodedQuery: FormEncoding.encoded(queryItems, space: .percentEncoded))
    }

    /// Returns this URL with text added to the end of its query, joined by `&`.
    ///
    /// - Parameter query: Percent-encoded text; characters that are not allowed in a query are encoded.
    /// - Throws: The errors of ``appending(queryItems:)``.
    package func appending(encodedQuery query: String) throws(ParseError) -> HTTPURL {
        guard !query.isEmpty else { return self }
        let added = PercentEncoding.encoded(ArraySlice(query.utf8), set: PercentEncoding.querySet)
        let joined = self.query.map { $0.isEmpty ? added : "\($0)&\(added)" } ?? added
        return try with { $0.query = joined }.checkedLength(after: self)
    }

    /// Returns this URL, which was made by adding to `base`, if it is not too long.
    private func checkedLength(after base: HTTPURL) throws(ParseError) -> HTTPURL {
        guard serializedLength > HTTPURL.lengthLimit else { return self }
        throw ParseError(
            code: .tooLong, offset: base.absoluteForm.count,
            message: "the URL would be longer than \(HTTPURL.lengthLimit) bytes with its added part")
    }

    /// Whether all components of two URLs are equal.
    public static func == (left: HTTPURL, right: HTTPURL) -> Bool {
        left.components === right.components || left.components.parts == right.components.parts
    }

    /// Hashes all components of the URL.
    public func hash(into hasher: inout Hasher) { hasher.combine(components.parts) }

    // MARK: Forms

    /// The port to connect to, 1–65535: the explicit one, else the scheme's default.
    public var port: Int { explicitPort ?? scheme.defaultPort }
    /// Whether the host is an IPv4 or IPv6 address rather than a name.
    public var isIPLiteral: Bool { hostKind != .name }
    /// Whether the host is an IPv6 address.
    public var isIPv6Literal: Bool { hostKind == .ipv6 }
    /// The user name, percent-decoded; `nil` without user info. Empty if only a password was given.
    public var user: String? { userInfo.map { PercentEncoding.decoded($0.user) } }
    /// The password, percent-decoded; `nil` without a password. Keep it out of logs.
    public var password: String? { userInfo?.password.map { PercentEncoding.decoded($0) } }
    /// The scheme, host and port of the URL.
    public var origin: Origin { Origin(scheme: scheme, host: host, port: port) }
    /// The path and query, as in a request line to the origin (RFC 9112 §3.2.1).
    public var requestTarget: String { components.requestTarget }
    /// The URL without user info and fragment, as in a request line to a proxy (RFC 9112 §3.2.2).
    public var absoluteForm: String { components.absoluteForm }
    /// The value of the `Host` field (RFC 9110 §7.2): IPv6 in brackets, the port only if it is not the default.
    public var hostFieldValue: String { components.hostFieldValue }
    /// The whole URL, including password and fragment. Keep it out of logs; use ``redacted`` there.
    public var absoluteString: String { serialized { $0 } }

    /// The whole URL with `***` instead of the password and of the values for the names in ``secretQueryNames``, in its
    /// query and its fragment.
    public var redacted: String { hidingSecrets.serialized { _ in "***" } }

    /// Names of query and form items that commonly contain secrets, in lower case, such as `access_token` and
    /// `x-amz-signature`.
    public static let secretQueryNames: Set<String> = [
        "access_token", "api_key", "apikey", "assertion", "auth", "client_assertion", "client_secret", "code",
        "id_token", "key", "passwd", "password", "refresh_token", "secret", "sig", "signature", "token",
        "x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-goog-credential", "x-goog-signature",
    ]

    /// The URL without user info and fragment, and with `***` for secret values of its query, as in errors and logs.
    package var withoutSecrets: HTTPURL {
        let url = userInfo == nil && fragment == nil ? self : with { ($0.userInfo, $0.fragment) = (nil, nil) }
        return url.hidingSecrets
    }

    private var hidingSecrets: HTTPURL {
        func masked(_ items: String?) -> String? {
            guard let items, items.utf8.contains(UInt8(ascii: "=")) else { return items }
            return HTTPURL.masked(items) { HTTPURL.isSecret($0, among: HTTPURL.secretQueryNames) }
        }
        let (shownQuery, shownFragment) = (masked(query), masked(fragment))
        guard shownQuery != query || shownFragment != fragment else { return self }
        return with { ($0.query, $0.fragment) = (shownQuery, shownFragment) }
    }

    /// Whether the items with a name, given in lower case, have secret values.
    /// - Parameter names: The secret names. They also count in brackets, as in `user[password]`.
    package static func isSecret(_ name: String, among names: Set<String>) -> Bool {
        names.contains(name)
            || name.hasSuffix("]")
                && name.split(whereSeparator: { $0 == "[" || $0 == "]" }).contains { names.contains(String($0)) }
    }

    /// Returns a query or a form with `***` instead of the secret values.
    /// - Parameter isSecret: Whether the items with a name, given in lower case, have secret values.
    package static func masked(_ query: String, where isSecret: (String) -> Bool) -> String {
        let pairs = query.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        return pairs.map { pair -> String in
            let whole = String(Substring(pair))
            guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else { return whole }
            let name = String(Substring(pair[..<equals]))
            return isSecret(PercentEncoding.decoded(name).lowercased()) ? "\(name)=***" : whole
        }.joined(separator: "&")
    }

    /// An upper bound of the number of bytes of ``absoluteString``.
    var serializedLength: Int {
        let fixed = scheme.rawValue.utf8.count + host.utf8.count + path.utf8.count + "://@[]:65535?#:".utf8.count
        let credentials = userInfo.map { $0.user.utf8.count + ($0.password?.utf8.count ?? 0) } ?? 0
        return fixed + credentials + (query?.utf8.count ?? 0) + (fragment?.utf8.count ?? 0)
    }

    private func serialized(password: (String) -> String) -> String {
        let credentials =
            userInfo.map { info in info.password.map { "\(info.user):\(password($0))@" } ?? "\(info.user)@" } ?? ""
        let suffix = fragment.map { "#\($0)" } ?? ""
        return "\(scheme)://\(credentials)\(hostFieldValue)\(requestTarget)\(suffix)"
    }
}

extension HTTPURL {
    /// The scheme of a URL. Martlet supports these two (RFC 9110 §4.2).
    public enum Scheme: String, Hashable, Sendable, Codable, CaseIterable, CustomStringConvertible {
        /// Plain HTTP over TCP (RFC 9110 §4.2.1).
        case http
        /// HTTP over TLS (RFC 9110 §4.2.2).
        case https

        /// The default port of the scheme: 80 or 443.
        public var defaultPort: Int { self == .http ? 80 : 443 }
        /// The scheme in lower case, without the colon.
        public var description: String { rawValue }
    }

    /// The scheme, host and port of a URL. Credentials for one origin are not sent to another (RFC 6454 §4).
    ///
    /// Hosts are compared in the parser's form: lower case, A-labels, canonical addresses. A trailing dot is part of
    /// the host, as in the WHATWG URL Standard: `a.com.` and `a.com` are different origins.
    public struct Origin: Hashable, Sendable, CustomStringConvertible {
        /// The scheme: http or https.
        public let scheme: Scheme
        /// The host as in ``HTTPURL/host``: ASCII, IPv6 without brackets.
        public let host: String
        /// The port, 1–65535; the scheme's default if the URL has none.
        public let port: Int

        /// Creates an origin from its parts.
        package init(scheme: Scheme, host: String, port: Int) {
            (self.scheme, self.host, self.port) = (scheme, host, port)
        }

        /// The origin as `https://host:port`, always with the port, and with an IPv6 address in brackets.
        public var description: String {
            // Only an IPv6 address contains a colon.
            let isIPv6 = host.utf8.contains(UInt8(ascii: ":"))
            return "\(scheme)://\(isIPv6 ? "[\(host)]" : host):\(port)"
        }
    }

    /// The reason why a string is not an accepted URL, and the position of the error.
    ///
    /// The text never repeats user info, path or query: rejected input may contain a secret.
    public struct ParseError: Error, Hashable, Sendable, CustomStringConvertible {
        /// The kinds of error.
        public enum Code: String, Hashable, Sendable, CaseIterable {
            /// The string is empty.
            case empty
            /// The URL is longer than ``HTTPURL/lengthLimit`` bytes, as given or after encoding.
            case tooLong
            /// The string does not begin with `http://` or `https://`.
            case missingScheme
            /// The scheme is neither http nor https.
            case unsupportedScheme
            /// The scheme is not followed by `//`.
            case missingAuthority
            /// The string contains a tab, line break or other control character, a backslash, or a space at either end.
            case forbiddenCharacter
            /// The user info, once decoded, is not UTF-8 or contains control characters.
            case invalidUserInfo
            /// No host follows `//` or `@`.
            case emptyHost
            /// The host contains a forbidden character, written directly or percent-encoded.
            case forbiddenHostCharacter
            /// The host name violates IDNA (UTS #46) or has an empty label.
            case invalidHostName
            /// A label is longer than 63 characters or the name is longer than 253 (RFC 1035 §2.3.4).
            case hostNameTooLong
            /// The last label is a number, but the host is not an IPv4 address.
            case invalidIPv4Address
            /// The text in brackets is not an IPv6 address.
            case invalidIPv6Address
            /// An IPv6 address has a zone (`%eth0`), which is valid only on one machine.
            case zoneNotSupported
            /// The port has other characters than digits, or is not in 1–65535.
            case invalidPort
            /// A segment to append is empty, `.` or `..`.
            case invalidSegment
        }

        /// The kind of error.
        public let code: Code
        /// The position in the input, counted in Swift `Character`s from 0; the length of the input if something is
        /// missing at the end.
        public let offset: Int
        /// The error and its remedy, without the position.
        public let message: String

        package init(code: Code, offset: Int, message: String) {
            (self.code, self.offset, self.message) = (code, offset, message)
        }

        /// The message and the position, such as `port 65536 is out of range 1–65535 at character 15`. An empty string,
        /// a missing or unsupported scheme and a segment need no position.
        public var description: String {
            switch code {
            case .empty, .missingScheme, .unsupportedScheme, .invalidSegment: message
            default: "\(message) at character \(offset)"
            }
        }
    }
}

extension HTTPURL: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL as in ``redacted``: without its secrets.
    public var description: String { redacted }
    /// The URL as in ``redacted``: without its secrets.
    public var debugDescription: String { redacted }

    /// A mirror with only ``redacted``, so that `dump` does not print secrets.
    public var customMirror: Mirror { Mirror(self, children: ["redacted": redacted]) }
}

extension HTTPURL: Codable {
    /// Decodes a URL from a single string.
    ///
    /// - Throws: `DecodingError.dataCorrupted` with the text of the ``ParseError``.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let string = try container.decode(String.self)
        do throws(ParseError) {
            // Dot segments that remained after the first parse are intended.
            try self.init(string, pathAsIs: true)
        } catch { throw DecodingError.dataCorruptedError(in: container, debugDescription: error.description) }
    }

    /// Encodes the URL as a single string, including its password, so that decoding returns an equal URL.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(absoluteString)
    }
}
