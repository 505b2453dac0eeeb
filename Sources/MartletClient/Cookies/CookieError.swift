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
