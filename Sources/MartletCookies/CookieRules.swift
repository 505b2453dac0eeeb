import MartletURL
import FoundationEssentials
import MartletWire

/// The rule that decides whether a site may set a cookie, and with which properties (RFC 6265bis §5.7).
struct CookieAcceptanceRule {
    /// The URL of the response. The `Host` field of the request is not used, because the caller may set it.
    let url: HTTPURL
    /// Whether the connection counts as secure.
    let isSecure: Bool
    /// The public suffixes.
    let suffixes: any PublicSuffixes
    /// The current time.
    let now: Date

    /// Returns the cookie to store.
    func cookie(_ request: SetCookie) throws(CookieRejection.Reason) -> Cookie {
        let (domain, isHostOnly) = try reach(request, CookieHost(url))
        if request.isSecure, !isSecure { throw .insecureOrigin }
        if request.sameSite == .none, !request.isSecure { throw .crossSiteWithoutSecure }
        let path = request.path.flatMap { String(validating: $0, as: UTF8.self) }
        // A path that is not UTF-8 would match no request. It is rejected here, so that the reason is reported.
        guard path != nil || request.path == nil else { throw .invalidPath }
        let defaultPath = CookiePathRule.defaultPath(of: url.path)
        // The length of `Path` is limited. The URL's path is not, and a server chooses it with a redirect.
        guard path != nil || defaultPath.utf8.count <= CookieTextRule.attributeLimit else { throw .invalidPath }
        guard
            CookiePrefixRule.allows(
                request.name, request.value, isSecure: request.isSecure, isHostOnly: isHostOnly, path: path)
        else { throw .prefixNotHonored }
        return Cookie(
            nameBytes: request.name, valueBytes: request.value, domain: domain, isHostOnly: isHostOnly,
            path: path ?? defaultPath, expires: expiry(request), isSecure: request.isSecure,
            isHTTPOnly: request.isHTTPOnly, sameSite: request.sameSite, created: now, lastUsed: now)
    }

    /// Returns the domain to which the cookie is sent, and whether subdomains are excluded.
    private func reach(_ request: SetCookie, _ host: CookieHost) throws(CookieRejection.Reason) -> (
        domain: String, isHostOnly: Bool
    ) {
        guard let bytes = request.domain else { return (host.text, true) }
        guard bytes.allSatisfy({ $0 < 0x80 }) else { throw .invalidDomain }
        let domain = String(decoding: bytes, as: UTF8.self)
        if host.isAddress || suffixes.isPublicSuffix(host.text) {
            // There are no names below an address, and those below a public suffix are other sites.
            guard domain == host.text else { throw .foreignDomain }
            return (host.text, true)
        }
        guard host.matches(domain: domain) else {
            throw suffixes.isPublicSuffix(domain) ? .publicSuffix : .foreignDomain
        }
        // This also rejects domains above the public suffix that are not public suffixes themselves.
        guard let registrable = suffixes.registrableDomain(of: host.text), domain.utf8.count >= registrable.utf8.count
        else { throw .publicSuffix }
        return (domain, false)
    }

    /// Returns the expiry. `Max-Age` takes precedence over `Expires`; a cookie with neither is a session cookie.
    private func expiry(_ request: SetCookie) -> Date? {
        guard let age = request.maximumAge else { return request.expires.map(CookieDate.date) }
        return age <= 0 ? .distantPast : now.addingTimeInterval(Double(age))
    }
}

/// The rule for the paths to which a cookie is sent (RFC 6265bis §5.1.4). Paths are compared without decoding.
enum CookiePathRule {
    private static let slash = UInt8(ascii: "/")

    /// Whether a request's path is a cookie's path or below it. `/foobar` is not below `/foo`.
    static func matches(_ path: String, cookiePath: String) -> Bool {
        let path = path.utf8
        let cookiePath = cookiePath.utf8
        guard path.starts(with: cookiePath) else { return false }
        return path.count == cookiePath.count || cookiePath.last == slash
            || path.dropFirst(cookiePath.count).first == slash
    }

    /// Returns the path of a cookie without a `Path` attribute: the request's path before its last slash, or `/`.
    static func defaultPath(of path: String) -> String {
        let bytes = path.utf8
        guard bytes.first == slash, let last = bytes.lastIndex(of: slash), last > bytes.startIndex else { return "/" }
        return String(path[..<last])
    }
}

