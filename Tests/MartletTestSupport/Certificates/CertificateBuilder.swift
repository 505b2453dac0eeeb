import CMartletOpenSSL
import MartletTransport

/// A builder of X.509 certificates (RFC 5280).
enum CertificateBuilder {
    /// The certificate and the key of the issuer.
    struct Issuer {
        let certificatePEM: String
        let keyPEM: String
    }

    /// A certificate and its key, in PEM.
    struct Made {
        let certificate: String
        let privateKey: String
    }

    /// Creates a certificate; without an issuer it is self-signed.
    static func make(_ template: CertificateTemplate, issuer: Issuer?) throws(TLSError) -> Made {
        OpenSSLErrors.clear()
        guard let keyPointer = unsafe generate(template.key), let pointer = unsafe X509_new() else {
            throw failure()
        }
        let key = unsafe PrivateKey(owning: keyPointer)
        let certificate = unsafe Certificate(owning: pointer)
        var (issuerCertificate, issuerKey) = (certificate, key)
        if let issuer {
            guard let found = PEMParser.certificates(in: Array(issuer.certificatePEM.utf8))?.first,
                let foundKey = PEMParser.privateKey(in: Array(issuer.keyPEM.utf8))
            else { throw failure() }
            (issuerCertificate, issuerKey) = (found, foundKey)
        }
        try fill(certificate, template: template, key: key, issuer: issuerCertificate)
        try addExtensions(to: certificate, template: template, issuer: issuerCertificate)
        guard unsafe X509_sign(certificate.pointer, issuerKey.pointer, digest(template.digest)) > 0 else {
            throw failure()
        }
        return Made(
            certificate: try PEMWriter.certificate(certificate), privateKey: try PEMWriter.privateKey(key))
    }

    private static func generate(_ key: CertificateTemplate.Key) -> OpaquePointer? {
        switch key {
        case .p256: unsafe martlet_generate_p256()
        case .rsa(let bits): unsafe martlet_generate_rsa(Int32(clamping: bits))
        }
    }

    private static func digest(_ digest: CertificateTemplate.Digest) -> OpaquePointer? {
        switch digest {
        case .sha256: unsafe EVP_sha256()
        case .sha1: unsafe EVP_sha1()
        case .md5: unsafe EVP_md5()
        }
    }

    private static func failure() -> TLSError {
        TLSError(.configuration(reason: "cannot create a certificate: \(OpenSSLErrors.drain().text)"))
    }

    private static func fill(
        _ certificate: Certificate, template: CertificateTemplate, key: PrivateKey, issuer: Certificate
    ) throws(TLSError) {
        let serial = template.serialNumber ?? (0..<16).map { _ in UInt8.random(in: 1...127) }
        let name = Array(template.commonName.utf8)
        guard let subject = unsafe X509_get_subject_name(certificate.pointer),
            unsafe X509_set_version(certificate.pointer, template.version) == 1,
            unsafe ASN1_STRING_set(
                X509_get_serialNumber(certificate.pointer), serial, Int32(serial.count)) == 1,
            unsafe X509_gmtime_adj(X509_getm_notBefore(certificate.pointer), seconds(template.notBefore))
                != nil,
            unsafe X509_gmtime_adj(X509_getm_notAfter(certificate.pointer), seconds(template.notAfter))
                != nil,
            unsafe X509_NAME_add_entry_by_NID(
                subject, NID_commonName, MBSTRING_UTF8, name, Int32(name.count), -1, 0) == 1,
            unsafe X509_set_issuer_name(certificate.pointer, X509_get_subject_name(issuer.pointer)) == 1,
            unsafe X509_set_pubkey(certificate.pointer, key.pointer) == 1
        else { throw failure() }
    }

    private static func seconds(_ duration: Duration) -> Int {
        Int(duration.wholeSeconds)
    }

