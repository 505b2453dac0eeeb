/// What of a request the response to a Digest challenge covers (RFC 7616 §3.3).
enum DigestProtection: Hashable, Sendable {
    /// Method and target, as RFC 2069 had it: no `qop` at all, and no nonce of the client's.
    case legacy
    /// Method and target: `auth`.
    case request
    /// Method, target and body: `auth-int`.
    case requestAndBody

    /// The value of `qop`; `nil` where there is none.
    var name: String? {
        switch self {
        case .legacy: nil
        case .request: "auth"
        case .requestAndBody: "auth-int"
        }
    }
}
