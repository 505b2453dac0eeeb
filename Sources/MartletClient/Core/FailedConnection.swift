import MartletConnections
import MartletTransport
package import MartletWire

/// What is known of a connection on which a request, or the way to its server, failed before there was a response.
///
/// A class, so that errors stay small.
package final class FailedConnection: Sendable {
    /// When its parts were done, and what moved.
    package let metrics: HTTPMetrics
    /// The heads of what a proxy answered to CONNECT, where it opened a tunnel and what followed failed.
    package let tunnelHeads: [ResponseHead]

    /// A connection that could not be opened to its end.
    init(_ reached: ReachedConnection, tunnelHeads: [ResponseHead], call: Call, attempts: Int) {
        self.tunnelHeads = tunnelHeads
        metrics = HTTPMetrics(
            MetricsSource.Measurement(
                start: call.start, waited: call.start, ended: MonotonicTime.now(), attempts: attempts,
                hops: call.hops, proxy: call.proxy?.description, timeline: ExchangeTimeline(),
                connection: reached.information, dial: reached.timings))
    }

    /// The connection of an exchange that gave no head.
    init(_ exchange: Exchange, waited: MonotonicTime, call: Call, attempts: Int) {
        tunnelHeads = []
        metrics = HTTPMetrics(
            MetricsSource.Measurement(
                start: call.start, waited: waited, ended: MonotonicTime.now(), attempts: attempts,
                hops: call.hops, proxy: call.proxy?.description, timeline: exchange.timeline,
                connection: exchange.connection.stream.information,
                dial: exchange.isReused ? nil : exchange.connection.timings))
    }
}
