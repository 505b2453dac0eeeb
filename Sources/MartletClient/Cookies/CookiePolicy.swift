/// What a session does about cookies.
public struct CookiePolicy: Sendable, Hashable {
    /// Whether cookies are sent.
    public var sendsCookies: Bool
    /// Whether cookies that come are stored.
    public var storesCookies: Bool

    /// A policy of one's own.
    public init(sendsCookies: Bool, storesCookies: Bool) {
        self.sendsCookies = sendsCookies
        self.storesCookies = storesCookies
    }

    /// Cookies are stored and sent.
    public static let always = CookiePolicy(sendsCookies: true, storesCookies: true)
    /// Cookies are neither stored nor sent.
    public static let never = CookiePolicy(sendsCookies: false, storesCookies: false)
    /// Cookies that are there are sent; none are stored.
    public static let sendOnly = CookiePolicy(sendsCookies: true, storesCookies: false)
}
