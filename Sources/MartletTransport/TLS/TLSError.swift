/// Why a TLS connection could not be made, or had to be given up.
public struct TLSError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What went wrong.
    public enum Kind: Hashable, Sendable {
        /// The certificate is valid but made out to another name. Carries the names it is made out to.
        case nameMismatch([String])
        /// A certificate's time is over.
        case expired
        /// A certificate's time has not come; often this machine's clock is wrong.
        case notYetValid
        /// The chain ends in an authority that is not trusted.
        case unknownAuthority
        /// The server vouches for itself.
        case selfSigned
        /// The certificate was revoked.
        case revoked
        /// Whether the certificate was revoked cannot be told: its authority's list is missing, too old or not
        /// authentic.
        case revocationUnknown(reason: String)
        /// The chain is valid and has none of the pinned keys or certificates. Carries the keys it has, the server's own
        /// first.
        case pinMismatch(found: [PublicKeyPin])
        /// The custom trust policy said no.
        case denied(reason: String)
        /// A key in the chain is too short, or of a kind that is given up.
        case weakKey(reason: String)
        /// A signature in the chain is over a broken digest.
        case weakSignature(reason: String)
        /// The certificate, or an authority's, was not made for this use.
        case wrongPurpose(reason: String)
        /// Any other fault of a certificate: what it is, with OpenSSL's number.
        case badCertificate(reason: String, code: Int)
        /// No trusted authorities were found on this machine, so nothing can be verified: the places looked
        /// at.
        case noTrustRoots(searched: [String])
        /// The two sides speak no common version of TLS.
        case protocolVersion
        /// The handshake failed otherwise, as when the peer does not speak TLS.
        case handshake(reason: String)
        /// The peer refused with an alert (RFC 8446 §6.2): its number and OpenSSL's text.
        case alert(number: Int, text: String)
        /// The server demands a certificate of this side, and none is configured for it.
        case clientCertificateRequired
        /// The server does not accept the certificate that this side has shown: its alert's number and OpenSSL's text.
        case clientCertificateRefused(alert: Int, text: String)
        /// The stream ended without a `close_notify`, so anybody may have cut it.
        case truncated
        /// This side's own certificate or key cannot be used: why, and where it came from.
        case identity(reason: String, source: String)
        /// This side's private key, or the file it is in, is encrypted, and no pass phrase was given.
        case passphraseRequired(source: String)
        /// The pass phrase does not open this side's private key or the file it is in.
        case wrongPassphrase(source: String)
        /// Certificates that are to be trusted, or are pinned, cannot be used: why, and where they came from.
        case rootCertificates(reason: String, source: String)
        /// A revocation list cannot be used: why, and where it came from.
        case revocationList(reason: String, source: String)
        /// The settings cannot be carried out.
        case configuration(reason: String)
    }

    /// What went wrong.
    public var kind: Kind

    /// The host that was asked for; empty where none is concerned.
    public var host: String

    /// An error about a host.
    public init(_ kind: Kind, host: String = "") {
        self.kind = kind
        self.host = host
    }

    /// What happened, for which host, and what can be done.
    public var description: String { host.isEmpty ? explanation : "TLS with \(host): \(explanation)" }

    private var explanation: String {
        switch kind {
        case .nameMismatch(let names) where names.isEmpty:
            "the peer's certificate names no host at all; only its subject alternative names count"
        case .nameMismatch(let names):
            "the peer's certificate is for \(names.joined(separator: ", ")); check the host name"
        case .expired: "the peer's certificate, or one of its authorities', has expired; it must be renewed"
        case .notYetValid: "the peer's certificate is not valid yet; check this machine's clock"
        case .unknownAuthority:
            "the peer's certificate comes from an authority that is not trusted; add its root certificate"
        case .selfSigned:
            "the peer's certificate is signed by itself; if it is yours, add it to the trusted roots"
        case .revoked: "the peer's certificate was revoked; do not trust this server"
        case .revocationUnknown(let reason):
            "whether the peer's certificate was revoked cannot be told: \(reason); give a current list of each"
                + " authority in its chain"
        case .pinMismatch(let found):
            "the peer's chain is valid but has none of the pinned keys or certificates; its keys are "
                + found.map(\.description).joined(separator: ", ")
        case .denied(let reason): "the trust policy denied the peer: \(reason)"
        case .weakKey(let reason), .weakSignature(let reason):
            "the peer's certificate or one of its authorities' is too weak: \(reason)"
        case .wrongPurpose(let reason): "the peer's certificate was not made for this: \(reason)"
        case .badCertificate(let reason, let code):
            "the peer's certificate is not acceptable: \(reason) (OpenSSL verification code \(code))"
        case .noTrustRoots(let searched):
            "no trusted root certificates on this machine; install ca-certificates, set SSL_CERT_FILE, or"
                + " give roots of your own (looked at \(searched.joined(separator: ", ")))"
        case .protocolVersion: "no common version of TLS; compare the versions that both sides allow"
        case .handshake(let reason): "the handshake failed: \(reason)"
        case .alert(let number, let text): "the peer refused the connection with alert \(number): \(text)"
        case .clientCertificateRequired:
            "the server demands a client certificate and none is configured; set an identity for it"
        case .clientCertificateRefused(let number, let text):
            "the server refused this side's certificate with alert \(number): \(text)"
        case .truncated: "the peer cut the connection without ending TLS"
        case .identity(let reason, let source):
            "the certificate or key from \(source) cannot be used: \(reason)"
        case .passphraseRequired(let source):
            "the private key from \(source) is encrypted and no pass phrase was given"
        case .wrongPassphrase(let source): "the pass phrase does not open the private key from \(source)"
        case .rootCertificates(let reason, let source):
            "the trusted certificates from \(source) cannot be used: \(reason)"
        case .revocationList(let reason, let source):
            "the revocation lists from \(source) cannot be used: \(reason)"
        case .configuration(let reason): "the settings cannot be used: \(reason)"
        }
    }
}
