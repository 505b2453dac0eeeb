import CMartletOpenSSL

/// The decision of a custom trust policy.
public enum TrustDecision: Hashable, Sendable {
    /// The handshake continues.
    case accept
    /// The connection ends with ``TLSError/Kind/denied(reason:)``, before a byte of the request is sent.
    case deny(reason: String)
}

/// One certificate of a chain.
public struct PresentedCertificate: Hashable, Sendable, CustomStringConvertible {
    /// The certificate in DER.
    public let der: [UInt8]
    /// The subject in the format of RFC 4514; control bytes are escaped.
    public let subject: String
    /// The issuer in the format of RFC 4514.
    public let issuer: String
    /// The host names and addresses for which it is issued. Bytes other than visible ASCII are replaced by `?`.
    public let names: [String]
    /// The SHA-256 of the public key.
    public let publicKey: PublicKeyPin

    /// The subject and the pin of the key.
    public var description: String { "\(subject) (\(publicKey))" }

    init(_ certificate: OpaquePointer) {
        unsafe der = Certificate.der(of: certificate)
        unsafe subject = Certificate.text(of: X509_get_subject_name(certificate))
        unsafe issuer = Certificate.text(of: X509_get_issuer_name(certificate))
        unsafe names = Certificate.names(of: certificate)
        unsafe publicKey = PublicKeyPin(of: certificate)
    }
}

/// The input of a custom trust policy: the certificates that a server has sent, and the result of their verification by
/// OpenSSL and by Martlet's own rules.
public struct PresentedChain: Sendable {
    /// The certificates as the server sent them, its own first. The server has proven possession of its own key only.
    public let certificates: [PresentedCertificate]
    /// The chain from the server's certificate to the trusted root; empty if there is a ``verificationError``.
    public let verified: [PresentedCertificate]
    /// The reason to reject the chain, such as another host name; `nil` if the policy without its closure accepts it.
    public let verificationError: TLSError.Kind?
    /// The host for which the certificate must be issued: an ASCII name in lower case, or an address.
    public let host: String

    /// Whether the chain would be accepted without a custom policy.
    public var isTrusted: Bool { verificationError == nil }
}
