public import FoundationEssentials
public import MartletURL

/// A host whose URLs are requested over https only: a Known HSTS Host (RFC 6797 §8.1).
public struct HSTSEntry: Sendable, Hashable {
    /// The host name in lower case, with A-labels for international names, and without a dot at its end.
    public let host: String
    /// Whether all names below the host are included.
    public var includesSubdomains: Bool
    /// The time of expiry; `nil` for never.
    public var expires: Date?

    /// Creates an entry.
    /// - Parameters:
    ///   - host: The host name in any spelling that a URL allows.
    ///   - includesSubdomains: Whether all names below the host are included; `false` by default.
    ///   - expires: The time of expiry; `nil` (the default) for never.
    /// - Throws: `HTTPURL.ParseError` if the host is invalid, or an IP address, which cannot have an entry.
    public init(host: String, includesSubdomains: Bool = false, expires: Date? = nil) throws(HTTPURL.ParseError) {
        let parsed: URLHost
        do throws(RawURLParseError) { parsed = try URLHost(name: Array(host.utf8)[...]) } catch {
            throw error.located(in: host)
        }
        guard parsed.kind == .name else {
            throw HTTPURL.ParseError(
                code: .invalidHostName, offset: 0, message: "HSTS applies to host names, not to IP addresses")
        }
        self.init(canonical: parsed.text, includesSubdomains: includesSubdomains, expires: expires)
    }

    /// Creates an entry for the host of a URL, which must be a name.
    init(canonical host: String, includesSubdomains: Bool, expires: Date?) {
        self.host = HSTSEntry.withoutFinalDot(host)
        (self.includesSubdomains, self.expires) = (includesSubdomains, expires)
    }

    /// Returns a normalized host without the dot of the root: `a.example` and `a.example.` are one host.
    static func withoutFinalDot(_ host: String) -> String { host.hasSuffix(".") ? String(host.dropLast()) : host }

    /// Whether the entry has expired at a given time.
    public func isExpired(at now: Date) -> Bool { expires.map { $0 <= now } ?? false }

    /// Whether the entry expires sooner than another.
    func expiresBefore(_ other: HSTSEntry) -> Bool {
        (expires ?? .distantFuture, host) < (other.expires ?? .distantFuture, other.host)
    }
}
