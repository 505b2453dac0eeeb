import COpenSSL

/// Makes revocation lists (RFC 5280 §5).
enum RevocationListBuilder {
    /// A list, in PEM.
    static func make(
        issuer: CertificateBuilder.Issuer, revoking revoked: [Certificate], issued: Duration,
        until end: Duration
    ) throws(TLSError) -> String {
        OpenSSLErrors.clear()
        guard let pointer = unsafe X509_CRL_new(),
            let authority = PEMReader.certificates(in: Array(issuer.certificatePEM.utf8))?.first,
            case .key(let key) = PEMReader.privateKey(in: Array(issuer.keyPEM.utf8), passphrase: nil)
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
