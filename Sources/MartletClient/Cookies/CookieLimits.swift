/// How much a ``CookieJar`` takes and gives. Each limit stops a server from filling the memory or the
/// requests.
///
/// Name and value of a cookie have at most 4,096 bytes and an attribute 1,024, whatever is set here (RFC
/// 6265bis §5.6).
public struct CookieLimits: Sendable, Hashable {
    /// How many `Set-Cookie` fields of a response are heeded; default 50, as in curl.
    public var perResponse: Int
    /// How many cookies are kept for a registrable domain and all names below it; default 180, as in Chrome.
    public var perDomain: Int
    /// How many cookies are kept in all; default 3,000 (RFC 6265bis §6.1).
    public var total: Int
    /// How many bytes the value of `Cookie` has at most; default 8,192. Cookies that do not fit are left out.
    public var headerBytes: Int
    /// How long a cookie is kept at most, in days; default 400 (RFC 6265bis §5.6.1).
    public var days: Int

    /// Limits; below 0 counts as 0.
    public init(
        perResponse: Int = 50, perDomain: Int = 180, total: Int = 3000, headerBytes: Int = 8192,
        days: Int = 400
    ) {
        self.perResponse = max(0, perResponse)
        self.perDomain = max(0, perDomain)
        self.total = max(0, total)
        self.headerBytes = max(0, headerBytes)
        self.days = max(0, days)
    }
}
