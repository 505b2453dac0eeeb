/// The ways a client can meet a hostile peer.
enum HostileRoute: CaseIterable, Sendable {
    /// A stream in memory.
    case memory
    /// A TCP connection on loopback.
    case plain
    /// TLS over such a connection.
    case tls
    /// TLS that is asked for and not given: the peer plays its script in place of a handshake.
    case handshake

    /// Those on which a request reaches the peer.
    static let all: [HostileRoute] = [.memory, .plain, .tls]
}
