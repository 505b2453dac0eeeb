/// Pins ready to be compared: certificates are read.
struct PinSet: Sendable {
    let publicKeys: Set<PublicKeyPin>?
    /// SHA-256 of each certificate's DER.
    let certificates: Set<[UInt8]>
    let scope: CertificatePins.Scope

    /// Reads the certificates. Blocks.
    init(_ pins: CertificatePins) throws(TLSError) {
        publicKeys = pins.publicKeys
        scope = pins.scope
        var digests: Set<[UInt8]> = []
        for source in pins.certificates {
            for certificate in try PEMReader.certificates(of: source) {
                unsafe digests.insert(Certificate.sha256(of: certificate.pointer))
            }
        }
        certificates = digests
    }

    /// Whether a certificate is itself one of those pinned.
    func contains(_ certificate: OpaquePointer) -> Bool {
        !certificates.isEmpty && certificates.contains(unsafe Certificate.sha256(of: certificate))
    }

    /// Whether a chain has what is pinned.
    func isSatisfied(by evidence: ChainEvidence) -> Bool {
        let keys = scope == .leaf ? Array(evidence.publicKeys.prefix(1)) : evidence.publicKeys
        let hasKey = publicKeys.map { keys.contains(where: $0.contains) } ?? true
        let hasCertificate =
            certificates.isEmpty || evidence.certificates.contains(where: certificates.contains)
        return hasKey && hasCertificate
    }
}
