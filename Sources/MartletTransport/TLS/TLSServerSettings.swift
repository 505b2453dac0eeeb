/// How TLS connections are accepted; for test origins.
package struct TLSServerSettings: Sendable {
    /// What clients are shown.
    package var identity: TLSIdentity
    /// The authority whose certificates clients may show; `nil` to ask for none.
    package var clientAuthority: PEMSource?
    /// Whether a client without a certificate is refused.
    package var requiresClientCertificate = false
    /// The oldest version spoken.
    package var minimumVersion = TLSVersion.tls12
    /// The newest version spoken.
    package var maximumVersion = TLSVersion.tls13
    /// The protocols taken by ALPN, best first.
    package var applicationProtocols = ["http/1.1"]
    /// Whether clients get tickets to resume with.
    package var issuesTickets = true

    /// Whether keys and digests are taken that no sound server has; for origins that clients must refuse.
    package var allowsWeakKeys = false

    /// Settings with an identity, all else at its default.
    package init(identity: TLSIdentity) {
        self.identity = identity
    }
}
