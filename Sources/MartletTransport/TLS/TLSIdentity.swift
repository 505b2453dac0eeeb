/// A certificate and its private key, shown to a peer that asks who is calling.
public struct TLSIdentity: Hashable, Sendable, CustomStringConvertible {
    /// The leaf certificate first, then the authorities between it and the root.
    public var certificateChain: PEMSource

    /// The private key; `nil` when it is in the same text as the certificates.
    public var privateKey: PEMSource?

    /// What an encrypted private key is opened with.
    public var passphrase: String?

    /// An identity in PEM.
    public init(certificateChain: PEMSource, privateKey: PEMSource? = nil, passphrase: String? = nil) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
        self.passphrase = passphrase
    }

    /// Where certificates and key come from, without the pass phrase.
    public var description: String {
        "certificates from \(certificateChain), key from \(privateKey ?? certificateChain)"
    }
}
