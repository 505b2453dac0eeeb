import COpenSSL
package import MartletTransport

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
            revoking: revoked.compactMap { PEMParser.certificates(in: Array($0.utf8))?.first },
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

/// A throw-away certificate with its private key.
package struct IssuedCertificate: Hashable, Sendable {
    /// The certificate, followed by those of the authorities between it and the root, in PEM.
    package let certificateChainPEM: String
    /// The private key in PEM (PKCS#8), not encrypted.
    package let privateKeyPEM: String

    /// A certificate with its key.
    package init(certificateChainPEM: String, privateKeyPEM: String) {
        self.certificateChainPEM = certificateChainPEM
        self.privateKeyPEM = privateKeyPEM
    }

    /// As what a connection shows.
    package var identity: TLSIdentity {
        TLSIdentity(certificateChain: .text(certificateChainPEM), privateKey: .text(privateKeyPEM))
    }

    /// The private key in PEM, encrypted with a pass phrase (AES-256).
    package func encryptedPrivateKeyPEM(passphrase: String) throws(TLSError) -> String {
        guard let key = PEMParser.privateKey(in: Array(privateKeyPEM.utf8)) else {
            throw TLSError(.identity(reason: "no readable private key", source: "an issued certificate"))
        }
        let secret = Array(passphrase.utf8).map { CChar(bitPattern: $0) }
        return unsafe try PEMWriter.text { bio in
            unsafe PEM_write_bio_PKCS8PrivateKey(
                bio, key.pointer, EVP_aes_256_cbc(), secret, Int32(secret.count), nil, nil)
        }
    }

    /// Certificates and key as a PKCS#12 file.
    /// - Parameters:
    ///   - passphrase: `nil` for none, which is not the same as an empty one.
    ///   - isLegacy: Whether it is encrypted as programs did 20 years ago: RC2 with 40 bits.
    /// - Throws: Also where OpenSSL's legacy provider is wanted and missing.
    package func pkcs12(passphrase: String?, isLegacy: Bool = false) throws(TLSError) -> [UInt8] {
        let library = isLegacy ? LegacyOpenSSLContext() : nil
        guard let certificates = PEMParser.certificates(in: Array(certificateChainPEM.utf8)),
            let leaf = certificates.first, isLegacy == (library != nil),
            let key = PEMParser.privateKey(in: Array(privateKeyPEM.utf8))
        else { throw TLSError(.identity(reason: "no readable private key", source: "an issued certificate")) }
        let others = unsafe OPENSSL_sk_new_null()
        defer { unsafe OPENSSL_sk_free(others) }
        for certificate in certificates.dropFirst() {
            unsafe OPENSSL_sk_push(others, UnsafeRawPointer(certificate.pointer))
        }
        let method = isLegacy ? NID_pbe_WithSHA1And40BitRC2_CBC : 0
        let file: OpaquePointer?
        if let passphrase {
            unsafe file = passphrase.withCString { text in
                unsafe PKCS12_create_ex(
                    text, "martlet", key.pointer, leaf.pointer, others, method, method, 0, 0, 0,
                    library?.pointer, nil)
            }
        } else {
            unsafe file = PKCS12_create_ex(
                nil, "martlet", key.pointer, leaf.pointer, others, method, method, 0, 0, 0, library?.pointer,
                nil)
        }
        guard let file = unsafe file else {
            throw TLSError(.configuration(reason: "making a PKCS#12 file: \(OpenSSLErrors.drain().text)"))
        }
        defer { unsafe PKCS12_free(file) }
        var output: UnsafeMutablePointer<UInt8>?
        let count = unsafe i2d_PKCS12(file, &output)
        guard count > 0, let output = unsafe output else { return [] }
        defer { unsafe CRYPTO_free(output, nil, 0) }
        return unsafe Array(UnsafeBufferPointer(start: output, count: Int(count)))
    }

    /// The certificate alone in DER.
    package var certificateDER: [UInt8] {
        let certificate = PEMParser.certificates(in: Array(certificateChainPEM.utf8))?.first
        return certificate.map { unsafe Certificate.der(of: $0.pointer) } ?? []
    }

    /// The private key in the traditional form of its kind, encrypted with a pass phrase (AES-256).
    package func traditionalPrivateKeyPEM(passphrase: String) throws(TLSError) -> String {
        guard let key = PEMParser.privateKey(in: Array(privateKeyPEM.utf8)) else {
            throw TLSError(.identity(reason: "no readable private key", source: "an issued certificate"))
        }
        let secret = Array(passphrase.utf8)
        return unsafe try PEMWriter.text { bio in
            unsafe PEM_write_bio_PrivateKey_traditional(
                bio, key.pointer, EVP_aes_256_cbc(), secret, Int32(secret.count), nil, nil)
        }
    }
}
