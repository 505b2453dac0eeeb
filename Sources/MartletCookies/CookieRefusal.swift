import MartletCore

/// A `Set-Cookie` field that was not stored, and why. It holds nothing of the cookie's value.
public struct CookieRefusal: Sendable, Hashable, CustomStringConvertible {
    /// Why a cookie is not stored.
    public enum Reason: Error, Sendable, Hashable {
        /// There is a control character at that byte of the field's value, counted from 0.
        case controlCharacter(offset: Int)
        /// Name and value have more than 4,096 bytes.
        case tooLarge
        /// There is neither a name nor a value.
        case empty
        /// `Domain` is not ASCII.
        case invalidDomain
        /// `Path` is not UTF-8; or there is none, and that of the address has more than 1,024 bytes.
        case invalidPath
        /// `Domain` is not the host's own, or one above it.
        case foreignDomain
        /// `Domain` is a public suffix, or above the host's.
        case publicSuffix
        /// `Secure` over a connection that is not.
        case insecureOrigin
        /// Over a connection that is not secure, in the place of a cookie that is.
        case shadowsSecureCookie
        /// `SameSite=None` without `Secure`.
        case crossSiteWithoutSecure
        /// The name begins with `__Secure-` or `__Host-`, and the cookie is not what that promises.
        case prefixNotHonored
        /// It was not among the first fields of a response that are heeded: ``CookieLimits/perResponse``.
        case overLimit
    }

    /// Which field of the response it was, counted from 0.
    public let index: Int
    /// The cookie's name; empty when it has none or could not be read.
    public let name: String
    /// Why it was not stored.
    public let reason: Reason

    /// As text for people.
    public var description: String {
        "Set-Cookie \(index + 1)\(name.isEmpty ? "" : " (\(name))"): \(reason.explanation)"
    }
}

extension CookieRefusal.Reason {
    /// Why, as text for people.
    var explanation: String {
        switch self {
        case .controlCharacter(let offset): "a control character at byte \(offset)"
        case .tooLarge: "name and value have more than 4,096 bytes"
        case .empty: "neither a name nor a value"
        case .invalidDomain: "Domain is not a host name"
        case .invalidPath: "Path is not UTF-8, or that of the address too long"
        case .foreignDomain: "Domain is not one of the host's"
        case .publicSuffix: "Domain is a public suffix"
        case .insecureOrigin: "Secure over a connection that is not"
        case .shadowsSecureCookie: "it would take the place of a Secure cookie"
        case .crossSiteWithoutSecure: "SameSite=None without Secure"
        case .prefixNotHonored: "the name's prefix promises what the cookie is not"
        case .overLimit: "too many Set-Cookie fields in one response"
        }
    }
}

/// Why a cookie cannot be made. It never holds the value.
public enum CookieError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name holds a control character, `;` or `=`, has white space at an end, or is empty as the value
    /// is.
    case invalidName
    /// The value holds a control character or `;`, or has white space at an end.
    case invalidValue
    /// The domain is not a host.
    case invalidDomain
    /// The path does not begin with `/`, holds a control character or ends in white space, or is longer than
    /// 1,024 bytes.
    case invalidPath
    /// Name and value have more than 4,096 bytes.
    case tooLarge
    /// The name begins with `__Secure-` or `__Host-`, and the cookie is not what that promises (RFC 6265bis
    /// §4.1.3).
    case prefixNotHonored

    /// What is wrong, as a sentence.
    public var description: String {
        switch self {
        case .invalidName:
            "the name of a cookie holds a control character, ';' or '=', or there is nothing in it"
        case .invalidValue: "the value of a cookie holds a control character or ';', or ends in white space"
        case .invalidDomain: "the domain of a cookie is not a host"
        case .invalidPath: "the path of a cookie does not begin with '/', or holds what no path may hold"
        case .tooLarge: "name and value of a cookie have more than 4,096 bytes"
        case .prefixNotHonored: "the prefix of a cookie's name promises what the cookie is not"
        }
    }
}

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
