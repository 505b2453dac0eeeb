package import MartletTransport

/// When the parts of a call happened, on the monotonic clock, and what moved.
public struct HTTPMetrics: Hashable, Sendable {
    /// Waiting for a connection for the last request: free, or opened.
    public var wait: Duration = .zero
    /// Looking up the name; `nil` where nothing was looked up for this call.
    public var dns: Duration?
    /// Connecting the transport; `nil` on a reused connection.
    public var connect: Duration?
    /// From there until a proxy's tunnel to the server stood, TLS with the proxy included; `nil` on a reused connection,
    /// and where there is no tunnel.
    public var tunnel: Duration?
    /// The TLS handshake; `nil` on a plain or reused connection.
    public var tls: Duration?
    /// Writing the request, its body included; `nil` until that is done.
    public var send: Duration?
    /// From the call's start to the response's head.
    public var firstByte: Duration?
    /// From the call's start to its end.
    public var total: Duration = .zero
    /// Whether the connection had carried another exchange before.
    public var isConnectionReused = false
    /// Bytes written: head, framing and body.
    public var sentByteCount: UInt64 = 0
    /// Bytes of the body received, before content coding was undone.
    public var receivedBodyByteCount: UInt64 = 0
    /// How many times the request was begun; more than 1 after a kept connection turned out dead, a 417, and
    /// for each of ``hops``.
    public var attempts = 1
    /// The connection that was used; through a proxy its addresses are those of the connection to the proxy, and TLS is
    /// that with whoever ends it: the server in a tunnel, an HTTPS proxy that was handed the request.
    public var connection: ConnectionInformation?
    /// The proxy that was used, such as `http://proxy.example:3128`, without user or password; `nil` for none.
    public var proxy: String?

    /// The requests that came before the last one: redirected, challenged, or made again.
    public var hops: [HTTPHop] = []

    /// From the call's start to the beginning of the last request, behind all ``hops``.
    package var lastBegin: Duration { hops.last.map { $0.ended + $0.delay } ?? .zero }

    /// When the call began, on the monotonic clock.
    package var start: MonotonicTime?

    /// Metrics of a call on which nothing has happened.
    public init() {}
}
