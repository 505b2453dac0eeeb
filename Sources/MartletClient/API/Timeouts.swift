import MartletTransport

/// The five clocks of a call. Each is a named limit of its own; `nil` stops that clock.
///
/// The error of a clock that ran out names it, the phase the call was in, and how long it waited.
public struct Timeouts: Hashable, Sendable, Codable {
    /// How long to wait for a connection to become free when the limits forbid opening one; no limit by default, since
    /// each call before is bounded by its own clocks.
    public var poolWait: Duration?

    /// How long opening a connection may take: name, TCP, proxy and TLS together; 10 s by default (Go 30 s, curl 300 s).
    public var connect: Duration? = .seconds(10)

    /// How long the head of the response may take, from the last byte of the request on; 60 s by default.
    public var head: Duration? = .seconds(60)

    /// How long no byte may move while a body is sent or received; 60 s by default.
    public var idle: Duration? = .seconds(60)

    /// How long the whole call may take, the body included; no limit by default.
    public var total: Duration?

    /// The default clocks.
    public init() {}

    /// Clocks; what is not given has its default.
    public init(
        poolWait: Duration? = nil, connect: Duration? = .seconds(10), head: Duration? = .seconds(60),
        idle: Duration? = .seconds(60), total: Duration? = nil
    ) {
        self.poolWait = poolWait
        self.connect = connect
        self.head = head
        self.idle = idle
        self.total = total
    }

    private enum CodingKeys: String, CodingKey {
        case poolWait, connect, head, idle, total
    }

    /// Reads clocks; one that is missing is stopped.
    /// - Throws: `DecodingError.dataCorrupted` for a negative one.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        poolWait = try container.duration(.poolWait)
        connect = try container.duration(.connect)
        head = try container.duration(.head)
        idle = try container.duration(.idle)
        total = try container.duration(.total)
    }
}
