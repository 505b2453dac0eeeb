import Martlet

/// Resolves every name to the given addresses and their ports.
struct ListResolver: Resolver {
    let list: [SocketAddress]

    /// Creates a resolver for loopback ports.
    init(_ addresses: (literal: String, port: Int)...) {
        list = addresses.compactMap { SocketAddress(literal: $0.literal, port: $0.port) }
    }

    func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
        list
    }
}
