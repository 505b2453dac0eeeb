/// An error of a TLS connection, or of its settings.
public struct TLSError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The kinds of error.
    public enum Kind: Hashable, Sendable {
        /// The certificate is valid, but issued for other names. Contains these names.
        case nameMismatch([String])
        /// A certificate has expired.
        case expired
        /// A certificate is not valid yet; often this machine's clock is wrong.
        case notYetValid
        /// The chain does not end in a trusted authority.
        case unknownAuthority
        /// The server's certificate is self-signed.
        case selfSigned
        /// The certificate was revoked.
        case revoked
        /// The revocation status is unknown: the list of an authority is missing, too old or not authentic.
        case revocationUnknown(reason: String)
        /// The valid chain has none of the pinned keys or certificates. Contains its keys, the server's own first.
        case pinMismatch(found: [PublicKeyPin])
        /// The custom trust policy denied the connection.
        case denied(reason: String)
        /// A key in the chain is too short or of an obsolete kind.
        case weakKey(reason: String)
        /// A signature in the chain uses a broken digest.
        case weakSignature(reason: String)
        /// The certificate, or an authority's, was not issued for this use.
        case wrongPurpose(reason: String)
        /// Another error in a certificate. Contains its description and OpenSSL's number.
        case badCertificate(reason: String, code: Int)
        /// This machine has no trusted authorities, so nothing can be verified. Contains the places that were searched.
        case noTrustRoots(searched: [String])
        /// The two sides have no common version of TLS.
        case protocolVersion
        /// The handshake failed for another reason, for example because the peer does not use TLS.
        case handshake(reason: String)
        /// The peer rejected the connection with an alert (RFC 8446 §6.2). Contains its number and OpenSSL's text.
        case alert(number: Int, text: String)
        /// The server requires a client certificate, and none is configured for it.
        case clientCertificateRequired
        /// The server rejected the client certificate. Contains the alert's number and OpenSSL's text.
        case clientCertificateRejected(alert: Int, text: String)
        /// The stream ended without a `close_notify`, so an attacker may have truncated it.
        case truncated
        /// This side's own certificate or key cannot be used. Contains the reason, and the source.
        case identity(reason: String, source: String)
        /// This side's private key, or its file, is encrypted, and no pass phrase was given.
        case passphraseRequired(source: String)
        /// The pass phrase does not open this side's private key or its file.
        case wrongPassphrase(source: String)
        /// Trusted or pinned certificates cannot be used. Contains the reason, and their source.
        case rootCertificates(reason: String, source: String)
        /// A revocation list cannot be used. Contains the reason, and the source.
        case revocationList(reason: String, source: String)
        /// The settings cannot be used.
        case configuration(reason: String)
    }

    /// The kind of error.
    public var kind: Kind
    /// The requested host; empty if the error is not about one.
    public var host: String

    /// Creates an error.
    public init(_ kind: Kind, host: String = "") { (self.kind, self.host) = (kind, host) }

    /// The cause, the host, and a suggested remedy.
    public var description: String { host.isEmpty ? explanation : "TLS with \(host): \(explanation)" }

    private var explanation: String {
        switch kind {
        case .nameMismatch(let names) where names.isEmpty:
            "the peer's certificate has no host among its subject alternative names, and only these count"
        case .nameMismatch(let names):
            "the peer's certificate is for \(names.joined(separator: ", ")); check the host name"
        case .expired: "the peer's certificate, or one of its authorities', has expired; it must be renewed"
        case .notYetValid: "the peer's certificate is not valid yet; check this machine's clock"
        case .unknownAuthority:
            "the peer's certificate comes from an authority that is not trusted; add its root certificate"
        case .selfSigned: "the peer's certificate is self-signed; if it is yours, add it to the trusted roots"
        case .revoked: "the peer's certificate was revoked; do not trust this server"
        case .revocationUnknown(let reason):
            "the revocation status of the peer's certificate is unknown: \(reason); provide a current list of each"
                + " authority in its chain"
        case .pinMismatch(let found):
            "the peer's chain is valid but has none of the pinned keys or certificates; its keys are "
                + found.map(\.description).joined(separator: ", ")
        case .denied(let reason): "the trust policy denied the peer: \(reason)"
        case .weakKey(let reason), .weakSignature(let reason):
            "the peer's certificate or one of its authorities' is too weak: \(reason)"
        case .wrongPurpose(let reason): "the peer's certificate was not issued for this use: \(reason)"
        case .badCertificate(let reason, let code):
            "the peer's certificate is not acceptable: \(reason) (OpenSSL verification code \(code))"
        case .noTrustRoots(let searched):
            "no trusted root certificates on this machine; install ca-certificates, set SSL_CERT_FILE, or"
                + " provide your own roots (searched: \(searched.joined(separator: ", ")))"
        case .protocolVersion: "no common version of TLS; compare the versions that both sides allow"
        case .handshake(let reason): "the handshake failed: \(reason)"
        case .alert(let number, let text): "the peer rejected the connection with alert \(number): \(text)"
        case .clientCertificateRequired:
            "the server requires a client certificate, but none is configured; set an identity for it"
        case .clientCertificateRejected(let number, let text):
            "the server rejected the client certificate with alert \(number): \(text)"
        case .truncated: "the peer closed the connection without ending TLS"
        case .identity(let reason, let source): "the certificate or key from \(source) cannot be used: \(reason)"
        case .passphraseRequired(let source): "the private key from \(source) is encrypted and no pass phrase was given"
        case .wrongPassphrase(let source): "the pass phrase does not open the private key from \(source)"
        case .rootCertificates(let reason, let source):
            "the trusted certificates from \(source) cannot be used: \(reason)"
        case .revocationList(let reason, let source): "the revocation lists from \(source) cannot be used: \(reason)"
        case .configuration(let reason): "the settings cannot be used: \(reason)"
        }
    }
}