/// The requirements of the prefix of a cookie's name, whose letters may have any case (RFC 6265bis §4.1.3, §5.7).
enum CookiePrefixRule {
    /// Whether a cookie satisfies the prefix of its name.
    /// - Parameter path: The path that the cookie specifies; `nil` for the default path.
    static func allows(_ name: [UInt8], _ value: [UInt8], isSecure: Bool, isHostOnly: Bool, path: String?) -> Bool {
        func begins(_ prefix: String) -> Bool {
            let text = name.isEmpty ? value : name
            return text.prefix(prefix.utf8.count).map(ByteClass.lowercased).elementsEqual(prefix.utf8)
        }
        let isHost = begins("__host-")
        guard isHost || begins("__secure-") else { return true }
        // A cookie without a name is sent as its value alone, which a server would parse as a name with the prefix.
        return !name.isEmpty && isSecure && (!isHost || isHostOnly && path == "/")
    }
}

/// The bytes and lengths that a cookie may have (RFC 6265bis §5.6, §5.7).
enum CookieTextRule {
    /// The maximum length of name and value together, in bytes.
    static let byteLimit = 4096
    /// The maximum length of an attribute's value, in bytes; a longer one is ignored.
    static let attributeLimit = 1024

    /// Whether bytes can be a name, a value or a path: no control characters but tabs, no white space at the ends, and
    /// no `;` except in a path, which may come from a URL.
    static func isAllowed(_ bytes: [UInt8], isPath: Bool = false) -> Bool {
        guard let first = bytes.first, let last = bytes.last else { return true }
        return !ByteClass.isBlank(first) && !ByteClass.isBlank(last)
            && bytes.allSatisfy { ByteClass.isFieldValue($0) && (isPath || $0 != UInt8(ascii: ";")) }
    }
}

/// A host for the matching of cookies: the text of ``HTTPURL/host``, and whether it is an address.
struct CookieHost: Hashable, Sendable {
    /// The host in lower case, with A-labels and without brackets.
    let text: String
    /// Whether the host is an IP address, which has no parent and no names below it.
    let isAddress: Bool

    /// Creates the host of a URL.
    init(_ url: HTTPURL) { (text, isAddress) = (url.host, url.isIPLiteral) }

    /// Parses a host in any spelling, with or without a leading dot; `nil` if it is invalid.
    init?(_ spelling: String) {
        var bytes = Array(spelling.utf8)[...]
        if bytes.first == UInt8(ascii: "."), bytes.count > 1 { bytes = bytes.dropFirst() }
        let isIPv6 = bytes.contains(UInt8(ascii: ":"))
        if isIPv6, bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
            bytes = bytes.dropFirst().dropLast()
        }
        let host = try? isIPv6 ? URLHost(ipv6: bytes) : URLHost(name: bytes)
        guard !bytes.isEmpty, let host else { return nil }
        text = host.text
        isAddress = host.kind != .name
    }

    /// Creates a host from a text in normal form.
    init(canonical text: String) {
        self.text = text
        // No valid name ends in a label of digits, and only IPv6 addresses have colons.
        let lastLabel = text.utf8.split(separator: UInt8(ascii: ".")).last
        isAddress = text.utf8.contains(UInt8(ascii: ":")) || (lastLabel?.allSatisfy(ByteClass.isDigit) ?? false)
    }

    /// Whether the host is this machine: `localhost`, a name below it, 127.0.0.0/8 or ::1 (RFC 6761 §6.3).
    var isLoopback: Bool {
        isAddress
            ? text == "::1" || text.utf8.starts(with: "127.".utf8)
            : matches(domain: "localhost") || matches(domain: "localhost.")
    }

    /// Whether the host is equal to a domain, or a name below it (RFC 6265bis §5.1.3).
    func matches(domain: String) -> Bool {
        let host = text.utf8
        let domain = domain.utf8
        guard host.count > domain.count else { return host.elementsEqual(domain) }
        guard !isAddress, !domain.isEmpty else { return false }
        let rest = host.dropLast(domain.count)
        return rest.last == UInt8(ascii: ".") && host.suffix(domain.count).elementsEqual(domain)
    }
}
