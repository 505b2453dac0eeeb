/// A closure that decides about chains. Two are equal only where they are the same one: closures cannot be compared, and
/// connections made with different ones must not be exchanged.
final class TrustEvaluator: Hashable, Sendable {
    let decide: @Sendable (PresentedChain, String) async -> TrustDecision

    init(_ decide: @escaping @Sendable (PresentedChain, String) async -> TrustDecision) {
        self.decide = decide
    }

    static func == (left: TrustEvaluator, right: TrustEvaluator) -> Bool { left === right }

    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// What a custom trust policy says.
public enum TrustDecision: Hashable, Sendable {
    /// The connection goes on.
    case accept
    /// The connection ends with ``TLSError/Kind/denied(reason:)``, before a byte of the request is sent.
    case deny(reason: String)
}

/// What a custom policy is to be asked.
struct TrustQuestion: Sendable {
    let evaluator: TrustEvaluator
    let chain: PresentedChain
}

/// One certificate of a chain.
public struct PresentedCertificate: Hashable, Sendable, CustomStringConvertible {
    /// The certificate in DER.
    public let der: [UInt8]
    /// Whom it is about, as RFC 4514 writes it; control bytes are escaped.
    public let subject: String
    /// Who signed it, as RFC 4514 writes it.
    public let issuer: String
    /// The host names and addresses it is made out to. Bytes that are no host's are shown as question marks.
    public let names: [String]
    /// The SHA-256 of its public key.
    public let publicKey: PublicKeyPin

    /// The subject and the pin of the key.
    public var description: String { "\(subject) (\(publicKey))" }

    init(_ certificate: OpaquePointer) {
        unsafe der = Certificate.der(of: certificate)
        unsafe subject = Certificate.subject(of: certificate)
        unsafe issuer = Certificate.issuer(of: certificate)
        unsafe names = Certificate.names(of: certificate)
        unsafe publicKey = PublicKeyPin(of: certificate)
    }
}

/// What a custom trust policy decides about: the certificates a server has shown, and what OpenSSL and Martlet's own rules
/// make of them.
public struct PresentedChain: Sendable {
    /// The certificates as the server sent them, its own first. Nothing about them is proven but that the server has the
    /// key of the first.
    public let certificates: [PresentedCertificate]

    /// The chain from the server's certificate to the trusted root; empty when there is ``fault``.
    public let verified: [PresentedCertificate]

    /// Why the chain would be refused, its names included; `nil` when it would be accepted.
    public let fault: TLSError.Kind?

    /// The host that the certificate must be made out to: an ASCII name in lower case, or an address.
    public let host: String

    /// Whether the chain would be accepted without a custom policy.
    public var isTrusted: Bool { fault == nil }
}
