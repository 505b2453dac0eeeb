import CMartletOpenSSL
import MartletTransport

/// A temporary certificate for tests (RFC 5280), with its P-256 key. Neither is written to disk.
struct OriginCertificate {
    enum Purpose { case authority, server, client }

    /// The certificate and the private key (PKCS#8) in PEM.
    let identity: OriginCredentials.Identity
    private let certificate: Certificate
    private let key: PrivateKey

    /// Creates a certificate. Without an issuer it is self-signed.
    /// - Parameters:
    ///   - commonName: The subject's common name. Martlet never compares it with a host name.
    ///   - names: The alternative names: host names and address literals.
    ///   - validity: The period of validity, in seconds relative to now.
    init(
        _ purpose: Purpose, _ commonName: String, names: [String] = [], validity: ClosedRange<Int> = -3600...86_400,
        issuer: OriginCertificate? = nil
    ) throws(TLSError) {
        OpenSSLErrors.clear()
        guard let keyPointer = unsafe martlet_generate_p256(), let pointer = unsafe X509_new() else {
            throw OriginCertificate.failure()
        }
        key = unsafe PrivateKey(owning: keyPointer)
        certificate = unsafe Certificate(owning: pointer)
        let issuerCertificate = issuer?.certificate ?? certificate
        let serial = (0..<16).map { _ in UInt8.random(in: 1...127) }
        let name = Array(commonName.utf8)
        guard let subject = unsafe X509_get_subject_name(pointer), unsafe X509_set_version(pointer, 2) == 1,
            unsafe ASN1_STRING_set(X509_get_serialNumber(pointer), serial, Int32(serial.count)) == 1,
            unsafe X509_gmtime_adj(X509_getm_notBefore(pointer), validity.lowerBound) != nil,
            unsafe X509_gmtime_adj(X509_getm_notAfter(pointer), validity.upperBound) != nil,
            unsafe X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, name, Int32(name.count), -1, 0)
                == 1, unsafe X509_set_issuer_name(pointer, X509_get_subject_name(issuerCertificate.pointer)) == 1,
            unsafe X509_set_pubkey(pointer, keyPointer) == 1
        else { throw OriginCertificate.failure() }
        let isAuthority = purpose == .authority
        // The subject key identifier comes first: for a self-signed certificate, the authority's is copied from it.
        var extensions = [
            (NID_basic_constraints, isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE"),
            (NID_key_usage, isAuthority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature"),
            (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid:always"),
        ]
        if !isAuthority { extensions.append((NID_ext_key_usage, purpose == .server ? "serverAuth" : "clientAuth")) }
        for (identifier, value) in extensions {
            var context = unsafe X509V3_CTX()
            unsafe X509V3_set_ctx(&context, issuerCertificate.pointer, pointer, nil, nil, 0)
            let item = unsafe X509V3_EXT_conf_nid(nil, &context, identifier, value)
            defer { unsafe X509_EXTENSION_free(item) }
            guard unsafe item != nil, unsafe X509_add_ext(pointer, item, -1) == 1 else {
                throw OriginCertificate.failure()
            }
        }
        unsafe try OriginCertificate.add(names, to: pointer)
        guard unsafe X509_sign(pointer, (issuer?.key ?? key).pointer, EVP_sha256()) > 0 else {
            throw OriginCertificate.failure()
        }
        identity = OriginCredentials.Identity(
            certificatePEM: unsafe try PEMWriter.text { bio in unsafe PEM_write_bio_X509(bio, pointer) },
            privateKeyPEM: unsafe try PEMWriter.text { bio in
                unsafe PEM_write_bio_PKCS8PrivateKey(bio, keyPointer, nil, nil, 0, nil, nil)
            })
    }

    private static func add(_ names: [String], to certificate: OpaquePointer) throws(TLSError) {
        if names.isEmpty { return }
        let list = unsafe OPENSSL_sk_new_null()
        defer { unsafe GENERAL_NAMES_free(list) }
        for name in names {
            let kind = SocketAddress(literal: name, port: 0) == nil ? GEN_DNS : GEN_IPADD
            guard let item = unsafe a2i_GENERAL_NAME(nil, nil, nil, kind, name, 0) else { throw failure() }
            unsafe OPENSSL_sk_push(list, item)
        }
        let names = unsafe UnsafeMutableRawPointer(list)
        guard unsafe X509_add1_ext_i2d(certificate, NID_subject_alt_name, names, 0, 0) == 1 else { throw failure() }
    }

    private static func failure() -> TLSError {
        TLSError(.configuration(reason: "cannot create a certificate: \(OpenSSLErrors.drain().text)"))
    }

    /// The last common name in the subject of a DER certificate. The TLS handshake has verified the certificate.
    /// - Returns: `nil` without a common name, or if the bytes are not a certificate.
    static func commonName(inDER der: [UInt8]) -> String? {
        guard let certificate = PEMParser.certificates(in: der)?.first,
            let subject = unsafe X509_get_subject_name(certificate.pointer)
        else { return nil }
        var (last, place): (Int32, Int32) = (-1, -1)
        repeat {
            last = place
            place = unsafe X509_NAME_get_index_by_NID(subject, NID_commonName, last)
        } while place >= 0
        guard last >= 0, let value = unsafe X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, last)) else {
            return nil
        }
        return unsafe String(
            decoding: UnsafeBufferPointer(start: ASN1_STRING_get0_data(value), count: Int(ASN1_STRING_length(value))),
            as: UTF8.self)
    }
}
