package import MartletTransport

extension TLSContext {
    /// Creates a context that accepts connections.
    /// - Parameter certificateChainPEM: The certificates in PEM, the leaf first.
    package static func server(
        certificateChainPEM: String, privateKeyPEM: String
    ) throws(TLSError) -> TLSContext {
        let identity = TLSIdentity(
            certificateChain: .text(certificateChainPEM), privateKey: .text(privateKeyPEM))
        return try TLSContext(server: TLSServerSettings(identity: identity))
    }
}
