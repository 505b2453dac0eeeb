public import FoundationEssentials

/// The durations of a call's parts, on the monotonic clock, and the number of bytes transferred.
public struct HTTPMetrics: Hashable, Sendable {
    /// The time that the last request waited until a pooled connection was free or a new one was open.
    public var wait: Duration = .zero
    /// The duration of name resolution; `nil` if no name was resolved for this call.
    public var dns: Duration?
    /// The duration of the transport connect; `nil` for a reused connection.
    public var connect: Duration?
    /// The time from the transport connect to an established proxy tunnel, including TLS with the proxy; `nil` if no
    /// tunnel was opened.
    public var tunnel: Duration?
    /// The duration of the TLS handshake; `nil` for a plain or reused connection.
    public var tls: Duration?
    /// The time to write the request including its body; `nil` until the request is written.
    public var send: Duration?
    /// The time from the call's start to the response's head.
    public var firstByte: Duration?
    /// The time from the call's start to its end.
    public var total: Duration = .zero
    /// Whether an earlier exchange used the connection.
    public var isConnectionReused = false
    /// The number of bytes written: head, framing and body.
    public var sentByteCount: UInt64 = 0
    /// The number of body bytes received, before content codings were decoded.
    public var receivedBodyByteCount: UInt64 = 0
    /// The number of requests sent: the last one, ``hops``, and immediate repetitions, as after a 417.
    public var attempts = 1
    /// The connection that was used. With a proxy, its addresses are those of the connection to the proxy. Its TLS
    /// properties are those of the server in a tunnel, or those of an HTTPS proxy that forwarded the request.
    public var connection: ConnectionInformation?
    /// The proxy that was used, such as `http://proxy.example:3128`, without user or password; `nil` for none.
    public var proxy: String?
    /// The requests before the last one. After each, the call was redirected, challenged, or retried.
    public var hops: [HTTPHop] = []

    /// The time from the call's start to the beginning of the last request, after all ``hops``.
    package var lastBegin: Duration { hops.last.map { $0.ended + $0.delay } ?? .zero }

    /// The start of the call on the monotonic clock.
    package var start: MonotonicTime?

    /// Creates the metrics of a call that has not started.
    public init() {}

    /// The start of the call on the wall clock; `nil` for metrics that were not measured.
    ///
    /// The value is computed from the current time and the monotonic clock, so it changes when the wall clock is set.
    public var startedAt: Date? {
        start.map { start in
            let elapsed = MonotonicTime.now().since(start)
            return Date().addingTimeInterval(-Double(elapsed.wholeNanoseconds) / 1e9)
        }
    }
}

extension HTTPMetrics: CustomStringConvertible {
    /// The durations in milliseconds and the counts, in one line, without steps that did not take place.
    public var description: String {
        func text(_ time: Duration) -> String {
            let tenths = max(0, time.wholeNanoseconds) / 100_000
            return "\(tenths / 10).\(tenths % 10)"
        }
        let times = [
            ("wait", wait), ("dns", dns), ("connect", connect), ("tunnel", tunnel), ("tls", tls), ("send", send),
            ("first byte", firstByte),
        ]
        let shown = times.compactMap { name, time in time.map { "\(name) \(text($0))" } }
        var parts = [
            "\(text(total)) ms (\(shown.joined(separator: ", ")))", "sent \(sentByteCount) bytes",
            "received \(receivedBodyByteCount) bytes",
        ]
        if attempts != 1 { parts.append("\(attempts) attempts") }
        if let connection {
            let state = isConnectionReused ? "reused" : "new"
            parts.append("\(state) connection to \(connection.remoteAddress)")
            if let tls = connection.tls { parts.append(tls.version) }
        }
        if let proxy { parts.append("proxy \(proxy)") }
        return parts.joined(separator: ", ")
    }
}

extension HTTPMetrics: Encodable {
    /// Encodes the metrics for logs as an object whose keys are the names of the properties. Durations are in seconds,
    /// secrets of URLs are masked, and values that are not known are omitted.
    public func encode(to encoder: any Encoder) throws { try members.json.removingNulls().encode(to: encoder) }

    var members: JSONMembers {
        [
            "wait": wait, "dns": dns, "connect": connect, "tunnel": tunnel, "tls": tls, "send": send,
            "firstByte": firstByte, "total": total, "isConnectionReused": isConnectionReused,
            "sentByteCount": sentByteCount, "receivedBodyByteCount": receivedBodyByteCount, "attempts": attempts,
            "connection": connection?.members, "proxy": proxy, "hops": hops.map(\.members),
        ]
    }
}

extension ConnectionInformation {
    var members: JSONMembers { ["remoteAddress": remoteAddress, "localAddress": localAddress, "tls": tls?.version] }
}

