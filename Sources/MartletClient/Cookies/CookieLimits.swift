/// How much a ``CookieJar`` takes and gives. Each limit stops a server from filling the memory or the
/// requests.
///
/// Name and value of a cookie have at most 4,096 bytes and an attribute 1,024, whatever is set here (RFC
/// 6265bis §5.6).
public struct CookieLimits: Sendable, Hashable {
    /// The most `Set-Cookie` fields of a response that are heeded; default 50, as in curl.
    public var perResponse: Int { didSet { perResponse = max(0, perResponse) } }
    /// The most cookies kept for a registrable domain and all names below it; default 180, as in Chrome.
    public var perDomain: Int { didSet { perDomain = max(0, perDomain) } }
    /// The most cookies kept in all; default 3,000 (RFC 6265bis §6.1).
    public var total: Int { didSet { total = max(0, total) } }
    /// The most bytes of the value of `Cookie`; default 8,192. Cookies that do not fit are left out.
    public var headerBytes: Int { didSet { headerBytes = max(0, headerBytes) } }
    /// The most days for which a cookie is kept, up to 36,500; default 400 (RFC 6265bis §5.6.1).
    public var days: Int { didSet { days = CookieLimits.clamped(days) } }

    /// Creates limits. A number out of range becomes the nearest in it, here as in the properties.
    public init(
        perResponse: Int = 50, perDomain: Int = 180, total: Int = 3000, headerBytes: Int = 8192,
        days: Int = 400
    ) {
        self.perResponse = max(0, perResponse)
        self.perDomain = max(0, perDomain)
        self.total = max(0, total)
        self.headerBytes = max(0, headerBytes)
        self.days = CookieLimits.clamped(days)
    }

    private static func clamped(_ days: Int) -> Int { min(max(0, days), 36_500) }
}
