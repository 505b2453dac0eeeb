import MartletURL
import MartletCore
import FoundationEssentials
import MartletWire

/// Whether a site may set the cookie that it asks for, and what becomes of it (RFC 6265bis §5.7), as far as
/// that does not depend on other cookies.
struct CookieAcceptanceRule {
    /// The address whose response it was. Never the `Host` field: that one says what the caller liked.
    let url: HTTPURL
    /// Whether the connection counts as secure.
    let isSecure: Bool
    /// The public suffixes.
    let suffixes: any PublicSuffixes
    /// The present.
    let now: Date

    /// The cookie to store.
    func cookie(_ request: SetCookie) throws(CookieRefusal.Reason) -> Cookie {
        let host = CookieHost(url)
        let (domain, isHostOnly) = try reach(request, host)
        if request.isSecure, !isSecure { throw .insecureOrigin }
        if request.sameSite == .none, !request.isSecure { throw .crossSiteWithoutSecure }
        let path = try path(request)
        let defaultPath = CookiePathRule.defaultPath(of: url.path)
        // An attribute has no more. An address may, and a server chooses addresses by redirecting to them.
        guard path != nil || defaultPath.utf8.count <= CookieTextRule.attributeLimit else {
            throw .invalidPath
        }
        let isPromiseKept = CookiePrefixRule(name: request.name, value: request.value)
            .allows(isSecure: request.isSecure, isHostOnly: isHostOnly, path: path)
        guard isPromiseKept else { throw .prefixNotHonored }
        return Cookie(
            nameBytes: request.name, valueBytes: request.value, domain: domain, isHostOnly: isHostOnly,
            path: path ?? defaultPath, expires: expiry(request), isSecure: request.isSecure,
            isHTTPOnly: request.isHTTPOnly, sameSite: request.sameSite, created: now, lastUsed: now)
    }

    /// The domain it goes to, and whether to it alone.
    private func reach(
        _ request: SetCookie, _ host: CookieHost
    ) throws(CookieRefusal.Reason) -> (domain: String, isHostOnly: Bool) {
        guard let bytes = request.domain else { return (host.text, true) }
        guard bytes.allSatisfy({ $0 < 0x80 }) else { throw .invalidDomain }
        let domain = String(decoding: bytes, as: UTF8.self)
        if host.isAddress || suffixes.isPublicSuffix(host.text) {
            // Nothing is below an address, and what is below a public suffix is another site.
            guard domain == host.text else { throw .foreignDomain }
            return (host.text, true)
        }
        guard host.matches(domain: domain) else {
            throw suffixes.isPublicSuffix(domain) ? .publicSuffix : .foreignDomain
        }
        // Also what is above the public suffix without being one itself.
        guard let registrable = suffixes.registrableDomain(of: host.text),
            domain.utf8.count >= registrable.utf8.count
        else { throw .publicSuffix }
        return (domain, false)
    }

    /// The path it was given in so many words. One that is not UTF-8 would go to no request, and is refused
    /// here, where it is told.
    private func path(_ request: SetCookie) throws(CookieRefusal.Reason) -> String? {
        guard let bytes = request.path else { return nil }
        guard let text = String(validating: bytes, as: UTF8.self) else { throw .invalidPath }
        return text
    }

    /// `Max-Age` counts before `Expires`; what is neither ends with the session.
    private func expiry(_ request: SetCookie) -> Date? {
        if let age = request.maximumAge {
            return age <= 0 ? .distantPast : now.addingTimeInterval(Double(age))
        }
        return request.expires.map(CookieDate.date)
    }
}

/// Which paths a cookie goes to (RFC 6265bis §5.1.4). Both are compared as they are written: nothing is
/// decoded.
enum CookiePathRule {
    private static let slash = UInt8(ascii: "/")

    /// Whether a request's path is a cookie's path or below it. `/foo` is not above `/foobar`.
    static func matches(_ path: String, cookiePath: String) -> Bool {
        let path = path.utf8
        let cookiePath = cookiePath.utf8
        guard path.starts(with: cookiePath) else { return false }
        return path.count == cookiePath.count || cookiePath.last == slash
            || path.dropFirst(cookiePath.count).first == slash
    }

    /// The path of a cookie that names none: that of the request up to its last slash, without it.
    static func defaultPath(of path: String) -> String {
        let bytes = path.utf8
        guard bytes.first == slash, let last = bytes.lastIndex(of: slash), last > bytes.startIndex else {
            return "/"
        }
        return String(path[..<last])
    }
}

