/// A `Set-Cookie` field whose cookie was not stored, and the reason. The cookie's value is not included.
public struct CookieRejection: Sendable, Hashable, CustomStringConvertible {
    /// The reason why a cookie is not stored.
    public enum Reason: Error, Sendable, Hashable {
        /// The field's value has a control character at this byte, counted from 0.
        case controlCharacter(offset: Int)
        /// Name and value have more than 4,096 bytes.
        case tooLarge
        /// The field has neither a name nor a value.
        case empty
        /// `Domain` is not ASCII.
        case invalidDomain
        /// `Path` is not UTF-8; or it is missing, and the default path from the URL has more than 1,024 bytes.
        case invalidPath
        /// `Domain` is neither the host itself nor a domain above it.
        case foreignDomain
        /// `Domain` is a public suffix, or a parent of the host's public suffix.
        case publicSuffix
        /// `Secure` was received over an insecure connection.
        case insecureOrigin
        /// The cookie was received over an insecure connection, and would shadow a secure cookie of the same name.
        case shadowsSecureCookie
        /// The field has `SameSite=None` without `Secure`.
        case crossSiteWithoutSecure
        /// The name starts with `__Secure-` or `__Host-`, and the cookie does not satisfy the rules of that prefix.
        case prefixNotHonored
        /// The field is beyond the limit of a response: ``CookieLimits/perResponse``.
        case overLimit

        /// The reason as text.
        var explanation: String {
            switch self {
            case .controlCharacter(let offset): "a control character at byte \(offset)"
            case .tooLarge: "name and value have more than 4,096 bytes"
            case .empty: "neither a name nor a value"
            case .invalidDomain: "Domain is not ASCII"
            case .invalidPath: "Path is not UTF-8, or the URL is too long for a default path"
            case .foreignDomain: "Domain is neither the host nor a domain above it"
            case .publicSuffix: "Domain is a public suffix"
            case .insecureOrigin: "Secure over an insecure connection"
            case .shadowsSecureCookie: "would shadow a Secure cookie over an insecure connection"
            case .crossSiteWithoutSecure: "SameSite=None without Secure"
            case .prefixNotHonored: "the cookie does not satisfy the rules of its name's prefix"
            case .overLimit: "too many Set-Cookie fields in one response"
            }
        }
    }

    /// The number of the field in the response, starting at 0.
    public let index: Int
    /// The name of the cookie; empty if it has none or could not be parsed.
    public let name: String
    /// The reason for the rejection.
    public let reason: Reason

    /// The field and the reason as text.
    public var description: String {
        "Set-Cookie \(index + 1)\(name.isEmpty ? "" : " (\(name))"): \(reason.explanation)"
    }
}

/// The reason why a cookie cannot be created. The cookie's value is not included.
public enum CookieError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The name has a control character, `;`, `=`, or white space at an end, or is empty together with the value.
    case invalidName
    /// The value contains a control character or `;`, or has white space at an end.
    case invalidValue
    /// The domain is not a valid host.
    case invalidDomain
    /// The path does not start with `/`, has a control character or white space at its end, or is over 1,024 bytes.
    case invalidPath
    /// Name and value have more than 4,096 bytes.
    case tooLarge
    /// The name starts with `__Secure-` or `__Host-`, whose rules the cookie does not satisfy (RFC 6265bis §4.1.3).
    case prefixNotHonored

    /// The problem with the cookie, as text.
    public var description: String {
        switch self {
        case .invalidName: "the name of a cookie is empty, has a control character, ';' or '=', or a blank at an end"
        case .invalidValue: "the value of a cookie has a control character, ';', or white space at an end"
        case .invalidDomain: "the domain of a cookie is not a host"
        case .invalidPath: "the path of a cookie does not start with '/', has an invalid character, or is too long"
        case .tooLarge: "name and value of a cookie have more than 4,096 bytes"
        case .prefixNotHonored: "the cookie does not satisfy the rules of its name's prefix, __Host- or __Secure-"
        }
    }
}

/// The limits of a ``CookieJar``. Each stops a server from filling the memory or the requests.
///
/// The limits on a single cookie are fixed (RFC 6265bis §5.6): 4,096 bytes of name and value, 1,024 of an attribute.
public struct CookieLimits: Sendable, Hashable {
    /// The maximum number of `Set-Cookie` fields that are read from a response; default 50, as in curl.
    public var perResponse: Int { didSet { perResponse = max(0, perResponse) } }
    /// The maximum number of cookies of a registrable domain and all names below it; default 180, as in Chrome.
    public var perDomain: Int { didSet { perDomain = max(0, perDomain) } }
    /// The maximum number of all cookies; default 3,000 (RFC 6265bis §6.1).
    public var total: Int { didSet { total = max(0, total) } }
    /// The maximum length of a `Cookie` value, in bytes; default 8,192. Cookies that do not fit are omitted.
    public var headerBytes: Int { didSet { headerBytes = max(0, headerBytes) } }
    /// The maximum lifetime of a cookie in days, up to 36,500; default 400 (RFC 6265bis §5.6.1).
    public var days: Int { didSet { days = CookieLimits.clamped(days) } }

    /// Creates limits. Numbers are clamped to their ranges, also when a property is set.
    public init(
        perResponse: Int = 50, perDomain: Int = 180, total: Int = 3000, headerBytes: Int = 8192, days: Int = 400
    ) {
        self.perResponse = max(0, perResponse)
        self.perDomain = max(0, perDomain)
        self.total = max(0, total)
        self.headerBytes = max(0, headerBytes)
        self.days = CookieLimits.clamped(days)
    }

    private static func clamped(_ days: Int) -> Int { min(max(0, days), 36_500) }
}

/// The use of cookies by a session.
public struct CookiePolicy: Sendable, Hashable {
    /// Whether cookies are sent.
    public var sendsCookies: Bool
    /// Whether received cookies are stored.
    public var storesCookies: Bool

    /// Creates a policy.
    public init(sendsCookies: Bool, storesCookies: Bool) {
        (self.sendsCookies, self.storesCookies) = (sendsCookies, storesCookies)
    }

    /// Cookies are stored and sent.
    public static let always = CookiePolicy(sendsCookies: true, storesCookies: true)
    /// Cookies are neither stored nor sent.
    public static let never = CookiePolicy(sendsCookies: false, storesCookies: false)
    /// Existing cookies are sent; new cookies are not stored.
    public static let sendOnly = CookiePolicy(sendsCookies: true, storesCookies: false)
}
