import CMartletOpenSSL

/// The requirements for every certificate of a verified chain, beyond those of OpenSSL (RFC 5280 §4, and the Baseline
/// Requirements of the CA/Browser Forum).
enum ChainRule {
    /// The maximum number of extensions; real certificates have fewer. It limits the work of finding duplicates.
    private static let extensionLimit = 64

    /// The first error of a chain; `nil` if it has none.
    /// - Parameter chain: The leaf first, the trust anchor last.
    static func verificationError(of chain: [OpaquePointer]) -> TLSError.Kind? {
        defer { OpenSSLErrors.clear() }
        for index in unsafe chain.indices {
            let certificate = unsafe chain[index]
            if let verificationError = unsafe verificationError(of: certificate) { return verificationError }
            // The form of a trust anchor does not matter.
            guard unsafe index < chain.count - 1 else { continue }
            if let reason = unsafe formalError(of: certificate) {
                return .badCertificate(reason: reason, code: Int(X509_V_ERR_CERT_REJECTED))
            }
        }
        // OpenSSL compares a wildcard of the leaf with name constraints as if it were a host name. So it misses
        // excluded hosts that the wildcard matches (RFC 5280 §4.2.1.10).
        guard let leaf = unsafe chain.first,
            unsafe chain.dropFirst().contains(where: { unsafe martlet_has_excluded_wildcard(leaf, $0) != 0 })
        else { return nil }
        return .badCertificate(
            reason: "a wildcard matches a host that the name constraints of an authority exclude",
            code: Int(X509_V_ERR_EXCLUDED_VIOLATION))
    }

    private static func verificationError(of certificate: OpaquePointer) -> TLSError.Kind? {
        if let key = unsafe X509_get0_pubkey(certificate) {
            if unsafe EVP_PKEY_get_base_id(key) == EVP_PKEY_DSA {
                return .weakKey(reason: "a DSA key, which is obsolete")
            }
            let bits = unsafe martlet_rsa_bits(key)
            if bits % 8 != 0 { return .weakKey(reason: "an RSA key of \(bits) bits, which is not a multiple of 8") }
        }
        let reason: String? =
            if unsafe hasDuplicateExtensions(certificate) {
                "it has an extension twice, or more than \(extensionLimit) extensions"
            } else if unsafe martlet_name_constraints_are_malformed(certificate) != 0 {
                "its name constraints are empty or malformed"
            } else { nil }
        return reason.map { .badCertificate(reason: $0, code: Int(X509_V_ERR_INVALID_EXTENSION)) }
    }

