/// What pins are compared with: the chain that was verified, or the leaf alone where nothing was verified, since of no
/// other key it is proven that the server has it.
///
/// Kept with the session of a connection, so that the connections that resume it are held to the pins as well.
struct ChainEvidence: Hashable, Sendable {
    /// The keys, the leaf's first.
    var publicKeys: [PublicKeyPin]
    /// SHA-256 of each certificate, the leaf's first.
    var certificates: [[UInt8]]

    /// The evidence of certificates, the leaf first.
    init(_ chain: [OpaquePointer]) {
        unsafe publicKeys = chain.map { unsafe PublicKeyPin(of: $0) }
        unsafe certificates = chain.map { unsafe Certificate.sha256(of: $0) }
    }
}
