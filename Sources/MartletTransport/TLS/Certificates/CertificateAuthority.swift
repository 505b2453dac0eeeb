/// An authority made at run time for tests, whose key exists nowhere else and never outlives the process.
package struct CertificateAuthority: Hashable, Sendable {
    /// The root's certificate in PEM: what a client is told to trust.
    package let rootPEM: String
    /// This authority's own certificate in PEM; that of the root, unless it is an intermediate.
    package let certificatePEM: String
    private let privateKeyPEM: String
    /// Certificates between those it issues and the root, in PEM.
    private let intermediatesPEM: String

    /// A root authority of its own, with a P-256 key.
    /// - Parameter change: What its certificate says otherwise than by default.
    package init(
        commonName: String = "Martlet test authority", change: (inout CertificateTemplate) -> Void = { _ in }
    ) throws(TLSError) {
        var template = CertificateTemplate(
            commonName: commonName, notAfter: .seconds(30 * 86_400), usages: [], isAuthority: true)
        change(&template)
        let issued = try CertificateBuilder.make(template, issuer: nil)
        certificatePEM = issued.certificate
        privateKeyPEM = issued.privateKey
        intermediatesPEM = ""
        rootPEM = issued.certificate
    }

    private init(rootPEM: String, certificatePEM: String, privateKeyPEM: String, intermediatesPEM: String) {
        self.rootPEM = rootPEM
        self.certificatePEM = certificatePEM
        self.privateKeyPEM = privateKeyPEM
        self.intermediatesPEM = intermediatesPEM
    }

    /// The root's certificate as what to trust.
    package var trust: TrustPolicy { .only(.text(rootPEM)) }

    /// Issues a certificate with a key of its own.
    package func issue(_ template: CertificateTemplate) throws(TLSError) -> IssuedCertificate {
        let issued = try CertificateBuilder.make(
            template, issuer: CertificateBuilder.Issuer(certificatePEM: certificatePEM, keyPEM: privateKeyPEM)
        )
        return IssuedCertificate(
            certificateChainPEM: issued.certificate + intermediatesPEM, privateKeyPEM: issued.privateKey)
    }

    /// A list of certificates of this authority's that were revoked, in PEM.
    /// - Parameters:
    ///   - revoked: Certificates in PEM, the first of each text.
    ///   - issued: When it was made, from now.
    ///   - end: When the next one was promised, from now.
    package func revocationList(
        revoking revoked: [String] = [], issued: Duration = .seconds(-3600),
        until end: Duration = .seconds(86_400)
    ) throws(TLSError) -> String {
        try RevocationListBuilder.make(
            issuer: CertificateBuilder.Issuer(certificatePEM: certificatePEM, keyPEM: privateKeyPEM),
            revoking: revoked.compactMap { PEMReader.certificates(in: Array($0.utf8))?.first },
            issued: issued, until: end)
    }

    /// An authority below this one; the chains of what it issues carry its certificate.
    package func intermediate(
        commonName: String = "Martlet test intermediate",
        change: (inout CertificateTemplate) -> Void = { _ in }
    ) throws(TLSError) -> CertificateAuthority {
        var template = CertificateTemplate(
            commonName: commonName, notAfter: .seconds(30 * 86_400), usages: [], isAuthority: true)
        change(&template)
        let issued = try CertificateBuilder.make(
            template,
            issuer: CertificateBuilder.Issuer(certificatePEM: certificatePEM, keyPEM: privateKeyPEM))
        return CertificateAuthority(
            rootPEM: rootPEM, certificatePEM: issued.certificate, privateKeyPEM: issued.privateKey,
            intermediatesPEM: issued.certificate + intermediatesPEM)
    }

    /// A certificate that vouches for itself.
    package static func selfSigned(_ template: CertificateTemplate) throws(TLSError) -> IssuedCertificate {
        let issued = try CertificateBuilder.make(template, issuer: nil)
        return IssuedCertificate(certificateChainPEM: issued.certificate, privateKeyPEM: issued.privateKey)
    }
}
