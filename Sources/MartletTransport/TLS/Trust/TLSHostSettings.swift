/// TLS settings for some hosts; what is `nil` is as in the session's.
public struct TLSHostSettings: Hashable, Sendable {
    /// Whose certificates are accepted.
    public var trust: TrustPolicy?
    /// What is shown when the server demands a certificate.
    public var identity: TLSIdentity?
    /// Whether no identity is shown, though the session has one. Off by default.
    public var showsNoIdentity: Bool
    /// Whether certificates are looked up in revocation lists.
    public var revocation: RevocationPolicy?
    /// Whether the certificate must be made out to the host.
    public var verifiesHostName: Bool?

    /// Settings; all but those given are the session's.
    public init(
        trust: TrustPolicy? = nil, identity: TLSIdentity? = nil, showsNoIdentity: Bool = false,
        revocation: RevocationPolicy? = nil, verifiesHostName: Bool? = nil
    ) {
        self.trust = trust
        self.identity = identity
        self.showsNoIdentity = showsNoIdentity
        self.revocation = revocation
        self.verifiesHostName = verifiesHostName
    }
}
