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
