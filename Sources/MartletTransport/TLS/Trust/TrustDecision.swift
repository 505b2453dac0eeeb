/// What a custom trust policy says.
public enum TrustDecision: Hashable, Sendable {
    /// The connection goes on.
    case accept
    /// The connection ends with ``TLSError/Kind/denied(reason:)``, before a byte of the request is sent.
    case deny(reason: String)
}
