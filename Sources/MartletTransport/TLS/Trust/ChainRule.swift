import COpenSSL

/// What every certificate of a verified chain must be, beyond what OpenSSL asks of it (RFC 5280 §4, and the rules that the
/// public authorities have agreed on).
enum ChainRule {
    /// Far more extensions than any certificate has; a bound on the work of comparing them.
    private static let extensionLimit = 64

    /// Why a chain is refused; `nil` when it is not.
    /// - Parameter chain: The leaf first, the trust anchor last.
    static func fault(of chain: [OpaquePointer]) -> TLSError.Kind? {
        defer { OpenSSLErrors.clear() }
        for index in unsafe chain.indices {
            let certificate = unsafe chain[index]
            if let fault = unsafe fault(of: certificate) { return fault }
            // What an anchor says of itself binds nobody: it is trusted as it is.
            guard unsafe index < chain.count - 1 else { continue }
            if let fault = unsafe formalFault(of: certificate) {
                return .badCertificate(reason: fault, code: Int(X509_V_ERR_CERT_REJECTED))
            }
        }
        return unsafe wildcardFault(in: chain)
    }

    /// A wildcard of the leaf that stands for a host which an authority above it is not to sign for (RFC 5280 §4.2.1.10).
    /// OpenSSL compares the wildcard as if it were a name, and so sees no host below it.
    private static func wildcardFault(in chain: [OpaquePointer]) -> TLSError.Kind? {
        guard let leaf = unsafe chain.first else { return nil }
        for index in unsafe chain.indices.dropFirst()
        where unsafe martlet_has_excluded_wildcard(leaf, chain[index]) != 0 {
            return .badCertificate(
                reason: "a wildcard stands for a host that its authority must not sign for",
                code: Int(X509_V_ERR_EXCLUDED_VIOLATION))
        }
        return nil
    }

    private static func fault(of certificate: OpaquePointer) -> TLSError.Kind? {
        if let key = unsafe X509_get0_pubkey(certificate) {
            if unsafe EVP_PKEY_get_base_id(key) == EVP_PKEY_DSA {
                return .weakKey(reason: "a DSA key, which no server or authority uses any more")
            }
            let bits = unsafe martlet_rsa_bits(key)
            if bits % 8 != 0 {
                return .weakKey(reason: "an RSA key of \(bits) bits, which is no whole number of bytes")
            }
        }
        let reason: String? =
            if unsafe hasDuplicateExtensions(certificate) {
                "it has an extension twice, or far too many"
            } else if unsafe martlet_name_constraints_are_malformed(certificate) != 0 {
                "its name constraints are empty or malformed"
            } else { nil }
        return reason.map { .badCertificate(reason: $0, code: Int(X509_V_ERR_INVALID_EXTENSION)) }
    }

    private static func formalFault(of certificate: OpaquePointer) -> String? {
        let serial = unsafe X509_get0_serialNumber(certificate)
        var number: Int64 = 0
        let isSmall = unsafe ASN1_INTEGER_get_int64(&number, serial) == 1
        let isNegative = unsafe ASN1_STRING_type(serial) == V_ASN1_NEG_INTEGER
        let isLong = unsafe ASN1_STRING_length(serial) > 20
        if isNegative || isLong || (isSmall && number <= 0) {
            return "its serial number is not a positive one of at most 20 bytes"
        }
        if unsafe isCritical(certificate, NID_info_access) == true {
            return "its authority information access is marked as critical"
        }
        if unsafe isMalformed(certificate, NID_info_access) {
            return "its authority information access is malformed"
        }
        for identifier in [NID_policy_constraints, NID_inhibit_any_policy]
        where unsafe isCritical(certificate, identifier) == false {
            return "its constraints on policies are not marked as critical"
        }
        return nil
    }

    private static func hasDuplicateExtensions(_ certificate: OpaquePointer) -> Bool {
        let count = unsafe X509_get_ext_count(certificate)
        guard count <= extensionLimit else { return true }
        for index in 0..<max(0, count) {
            let kind = unsafe X509_EXTENSION_get_object(X509_get_ext(certificate, index))
            if unsafe X509_get_ext_by_OBJ(certificate, kind, index) >= 0 { return true }
        }
        return false
    }

    /// Whether an extension is critical; `nil` when there is none.
    static func isCritical(_ certificate: OpaquePointer, _ identifier: Int32) -> Bool? {
        let index = unsafe X509_get_ext_by_NID(certificate, identifier, -1)
        guard index >= 0 else { return nil }
        return unsafe X509_EXTENSION_get_critical(X509_get_ext(certificate, index)) == 1
    }

    /// Whether an extension is there and cannot be read.
    private static func isMalformed(_ certificate: OpaquePointer, _ identifier: Int32) -> Bool {
        let index = unsafe X509_get_ext_by_NID(certificate, identifier, -1)
        guard index >= 0 else { return false }
        guard let value = unsafe X509V3_EXT_d2i(X509_get_ext(certificate, index)) else { return true }
        unsafe AUTHORITY_INFO_ACCESS_free(OpaquePointer(value))
        return false
    }
}

/// What pins are compared with: the chain that was verified, or the leaf alone where nothing was verified, since of no
/// other key it is proven that the server has it.
///
/// Kept with the session of a connection, so that the connections that resume it are held to the pins as well.
struct ChainEvidence: Hashable, Sendable {
    /// The keys, the leaf's first.
    var publicKeys: [PublicKeyPin]
    /// SHA-256 of each certificate, the leaf's first.
    var certificates: [[UInt8]]

    /// The evidence of certificates, the leaf first.
    init(_ chain: [OpaquePointer]) {
        unsafe publicKeys = chain.map { unsafe PublicKeyPin(of: $0) }
        unsafe certificates = chain.map { unsafe Certificate.sha256(of: $0) }
    }
}

/// Which wildcards stand for hosts whose name has an underscore, as `my_host.example.com` does.
///
/// OpenSSL lets a wildcard stand for letters, digits and hyphens alone, while everybody else takes the first label as it is
/// (RFC 9525 §6.3). Other names are left to OpenSSL.
enum UnderscoreRule {
    /// Whether a host is one of those.
    static func concerns(_ host: String) -> Bool { host.utf8.contains(UInt8(ascii: "_")) }

    /// Whether a certificate's names have a wildcard that stands for the host's first label.
    /// - Parameters:
    ///   - host: In ASCII and lower case, without a trailing dot.
    ///   - names: The alternative names of the certificate; see ``Certificate/names(of:)``.
    ///   - suffixes: Below which domains a wildcard would stand for too much.
    static func isNamed(_ host: String, among names: [String], suffixes: PublicSuffixRule) -> Bool {
        guard concerns(host), let dot = host.utf8.firstIndex(of: UInt8(ascii: ".")) else { return false }
        let domain = host[dot...].dropFirst()
        // As OpenSSL has it: two labels at the least.
        guard dot != host.startIndex, domain.utf8.contains(UInt8(ascii: ".")) else { return false }
        let wildcard = "*.\(domain)"
        return !LeafRule.isTooWide(wildcard, suffixes) && names.contains { $0.lowercased() == wildcard }
    }
}
