/// Whose certificates are accepted.
///
/// Roots say who may vouch for a server; pins say, besides, which keys or certificates it must have. A custom policy decides
/// by a closure. Connections, and the sessions they resume, are shared only among equal policies.
public struct TrustPolicy: Hashable, Sendable {
    /// Whether the machine's own authorities are trusted.
    public var usesSystemRoots: Bool

    /// Authorities trusted besides, or alone. An intermediate authority given here is trusted as it is, without the root
    /// above it, and so is a server's own certificate.
    public var roots: [PEMSource]

    /// Whether any certificate is accepted from anybody, without a look at it; pins, where there are some, still count, for
    /// the server's own key.
    ///
    /// Such a connection is encrypted, but whoever sits between can read and change everything. For tests
    /// alone.
    public var acceptsAnyCertificate: Bool

    /// What the chain must contain.
    var pins: CertificatePins?

    /// Decides instead.
    var evaluator: TrustEvaluator?

    private init(usesSystemRoots: Bool, roots: [PEMSource], acceptsAnyCertificate: Bool = false) {
        self.usesSystemRoots = usesSystemRoots
        self.roots = roots
        self.acceptsAnyCertificate = acceptsAnyCertificate
    }

    // MARK: Roots

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

    // MARK: Pins

    /// The machine's authorities, and a chain that contains one of these public keys.
    /// - Parameters:
    ///   - pins: Each as ``PublicKeyPin/init(_:)`` takes it.
    ///   - backup: Keys that are not in use yet, so that losing the one in use does not lock every client out. At least one.
    /// - Throws: ``TLSError`` of kind `.configuration` for a malformed pin, or without a backup.
    public static func pinnedPublicKeys(
        _ pins: String..., backup: String...
    ) throws(TLSError) -> TrustPolicy {
        try system.pinning(pins, backup: backup)
    }

    /// This policy, and a chain that contains one of these public keys: the server's or an authority's, but only on the
    /// verified path, for a server may send along whatever certificates it likes.
    ///
    /// Pins are checked on every connection, on resumed ones against the chain of the connection that made the session.
    /// - Parameters:
    ///   - pins: Each as ``PublicKeyPin/init(_:)`` takes it.
    ///   - backup: Keys that are not in use yet. At least one, and other than the pins.
    /// - Throws: ``TLSError`` of kind `.configuration` for a malformed pin, or without a backup.
    public func pinningPublicKeys(_ pins: String..., backup: String...) throws(TLSError) -> TrustPolicy {
        try pinning(pins, backup: backup)
    }

    private func pinning(_ pins: [String], backup: [String]) throws(TLSError) -> TrustPolicy {
        var current: Set<PublicKeyPin> = []
        for pin in pins { current.insert(try PublicKeyPin(pin)) }
        var others: Set<PublicKeyPin> = []
        for pin in backup { others.insert(try PublicKeyPin(pin)) }
        guard !current.isEmpty else { throw TLSError(.configuration(reason: "no public key pin was given")) }
        guard !others.subtracting(current).isEmpty else {
            throw TLSError(
                .configuration(
                    reason: "public key pins need a backup: the pin of another key, kept elsewhere, so that"
                        + " the loss of the key in use does not lock clients out"))
        }
        var copy = self
        copy.pins = copy.pins ?? CertificatePins()
        copy.pins?.publicKeys = current.union(others)
        return copy
    }

    /// This policy, and a server whose own certificate has one of these public keys, with no backup demanded.
    ///
    /// When the server's key is lost or renewed, every client that has only this pin is locked out until it is changed. For
    /// tests, and for programs whose pin is given anew each time, as by curl's `--pinnedpubkey`.
    public func dangerouslyPinningWithoutBackup(_ pins: PublicKeyPin...) -> TrustPolicy {
        dangerouslyPinningWithoutBackup(pins)
    }

    /// As the one with pins in a row; without any, nobody is trusted.
    public func dangerouslyPinningWithoutBackup(_ pins: [PublicKeyPin]) -> TrustPolicy {
        var copy = self
        copy.pins = copy.pins ?? CertificatePins()
        copy.pins?.publicKeys = Set(pins)
        copy.pins?.scope = .leaf
        return copy
    }

    /// These certificates and nothing else: a server is trusted that shows one of them, or whose chain ends in one, for as
    /// long as it is valid and made out to the host. They may be servers' own, authorities' or roots.
    public static func pinnedCertificates(_ certificates: PEMSource...) -> TrustPolicy {
        var policy = TrustPolicy(usesSystemRoots: false, roots: certificates)
        policy.pins = CertificatePins(certificates: certificates)
        return policy
    }

    /// This policy, and a verified chain that contains one of these certificates.
    public func pinningCertificates(_ certificates: PEMSource...) -> TrustPolicy {
        var copy = self
        copy.pins = copy.pins ?? CertificatePins()
        copy.pins?.certificates += certificates
        return copy
    }

    /// Whether the pinned certificates are all that is trusted.
    var trustsPinsAlone: Bool {
        guard !usesSystemRoots, let pins, !pins.certificates.isEmpty else { return false }
        return Set(roots).isSubset(of: pins.certificates)
    }

    // MARK: Custom

    /// A closure decides, knowing what the machine's authorities make of the chain; as ``evaluated(by:)``.
    public static func custom(
        _ decide: @escaping @Sendable (_ chain: PresentedChain, _ host: String) async -> TrustDecision
    ) -> TrustPolicy { system.evaluated(by: decide) }

    /// This policy's verdict is handed to a closure, which decides: it may accept what the policy refuses and refuse what
    /// the policy accepts. Pins still count, whatever it says.
    ///
    /// The closure is asked in every handshake before anything of the request, or this side's certificate, is sent; such
    /// connections resume no sessions. It holds no lock and may wait, for a person's answer say, but the request waits
    /// with it, within the clock for connecting, and the server may lose patience sooner. When the request is cancelled or
    /// the clock runs out, the closure's task is cancelled and its answer no longer awaited.
    public func evaluated(
        by decide: @escaping @Sendable (_ chain: PresentedChain, _ host: String) async -> TrustDecision
    ) -> TrustPolicy {
        var copy = self
        copy.evaluator = TrustEvaluator(decide)
        return copy
    }

    // MARK: Insecure

    /// Accepts whatever certificate a server shows. This gives up the protection TLS is there for.
    public static let dangerouslyAcceptingAnyCertificate = TrustPolicy(
        usesSystemRoots: false, roots: [], acceptsAnyCertificate: true)
}
