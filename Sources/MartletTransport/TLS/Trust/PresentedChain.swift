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
