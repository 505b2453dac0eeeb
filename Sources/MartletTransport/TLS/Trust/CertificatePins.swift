/// What a server's chain must contain, beyond being valid.
struct CertificatePins: Hashable, Sendable {
    /// Which certificates may have the pinned key.
    enum Scope: Hashable, Sendable {
        /// Any of the verified chain: the server's own or an authority's.
        case verifiedChain
        /// The server's own alone, as curl's `--pinnedpubkey`.
        case leaf
    }

    /// Keys, one of which must be there; `nil`: any.
    var publicKeys: Set<PublicKeyPin>?
    /// Certificates, one of which must be there; none: any.
    var certificates: [PEMSource] = []
    /// Where the key must be.
    var scope = Scope.verifiedChain
}
