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
            uncheckedName: request.name, value: request.value, domain: domain, isHostOnly: isHostOnly,
            path: path ?? defaultPath, expires: expiry(request),
            isSecure: request.isSecure, isHTTPOnly: request.isHTTPOnly, sameSite: request.sameSite,
            created: now,
            lastUsed: now)
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
