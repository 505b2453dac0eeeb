import MartletConnections
import MartletTransport

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
            tls = timings.secured.map {
                $0.since(timings.tunnelled ?? timings.connected ?? timings.start)
            }
        }
        start = measured.start
        let timeline = measured.timeline
        send = timeline.requestSent.flatMap { sent in
            timeline.sendingBegan.map { sent.since($0) }
        }
        firstByte = timeline.headReceived.map { $0.since(measured.start) }
        total = measured.ended.since(measured.start)
        sentByteCount = timeline.sentByteCount
        receivedBodyByteCount = timeline.receivedBodyByteCount
    }
}
