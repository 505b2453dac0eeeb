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
