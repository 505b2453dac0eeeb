/// Who asks for credentials. The two never share any.
public enum AuthenticationParty: String, Hashable, Sendable {
    /// The server that a request is for: 401, `WWW-Authenticate`, `Authorization`.
    case origin
    /// The proxy in between: 407, `Proxy-Authenticate`, `Proxy-Authorization`.
    case proxy

    /// The status that asks (RFC 9110 §15.5.2, §15.5.8).
    package var status: Int { self == .origin ? 401 : 407 }
    /// The field that asks.
    package var challengeField: String { self == .origin ? "WWW-Authenticate" : "Proxy-Authenticate" }
    /// The field that answers.
    package var credentialsField: String { self == .origin ? "Authorization" : "Proxy-Authorization" }
    /// The field in which the server says what it has to say afterwards.
    package var informationField: String {
        self == .origin ? "Authentication-Info" : "Proxy-Authentication-Info"
    }
}
