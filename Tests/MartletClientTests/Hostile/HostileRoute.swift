/// The routes over which a client can reach a hostile peer.
enum HostileRoute: CaseIterable, Sendable {
    /// A stream in memory.
    case memory
    /// A TCP connection over loopback.
    case plain
    /// TLS over such a connection.
    case tls
    /// A TLS request without a TLS server: the peer plays its script in place of a handshake.
    case handshake

    /// The routes on which a request reaches the peer.
    static let all: [HostileRoute] = [.memory, .plain, .tls]
}
