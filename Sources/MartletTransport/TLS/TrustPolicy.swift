/// Which certificate authorities may vouch for a server.
public struct TrustPolicy: Hashable, Sendable {
    /// Whether the machine's own authorities are trusted.
    public var usesSystemRoots: Bool

    /// Authorities trusted besides, or alone.
    public var roots: [PEMSource]

    /// Whether any certificate is accepted from anybody, without a look at it.
    ///
    /// Such a connection is encrypted, but whoever sits between can read and change everything. For tests
    /// alone.
    public var acceptsAnyCertificate: Bool

    private init(usesSystemRoots: Bool, roots: [PEMSource], acceptsAnyCertificate: Bool = false) {
        self.usesSystemRoots = usesSystemRoots
        self.roots = roots
        self.acceptsAnyCertificate = acceptsAnyCertificate
    }

    /// The machine's authorities: OpenSSL's places, else those that Linux distributions use; the default.
    ///
    /// `SSL_CERT_FILE` and `SSL_CERT_DIR` name other places, as for every program that uses OpenSSL.
    public static let system = TrustPolicy(usesSystemRoots: true, roots: [])

    /// These authorities and no others.
    public static func only(_ roots: PEMSource...) -> TrustPolicy {
        TrustPolicy(usesSystemRoots: false, roots: roots)
    }

    /// This policy with more authorities.
    public func adding(_ roots: PEMSource...) -> TrustPolicy {
        var copy = self
        copy.roots += roots
        return copy
    }

    /// Accepts whatever certificate a server shows. This gives up the protection TLS is there for.
    public static let dangerouslyAcceptingAnyCertificate = TrustPolicy(
        usesSystemRoots: false, roots: [], acceptsAnyCertificate: true)
}
