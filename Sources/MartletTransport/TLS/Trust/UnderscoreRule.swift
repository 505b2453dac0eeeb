/// Which wildcards stand for hosts whose name has an underscore, as `my_host.example.com` does.
///
/// OpenSSL lets a wildcard stand for letters, digits and hyphens alone, while everybody else takes the first label as it is
/// (RFC 9525 §6.3). Other names are left to OpenSSL.
enum UnderscoreRule {
    /// Whether a host is one of those.
    static func concerns(_ host: String) -> Bool {
        host.utf8.contains(UInt8(ascii: "_"))
    }

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
