public import FoundationEssentials
import MartletConnections
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

extension HTTPMetrics {
    /// When the call began, by the wall clock; `nil` for metrics that were not measured.
    ///
    /// It is reckoned back from now by the monotonic clock, and so moves with the wall clock when that is set.
    public var startedAt: Date? {
        start.map { start in
            let elapsed = MonotonicTime.now().since(start)
            return Date().addingTimeInterval(-Double(elapsed.wholeNanoseconds) / 1e9)
        }
    }
}

/// What the metrics of a call are made of once somebody asks for them, as most callers never do.
enum MetricsSource: Sendable {
    /// They were made already.
    indirect case made(HTTPMetrics)
    /// They are to be made of what was noted.
    case measured(Measurement)
    /// They are to be made of what was noted of a call that no connection had to do with.
    case stored(start: MonotonicTime, ended: MonotonicTime, attempts: Int, hops: [HTTPHop])

    /// What is noted of a call that came over a connection.
    struct Measurement: Sendable {
        let start: MonotonicTime
        /// Since when there was a connection.
        let waited: MonotonicTime
        let ended: MonotonicTime
        let attempts: Int
        let hops: [HTTPHop]
        let proxy: String?
        let timeline: ExchangeTimeline
        let connection: ConnectionInformation
        /// How the connection was opened; `nil` where it had been used before.
        let dial: DialTimings?
    }

    /// The metrics.
    var metrics: HTTPMetrics {
        switch self {
        case .made(let metrics): metrics
        case .measured(let measurement): HTTPMetrics(measurement)
        case .stored(let start, let ended, let attempts, let hops):
            HTTPMetrics().stored(start, ended, attempts, hops)
        }
    }
}

extension HTTPMetrics {
    /// Those of a call that the cache answered; before: those of the transfer that it shares.
    func stored(
        _ start: MonotonicTime, _ ended: MonotonicTime, _ attempts: Int, _ hops: [HTTPHop]
    ) -> HTTPMetrics {
        var metrics = self
        metrics.attempts = attempts
        metrics.hops = hops
        metrics.start = start
        metrics.total = ended.since(start)
        return metrics
    }

    init(_ measured: MetricsSource.Measurement) {
        self.init()
        attempts = measured.attempts
        hops = measured.hops
        isConnectionReused = measured.dial == nil
        wait = measured.waited.since(measured.start)
        connection = measured.connection
        proxy = measured.proxy
        if let timings = measured.dial {
            dns = timings.resolved.map { $0.since(timings.start) }
            connect = timings.connected.map { $0.since(timings.resolved ?? timings.start) }
            tunnel = timings.tunnelled.map { $0.since(timings.connected ?? timings.start) }
            tls = timings.secured.map { $0.since(timings.tunnelled ?? timings.connected ?? timings.start) }
        }
        start = measured.start
        let timeline = measured.timeline
        send = timeline.requestSent.flatMap { sent in timeline.sendingBegan.map { sent.since($0) } }
        firstByte = timeline.headReceived.map { $0.since(measured.start) }
        total = measured.ended.since(measured.start)
        sentByteCount = timeline.sentByteCount
        receivedBodyByteCount = timeline.receivedBodyByteCount
    }
}
