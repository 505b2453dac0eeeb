import COpenSSL

/// What a peer's own certificate must be, beyond what OpenSSL asks of it.
enum LeafRule {
    /// What the certificate is shown for.
    enum Purpose {
        case server
        case client
    }

    /// What the rule says.
    enum Verdict: Equatable {
        case good
        /// The name fits by a wildcard that stands for too much.
        case wrongName
        case refused(TLSError.Kind)
    }

    /// Judges a leaf whose chain is valid.
    /// - Parameters:
    ///   - matchedName: The certificate's name that fitted the host, when one was asked for.
    ///   - host: The host.
    ///   - isNamed: Whether this very certificate is pinned, or given as a root, and so may be an authority's, as those
    ///     that `openssl req -x509` makes are.
    static func verdict(
        on leaf: OpaquePointer, for purpose: Purpose, matchedName: String? = nil, host: String = "",
        isNamed: Bool = false, suffixes: PublicSuffixRule = .singleLabel
    ) -> Verdict {
        let flags = unsafe X509_get_extension_flags(leaf)
        if flags & UInt32(EXFLAG_CA) != 0, !isNamed {
            return refused("it is an authority's own certificate, which must not stand for a host")
        }
        if flags & UInt32(EXFLAG_XKUSAGE) != 0 {
            let wanted = UInt32(purpose == .server ? XKU_SSL_SERVER : XKU_SSL_CLIENT)
            // "Any" is not enough: such a certificate was not made for this use (RFC 9525 and the CAs' own
            // rules).
            if unsafe X509_get_extended_key_usage(leaf) & wanted == 0 {
                return .refused(
                    .wrongPurpose(
                        reason: "its extended key usage does not name TLS"
                            + " \(purpose == .server ? "servers" : "clients")"))
            }
        }
        if flags & UInt32(EXFLAG_CA) == 0, unsafe ChainRule.isCritical(leaf, NID_name_constraints) != nil {
            return refused("it has name constraints, which only an authority's may have")
        }
        if unsafe ChainRule.isCritical(leaf, NID_subject_alt_name) == true,
            unsafe X509_NAME_entry_count(X509_get_subject_name(leaf)) > 0
        {
            return refused("its alternative names are marked as critical though it has a subject")
        }
        if let matchedName, isTooWide(matchedName, suffixes), unsafe !isNamedInFull(host, by: leaf) {
            return .wrongName
        }
        return .good
    }

    private static func refused(_ reason: String) -> Verdict {
        .refused(.badCertificate(reason: reason, code: Int(X509_V_ERR_INVALID_PURPOSE)))
    }

    /// Whether a wildcard would stand for everything below a public suffix (RFC 9525 §6.3 leaves the limit to the
    /// verifier).
    static func isTooWide(_ name: String, _ suffixes: PublicSuffixRule = .singleLabel) -> Bool {
        guard name.utf8.first == UInt8(ascii: "*") else { return false }
        var domain = name.utf8.dropFirst().drop { $0 == UInt8(ascii: ".") }
        if domain.last == UInt8(ascii: ".") { domain = domain.dropLast() }
        return suffixes.isPublicSuffix(String(Substring(domain)).lowercased())
    }

    /// Whether a certificate also names the host without a wildcard.
    private static func isNamedInFull(_ host: String, by leaf: OpaquePointer) -> Bool {
        let flags = UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_WILDCARDS)
        return unsafe X509_check_host(leaf, host, host.utf8.count, flags, nil) == 1
    }
}
