package import MartletTransport

extension TLSContext {
    /// A context that accepts connections.
    /// - Parameter certificateChainPEM: The leaf first.
    package static func server(
        certificateChainPEM: String, privateKeyPEM: String
    ) throws(TLSError) -> TLSContext {
        let identity = TLSIdentity(
            certificateChain: .text(certificateChainPEM), privateKey: .text(privateKeyPEM))
        return try TLSContext(server: TLSServerSettings(identity: identity))
    }
}
