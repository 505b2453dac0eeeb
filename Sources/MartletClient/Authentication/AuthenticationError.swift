/// What is wrong with a server that was given a proof of who is calling.
public enum AuthenticationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The server's own proof (`rspauth`) is wrong: it does not know the password that it asked for (RFC 7616 §3.5).
    case serverNotAuthentic(HTTPURL.Origin, AuthenticationParty)

    /// What is wrong, and with whom.
    public var description: String {
        switch self {
        case .serverNotAuthentic(let origin, let party):
            "\(party == .proxy ? "the proxy" : "the server") at \(origin) did not prove that it knows the password"
        }
    }
}