/// What the beginning of a cookie's name promises of it (RFC 6265bis §4.1.3, §5.7), in any case of its
/// letters.
struct CookiePrefixRule {
    private enum Promise {
        case none, secure, host
        /// A cookie without a name whose value would be read as a name with a prefix.
        case pretended
    }

    private let promise: Promise

    init(name: [UInt8], value: [UInt8]) {
        let isNameless = name.isEmpty
        let text = isNameless ? value : name
        if CookiePrefixRule.begins(text, with: "__secure-") {
            promise = isNameless ? .pretended : .secure
        } else if CookiePrefixRule.begins(text, with: "__host-") {
            promise = isNameless ? .pretended : .host
        } else {
            promise = .none
        }
    }

    /// Whether a cookie is what its name promises.
    ///
    /// - Parameter path: the path it was given in so many words; nil when it was given none.
    func allows(isSecure: Bool, isHostOnly: Bool, path: String?) -> Bool {
        switch promise {
        case .none: true
        case .secure: isSecure
        case .host: isSecure && isHostOnly && path == "/"
        case .pretended: false
        }
    }

    private static func begins(_ text: [UInt8], with prefix: String) -> Bool {
        text.prefix(prefix.utf8.count).map(ByteClass.lowercased).elementsEqual(prefix.utf8)
    }
}

/// Which bytes and how many a cookie may have (RFC 6265bis §5.6, §5.7).
enum CookieTextRule {
    /// The most bytes of name and value together.
    static let byteLimit = 4096
    /// The most bytes of an attribute's value; a longer one is as if it were not there.
    static let attributeLimit = 1024

    /// Whether bytes can be a name, a value or a path: no control characters but tabs, no `;`, no white space
    /// at an end.
    ///
    /// A path may have `;`: no `Set-Cookie` can name such a one, but an address can, whose path then counts.
    static func isAllowed(_ bytes: [UInt8], isPath: Bool = false) -> Bool {
        guard let first = bytes.first, let last = bytes.last else { return true }
        return !ByteClass.isBlank(first) && !ByteClass.isBlank(last)
            && bytes.allSatisfy { ByteClass.isFieldValue($0) && (isPath || $0 != UInt8(ascii: ";")) }
    }
}

/// A host as cookies know it: the text of ``HTTPURL/host``, and whether it is an address.
struct CookieHost: Hashable, Sendable {
    /// Lower case, A-labels, no brackets.
    let text: String
    /// Whether it is an IP address, which has no parent and nothing below it.
    let isAddress: Bool

    /// The host of an address.
    init(_ url: HTTPURL) {
        text = url.host
        isAddress = url.isIPLiteral
    }

    /// A host in any spelling, with or without a leading dot; nil when it is none.
    init?(_ spelling: String) {
        var bytes = Array(spelling.utf8)[...]
        if bytes.first == UInt8(ascii: "."), bytes.count > 1 { bytes = bytes.dropFirst() }
        guard !bytes.isEmpty else { return nil }
        let host: URLHost?
        if bytes.contains(UInt8(ascii: ":")) {
            if bytes.first == UInt8(ascii: "["), bytes.last == UInt8(ascii: "]") {
                bytes = bytes.dropFirst().dropLast()
            }
            host = try? URLHost(ipv6: bytes)
        } else {
            host = try? URLHost(name: bytes)
        }
        guard let host else { return nil }
        text = host.text
        isAddress = host.kind != .name
    }

    /// A host in its final form.
    init(canonical text: String) {
        self.text = text
        // No name that parses ends in a label of digits, and only IPv6 has colons.
        let lastLabel = text.utf8.split(separator: UInt8(ascii: ".")).last
        isAddress =
            text.utf8.contains(UInt8(ascii: ":")) || (lastLabel?.allSatisfy(ByteClass.isDigit) ?? false)
    }

    /// Whether it is this machine: `localhost` and names below it, 127.0.0.0/8, ::1 (RFC 6761 §6.3).
    var isLoopback: Bool {
        isAddress
            ? text == "::1" || text.utf8.starts(with: "127.".utf8)
            : matches(domain: "localhost") || matches(domain: "localhost.")
    }

    /// Whether it is a domain, or a name below it (RFC 6265bis §5.1.3).
    func matches(domain: String) -> Bool {
        let host = text.utf8
        let domain = domain.utf8
        guard host.count > domain.count else { return host.elementsEqual(domain) }
        guard !isAddress, !domain.isEmpty else { return false }
        let rest = host.dropLast(domain.count)
        return rest.last == UInt8(ascii: ".") && host.suffix(domain.count).elementsEqual(domain)
    }
}