    private static func addExtensions(
        to certificate: Certificate, template: CertificateTemplate, issuer: Certificate
    ) throws(TLSError) {
        // Version 3 introduced extensions.
        guard template.version == 2 else { return }
        let usage =
            template.keyUsage
            ?? (template.isAuthority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature")
        var constraints = template.hasCriticalConstraints ? "critical," : ""
        constraints += template.isAuthority ? "CA:TRUE" : "CA:FALSE"
        if let length = template.pathLength { constraints += ",pathlen:\(length)" }
        try add(NID_basic_constraints, constraints, certificate, issuer)
        let domains = template.permittedDomains.map { "permitted;DNS:\($0)" } + template.nameConstraints
        if !domains.isEmpty {
            let text = domains.joined(separator: ",")
            try add(NID_name_constraints, "critical,\(text)", certificate, issuer)
        }
        if !usage.isEmpty { try add(NID_key_usage, usage, certificate, issuer) }
        try add(NID_subject_key_identifier, "hash", certificate, issuer)
        if unsafe X509_get_version(issuer.pointer) == 2 {
            try add(NID_authority_key_identifier, "keyid:always", certificate, issuer)
        }
        if !template.usages.isEmpty {
            try add(
                NID_ext_key_usage, template.usages.map(\.rawValue).joined(separator: ","), certificate, issuer
            )
        }
        for item in template.extensions {
            let kind = unsafe OBJ_txt2obj(item.identifier, 1)
            defer { unsafe ASN1_OBJECT_free(kind) }
            unsafe try add(item.value, certificate) { octets in
                unsafe X509_EXTENSION_create_by_OBJ(nil, kind, item.isCritical ? 1 : 0, octets)
            }
        }
        guard let names = template.alternativeNames else { return }
        unsafe try add(names, certificate) { octets in
            unsafe X509_EXTENSION_create_by_NID(
                nil, NID_subject_alt_name, template.hasCriticalNames ? 1 : 0, octets)
        }
    }

    /// Adds an extension with an encoded value.
    private static func add(
        _ value: [UInt8], _ certificate: Certificate,
        _ make: (UnsafeMutablePointer<ASN1_OCTET_STRING>) -> OpaquePointer?
    ) throws(TLSError) {
        guard let octets = unsafe ASN1_OCTET_STRING_new() else { throw failure() }
        defer { unsafe ASN1_OCTET_STRING_free(octets) }
        guard unsafe ASN1_OCTET_STRING_set(octets, value, Int32(value.count)) == 1,
            let item = unsafe make(octets)
        else { throw failure() }
        defer { unsafe X509_EXTENSION_free(item) }
        guard unsafe X509_add_ext(certificate.pointer, item, -1) == 1 else { throw failure() }
    }

    /// Adds an extension in the syntax of OpenSSL's configuration files; only fixed texts are passed.
    private static func add(
        _ identifier: Int32, _ value: String, _ certificate: Certificate, _ issuer: Certificate
    ) throws(TLSError) {
        var context = unsafe X509V3_CTX()
        unsafe X509V3_set_ctx(&context, issuer.pointer, certificate.pointer, nil, nil, 0)
        guard let item = unsafe X509V3_EXT_conf_nid(nil, &context, identifier, value) else { throw failure() }
        defer { unsafe X509_EXTENSION_free(item) }
        guard unsafe X509_add_ext(certificate.pointer, item, -1) == 1 else { throw failure() }
    }
}

/// A builder of revocation lists (RFC 5280 §5).
enum RevocationListBuilder {
    /// Creates a list and returns it in PEM.
    static func make(
        issuer: CertificateBuilder.Issuer, revoking revoked: [Certificate], issued: Duration,
        until end: Duration
    ) throws(TLSError) -> String {
        OpenSSLErrors.clear()
        guard let pointer = unsafe X509_CRL_new(),
            let authority = PEMParser.certificates(in: Array(issuer.certificatePEM.utf8))?.first,
            let key = PEMParser.privateKey(in: Array(issuer.keyPEM.utf8))
        else { throw failure() }
        let list = unsafe RevocationList(owning: pointer)
        let (first, last) = (unsafe ASN1_TIME_new(), unsafe ASN1_TIME_new())
        defer {
            unsafe ASN1_TIME_free(first)
            unsafe ASN1_TIME_free(last)
        }
        guard unsafe X509_CRL_set_version(list.pointer, 1) == 1,
            unsafe X509_CRL_set_issuer_name(list.pointer, X509_get_subject_name(authority.pointer)) == 1,
            unsafe X509_gmtime_adj(first, Int(issued.wholeSeconds)) != nil,
            unsafe X509_gmtime_adj(last, Int(end.wholeSeconds)) != nil,
            unsafe X509_CRL_set1_lastUpdate(list.pointer, first) == 1,
            unsafe X509_CRL_set1_nextUpdate(list.pointer, last) == 1
        else { throw failure() }
        for certificate in revoked {
            guard let entry = unsafe X509_REVOKED_new() else { throw failure() }
            guard
                unsafe X509_REVOKED_set_serialNumber(
                    entry, X509_get_serialNumber(certificate.pointer)) == 1,
                unsafe X509_REVOKED_set_revocationDate(entry, first) == 1,
                unsafe X509_CRL_add0_revoked(list.pointer, entry) == 1
            else {
                unsafe X509_REVOKED_free(entry)
                throw failure()
            }
        }
        let number = unsafe ASN1_INTEGER_new()
        defer { unsafe ASN1_INTEGER_free(number) }
        guard unsafe ASN1_INTEGER_set(number, 1) == 1,
            unsafe X509_CRL_add1_ext_i2d(list.pointer, NID_crl_number, number, 0, 0) == 1
        else { throw failure() }
        try add(NID_authority_key_identifier, "keyid:always", list, authority)
        guard unsafe X509_CRL_sort(list.pointer) == 1,
            unsafe X509_CRL_sign(list.pointer, key.pointer, EVP_sha256()) > 0
        else { throw failure() }
        return unsafe try PEMWriter.text { bio in unsafe PEM_write_bio_X509_CRL(bio, list.pointer) }
    }

    private static func add(
        _ identifier: Int32, _ value: String, _ list: RevocationList, _ authority: Certificate
    ) throws(TLSError) {
        var context = unsafe X509V3_CTX()
        unsafe X509V3_set_ctx(&context, authority.pointer, nil, nil, list.pointer, 0)
        guard let item = unsafe X509V3_EXT_conf_nid(nil, &context, identifier, value) else { throw failure() }
        defer { unsafe X509_EXTENSION_free(item) }
        guard unsafe X509_CRL_add_ext(list.pointer, item, -1) == 1 else { throw failure() }
    }

    private static func failure() -> TLSError {
        TLSError(.configuration(reason: "making a revocation list: \(OpenSSLErrors.drain().text)"))
    }
}

extension PEMWriter {
    /// Returns a certificate in PEM.
    static func certificate(_ certificate: Certificate) throws(TLSError) -> String {
        unsafe try text { bio in unsafe PEM_write_bio_X509(bio, certificate.pointer) }
    }

    /// Returns an unencrypted private key in PEM.
    static func privateKey(_ key: PrivateKey) throws(TLSError) -> String {
        unsafe try text { bio in unsafe PEM_write_bio_PKCS8PrivateKey(bio, key.pointer, nil, nil, 0, nil, nil)
        }
    }
}