extension HTTPHop {
    fileprivate var members: JSONMembers {
        [
            "reason": reason.rawValue, "method": method.rawValue, "url": url.withoutSecrets.absoluteString,
            "status": status, "error": error?.rawValue, "ended": ended, "delay": delay,
        ]
    }
}

/// A request of a call after which the call sent another: it was redirected or challenged, or it failed.
public struct HTTPHop: Hashable, Sendable {
    /// The reason why another request followed.
    public enum Reason: String, Hashable, Sendable {
        /// The server redirected to another URL.
        case redirect
        /// The server or the proxy requested credentials.
        case challenge
        /// The request failed, its response was a temporary error such as 503, or a 415 rejected its compressed body.
        case retry
        /// A middleware sent another request.
        case middleware
    }

    /// The reason why another request followed.
    public var reason: Reason
    /// The method of the request.
    public var method: HTTPRequest.Method
    /// The URL of the request, without user info.
    public var url: HTTPURL
    /// The status of the response; `nil` if the request failed.
    public var status: Int?
    /// The code of the error; `nil` if there was a response.
    public var error: HTTPError.Code?
    /// The time from the call's start to the end of this request.
    public var ended: Duration
    /// The delay before the next request.
    public var delay: Duration

    /// Creates the record of a request.
    public init(
        reason: Reason, method: HTTPRequest.Method, url: HTTPURL, status: Int? = nil, error: HTTPError.Code? = nil,
        ended: Duration, delay: Duration = .zero
    ) {
        (self.reason, self.method, self.url, self.status) = (reason, method, url, status)
        (self.error, self.ended, self.delay) = (error, ended, delay)
    }

    /// The same request with the secrets of its URL masked.
    var withoutSecrets: HTTPHop {
        var hop = self
        hop.url = url.withoutSecrets
        return hop
    }
}

/// The data from which a call's metrics are computed: on demand, because most callers do not use them.
enum DeferredMetrics: Sendable {
    indirect case made(HTTPMetrics)
    /// A call that used a connection.
    case measured(Measurement)
    /// A call that used no connection.
    case stored(start: MonotonicTime, ended: MonotonicTime, attempts: Int, hops: [HTTPHop])

    /// The measurements of a call that used a connection.
    struct Measurement: Sendable {
        let start: MonotonicTime
        /// The call's start, plus the time that the last request waited for its connection.
        let waited: MonotonicTime
        let ended: MonotonicTime
        let attempts: Int
        let hops: [HTTPHop]
        let proxy: String?
        let timeline: ExchangeTimeline
        let connection: ConnectionInformation
        /// The times of opening the connection; `nil` if it was reused.
        let dial: DialTimings?
    }

    var metrics: HTTPMetrics {
        switch self {
        case .made(let metrics): metrics
        case .measured(let measurement): HTTPMetrics(measurement)
        case .stored(let start, let ended, let attempts, let hops): HTTPMetrics().ofCall(start, ended, attempts, hops)
        }
    }
}

extension DeferredMetrics.Measurement {
    init(_ exchange: Exchange, of call: Call, waited: MonotonicTime, attempts: Int) {
        let (connection, timeline) = (exchange.connection, exchange.timeline)
        self.init(
            start: call.start, waited: waited, ended: timeline.bodyReceived ?? MonotonicTime.now(),
            attempts: attempts + call.hops.count, hops: call.hops, proxy: call.proxy?.description, timeline: timeline,
            connection: connection.stream.information, dial: exchange.isReused ? nil : connection.timings)
    }
}

extension HTTPMetrics {
    /// Returns the metrics of a call that failed or that the cache responded to, based on those of a transfer.
    func ofCall(_ start: MonotonicTime, _ ended: MonotonicTime, _ attempts: Int, _ hops: [HTTPHop]) -> HTTPMetrics {
        var metrics = self
        metrics.attempts = attempts
        metrics.hops = hops
        metrics.start = start
        metrics.total = ended.since(start)
        return metrics
    }

    fileprivate init(_ measured: DeferredMetrics.Measurement) {
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
            tunnel = timings.tunneled.map { $0.since(timings.connected ?? timings.start) }
            tls = timings.secured.map { $0.since(timings.tunneled ?? timings.connected ?? timings.start) }
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

/// The properties of a connection that failed, for an error without the exchange.
///
/// A class, so that errors stay small.
package final class FailedConnection: Sendable {
    /// The durations of opening and using the connection, and the number of bytes transferred.
    package let metrics: HTTPMetrics
    /// The heads of a proxy's responses to CONNECT, if the tunnel was opened and a later step failed.
    package let tunnelHeads: [ResponseHead]

    init(_ measured: DeferredMetrics, tunnelHeads: [ResponseHead] = []) {
        (metrics, self.tunnelHeads) = (measured.metrics, tunnelHeads)
    }
}
