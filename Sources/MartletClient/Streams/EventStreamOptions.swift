/// How a stream of server-sent events is kept up.
public struct EventStreamOptions: Sendable {
    /// What each of its requests does otherwise than the session. The idle clock is how long the stream may be silent
    /// before it is taken for dead and connected again.
    public var request = RequestOptions()

    /// The identifier that the first request says in `Last-Event-ID`; empty for none.
    public var lastEventID = ""

    /// How long to wait before connecting again, until the server's `retry` says otherwise; 3 s by default.
    public var reconnectionTime = Duration.seconds(3)

    /// The bounds of what a server's `retry` may ask for; from 100 ms, which stops it from making clients spin, to an hour.
    public var reconnectionTimeBounds = Duration.milliseconds(100)...Duration.seconds(3600)

    /// Up to how long the wait grows while connecting fails again and again, doubling each time; 60 s by default. It is
    /// never less than the reconnection time.
    public var backoffLimit = Duration.seconds(60)

    /// How many times in a row connecting may fail before the stream ends with that error; 10 by default, `nil` for no
    /// limit. A response that is accepted starts the count anew.
    public var failureLimit: Int? = 10

    /// Whether it connects again at all when the stream ends or breaks; `true` by default.
    public var reconnects = true

    /// The most bytes of an event's data, and of each line; 16 MiB by default. It stops a server that never ends an event
    /// from filling the memory.
    public var eventLimit = ByteCount.mebibytes(16)

    /// Waits before connecting again; set by tests.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// The defaults.
    public init() {}
}
