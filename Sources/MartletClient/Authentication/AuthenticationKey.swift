/// Whose state it is: that of one party at one place for one user. Nobody else's is ever looked at.
struct AuthenticationKey: Hashable, Sendable {
    /// A server, or a proxy.
    let party: AuthenticationParty
    /// Where it is.
    let origin: HTTPURL.Origin
    /// Who calls.
    let credentials: Credentials
}
