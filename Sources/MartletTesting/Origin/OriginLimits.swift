/// What a test origin puts up with.
public struct OriginLimits: Sendable, Hashable {
    /// After how many requests a connection is closed, with `Connection: close` in the last response; `nil`:
    /// never.
    public var requestsPerConnection: Int?

    /// How much of a body that no handler read is read away so that the connection can live on; in bytes, 1
    /// MiB by default. With more left the connection is closed behind the response.
    public var unreadBodyLimit: UInt64 = 1 << 20

    /// How long a TLS handshake may take; two minutes by default.
    public var handshakeTimeout = Duration.seconds(120)

    /// How many requests are recorded, the newest ones; 10,000 by default.
    public var recordLimit = 10_000

    /// The defaults.
    public init() {}
}