    private static func formalError(of certificate: OpaquePointer) -> String? {
        let serial = unsafe X509_get0_serialNumber(certificate)
        var number: Int64 = 0
        let isZero = unsafe ASN1_INTEGER_get_int64(&number, serial) == 1 && number == 0
        let isNegative = unsafe ASN1_STRING_type(serial) == V_ASN1_NEG_INTEGER
        if unsafe isNegative || isZero || ASN1_STRING_length(serial) > 20 {
            return "its serial number is not positive, or longer than 20 bytes"
        }
        if unsafe isCritical(certificate, NID_info_access) == true {
            return "its authority information access is marked as critical"
        }
        if unsafe hasMalformedInfoAccess(certificate) { return "its authority information access is malformed" }
        for identifier in [NID_policy_constraints, NID_inhibit_any_policy]
        where unsafe isCritical(certificate, identifier) == false {
            return "its policy constraints are not marked as critical"
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

    /// Whether an extension is critical; `nil` without the extension.
    static func isCritical(_ certificate: OpaquePointer, _ identifier: Int32) -> Bool? {
        let index = unsafe X509_get_ext_by_NID(certificate, identifier, -1)
        guard index >= 0 else { return nil }
        return unsafe X509_EXTENSION_get_critical(X509_get_ext(certificate, index)) == 1
    }

    private static func hasMalformedInfoAccess(_ certificate: OpaquePointer) -> Bool {
        let index = unsafe X509_get_ext_by_NID(certificate, NID_info_access, -1)
        guard index >= 0 else { return false }
        guard let value = unsafe X509V3_EXT_d2i(X509_get_ext(certificate, index)) else { return true }
        unsafe AUTHORITY_INFO_ACCESS_free(OpaquePointer(value))
        return false
    }
}

/// The requirements for a peer's own certificate, beyond those of OpenSSL.
enum LeafRule {
    /// The error of a leaf whose chain is valid; `nil` if it has none.
    /// - Parameters:
    ///   - isServer: Whether the certificate is a server's.
    ///   - matchedName: The certificate's name that matched the host, if one was requested.
    ///   - isNamed: Whether this certificate itself is pinned or a given root. It may then be an authority's, such as
    ///     one that `openssl req -x509` creates.
    static func verificationError(
        of leaf: OpaquePointer, isServer: Bool, matchedName: String?, host: String, isNamed: Bool,
        suffixes: PublicSuffixRule
    ) -> TLSError.Kind? {
        let flags = unsafe X509_get_extension_flags(leaf)
        if flags & UInt32(EXFLAG_CA) != 0, !isNamed {
            return bad("it is the certificate of an authority, which is not valid for a host")
        }
        if flags & UInt32(EXFLAG_XKUSAGE) != 0 {
            let wanted = UInt32(isServer ? XKU_SSL_SERVER : XKU_SSL_CLIENT)
            // `anyExtendedKeyUsage` is not enough (RFC 9525, and the Baseline Requirements of the CA/Browser Forum).
            if unsafe X509_get_extended_key_usage(leaf) & wanted == 0 {
                let kind = isServer ? "servers" : "clients"
                return .wrongPurpose(reason: "its extended key usage does not include TLS \(kind)")
            }
        }
        if flags & UInt32(EXFLAG_CA) == 0, unsafe ChainRule.isCritical(leaf, NID_name_constraints) != nil {
            return bad("it has name constraints, which only the certificate of an authority may have")
        }
        if unsafe ChainRule.isCritical(leaf, NID_subject_alt_name) == true,
            unsafe X509_NAME_entry_count(X509_get_subject_name(leaf)) > 0
        {
            return bad("its subject alternative names are marked as critical although its subject is not empty")
        }
        if let matchedName, isTooWide(matchedName, suffixes), unsafe !isNamedInFull(host, by: leaf) {
            return unsafe .nameMismatch(Certificate.names(of: leaf))
        }
        return nil
    }

    private static func bad(_ reason: String) -> TLSError.Kind {
        .badCertificate(reason: reason, code: Int(X509_V_ERR_INVALID_PURPOSE))
    }

    /// Whether a wildcard would match everything below a public suffix; RFC 9525 §6.3 leaves the limit open.
    static func isTooWide(_ name: String, _ suffixes: PublicSuffixRule = .singleLabel) -> Bool {
        guard name.utf8.first == UInt8(ascii: "*") else { return false }
        var domain = name.utf8.dropFirst().drop { $0 == UInt8(ascii: ".") }
        if domain.last == UInt8(ascii: ".") { domain = domain.dropLast() }
        return suffixes.isPublicSuffix(String(Substring(domain)).lowercased())
    }

    /// Whether a certificate also contains the host without a wildcard.
    private static func isNamedInFull(_ host: String, by leaf: OpaquePointer) -> Bool {
        let flags = UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_WILDCARDS)
        return unsafe X509_check_host(leaf, host, host.utf8.count, flags, nil) == 1
    }
}

/// The wildcards that match hosts with an underscore, such as `my_host.example.com`. In OpenSSL a wildcard matches only
/// letters, digits and hyphens; by RFC 9525 §6.3 it matches any first label. OpenSSL matches all other hosts.
enum UnderscoreRule {
    /// Whether a host has an underscore.
    static func concerns(_ host: String) -> Bool { host.utf8.contains(UInt8(ascii: "_")) }

    /// Whether the names of a certificate include a wildcard that matches the host's first label.
    /// - Parameters:
    ///   - host: In ASCII and lower case, without a trailing dot.
    ///   - names: The alternative names of the certificate; see ``Certificate/names(of:)``.
    ///   - suffixes: The domains directly below which no wildcard is accepted.
    static func isNamed(_ host: String, among names: [String], suffixes: PublicSuffixRule) -> Bool {
        guard concerns(host), let dot = host.utf8.firstIndex(of: UInt8(ascii: ".")) else { return false }
        let domain = host[dot...].dropFirst()
        // The domain must have at least two labels, as in OpenSSL.
        guard dot != host.startIndex, domain.utf8.contains(UInt8(ascii: ".")) else { return false }
        let wildcard = "*.\(domain)"
        return !LeafRule.isTooWide(wildcard, suffixes) && names.contains { $0.lowercased() == wildcard }
    }
}
