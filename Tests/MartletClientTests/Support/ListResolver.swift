import Martlet

/// Resolves every name to the addresses given, with the ports they have.
struct ListResolver: Resolver {
    let list: [SocketAddress]

    /// A resolver for ports of loopback.
    init(_ addresses: (literal: String, port: Int)...) {
        list = addresses.compactMap { SocketAddress(literal: $0.literal, port: $0.port) }
    }

    func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
        list
    }
}
