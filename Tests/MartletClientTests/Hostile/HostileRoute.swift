/// The ways a client can meet a hostile peer.
enum HostileRoute: CaseIterable, Sendable {
    /// A stream in memory.
    case memory
    /// A TCP connection on loopback.
    case plain
    /// TLS over such a connection.
    case tls
}
