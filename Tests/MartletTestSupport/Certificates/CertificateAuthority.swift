import CMartletOpenSSL
package import MartletTransport

/// A certificate authority that is created at run time for tests. Its key exists only in this process.
package struct CertificateAuthority: Hashable, Sendable {
    /// The root certificate in PEM, which a client trusts.
    package let rootPEM: String
    /// This authority's own certificate in PEM; the root certificate unless it is an intermediate.
    package let certificatePEM: String
    private let privateKeyPEM: String
    /// The certificates between the issued ones and the root, in PEM.
    private let intermediatesPEM: String

    /// Creates a root authority with a P-256 key.
    /// - Parameter change: Changes the certificate's template.
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

    /// The trust policy that accepts only the root certificate.
    package var trust: TrustPolicy { .only(.text(rootPEM)) }

    /// Issues a certificate with a new key.
    package func issue(_ template: CertificateTemplate) throws(TLSError) -> IssuedCertificate {
        let issued = try CertificateBuilder.make(
            template, issuer: CertificateBuilder.Issuer(certificatePEM: certificatePEM, keyPEM: privateKeyPEM)
        )
        return IssuedCertificate(
            certificateChainPEM: issued.certificate + intermediatesPEM, privateKeyPEM: issued.privateKey)
    }

    /// Returns a list of revoked certificates of this authority, in PEM.
    /// - Parameters:
    ///   - revoked: Certificates in PEM, the first of each text.
    ///   - issued: The time of issue, relative to now.
    ///   - end: The time of the next update, relative to now.
    package func revocationList(
        revoking revoked: [String] = [], issued: Duration = .seconds(-3600),
        until end: Duration = .seconds(86_400)
    ) throws(TLSError) -> String {
        try RevocationListBuilder.make(
            issuer: CertificateBuilder.Issuer(certificatePEM: certificatePEM, keyPEM: privateKeyPEM),
            revoking: revoked.compactMap { PEMParser.certificates(in: Array($0.utf8))?.first },
            issued: issued, until: end)
    }

    /// Creates an authority below this one, whose certificate is part of the chains that it issues.
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

    /// Creates a self-signed certificate.
    package static func selfSigned(_ template: CertificateTemplate) throws(TLSError) -> IssuedCertificate {
        let issued = try CertificateBuilder.make(template, issuer: nil)
        return IssuedCertificate(certificateChainPEM: issued.certificate, privateKeyPEM: issued.privateKey)
    }
}

/// A temporary certificate with its private key.
package struct IssuedCertificate: Hashable, Sendable {
    /// The certificate, followed by the certificates of the authorities below the root, in PEM.
    package let certificateChainPEM: String
    /// The unencrypted private key in PEM (PKCS#8).
    package let privateKeyPEM: String

    /// Creates a certificate from PEM texts.
    package init(certificateChainPEM: String, privateKeyPEM: String) {
        self.certificateChainPEM = certificateChainPEM
        self.privateKeyPEM = privateKeyPEM
    }

    /// The certificate as the identity of a connection.
    package var identity: TLSIdentity {
        TLSIdentity(certificateChain: .text(certificateChainPEM), privateKey: .text(privateKeyPEM))
    }

    /// Returns the private key in PEM, encrypted with a passphrase (AES-256).
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

    /// Returns the certificates and the key as a PKCS#12 file.
    /// - Parameters:
    ///   - passphrase: The passphrase; `nil` for none, which differs from an empty one.
    ///   - isLegacy: Whether the file is encrypted with the outdated RC2 with 40 bits.
    /// - Throws: An error also if OpenSSL's legacy provider is required and missing.
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

    /// The leaf certificate in DER.
    package var certificateDER: [UInt8] {
        let certificate = PEMParser.certificates(in: Array(certificateChainPEM.utf8))?.first
        return certificate.map { unsafe Certificate.der(of: $0.pointer) } ?? []
    }

    /// Returns the private key in the traditional format of its type, encrypted with a passphrase (AES-256).
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
