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
        case refused(String)
    }

    /// Judges a leaf whose chain is valid.
    /// - Parameter matchedName: The certificate's name that fitted the host, when one was asked for.
    static func verdict(on leaf: OpaquePointer, for purpose: Purpose, matchedName: String?) -> Verdict {
        let flags = unsafe X509_get_extension_flags(leaf)
        if flags & UInt32(EXFLAG_CA) != 0 {
            return .refused("it is an authority's own certificate, which must not stand for a host")
        }
        if flags & UInt32(EXFLAG_XKUSAGE) != 0 {
            let wanted = UInt32(purpose == .server ? XKU_SSL_SERVER : XKU_SSL_CLIENT)
            // "Any" is not enough: such a certificate was not made for this use (RFC 9525 and the CAs' own
            // rules).
            if unsafe X509_get_extended_key_usage(leaf) & wanted == 0 {
                return .refused(
                    "its extended key usage does not name TLS \(purpose == .server ? "servers" : "clients")")
            }
        }
        if let key = unsafe X509_get0_pubkey(leaf), unsafe EVP_PKEY_get_base_id(key) == EVP_PKEY_DSA {
            return .refused("its key is a DSA key")
        }
        if let matchedName, isTooWide(matchedName) { return .wrongName }
        return .good
    }

    /// Whether a wildcard has fewer than two labels behind it, and so would stand for everything below a
    /// top-level domain (RFC 9525 §6.3 leaves the limit to the verifier).
    static func isTooWide(_ name: String) -> Bool {
        guard name.utf8.first == UInt8(ascii: "*") else { return false }
        let labels = name.utf8.split(separator: UInt8(ascii: "."))
        return labels.count < 3
    }
}
