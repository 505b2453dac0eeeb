import MartletTransport

/// The phases of an exchange as HAR 1.2 has them, in milliseconds; -1 for one that there was not.
package struct HARTimings: Hashable, Sendable {
    /// Waiting for a connection, and all requests of the call before the last.
    package let blocked: Double
    /// Looking up the name.
    package let dns: Double
    /// Opening the connection, the TLS handshake included.
    package let connect: Double
    /// The TLS handshake.
    package let ssl: Double
    /// Writing the request.
    package let send: Double
    /// From the end of the request to the head of the response.
    package let wait: Double
    /// Receiving the response.
    package let receive: Double

    /// The whole: the sum of the phases, in which ``ssl`` is part of ``connect``.
    package var total: Double {
        [blocked, dns, connect, send, wait, receive].reduce(0) { $0 + max($1, 0) }
    }

    /// The phases of a call that took so long.
    ///
    /// A connection may have been begun before the call, for another one that then found a free one: only what lies within
    /// the call's own wait is counted, its last part first.
    package init(_ metrics: HTTPMetrics) {
        let ready = metrics.lastBegin + metrics.wait
        var rest = ready
        func taken(_ duration: Duration?) -> Duration? {
            guard let duration else { return nil }
            let part = min(max(duration, .zero), rest)
            rest -= part
            return part
        }
        let tls = taken(metrics.tls)
        let transport = taken(metrics.connect)
        let lookup = taken(metrics.dns)
        ssl = HARTimings.milliseconds(tls)
        dns = HARTimings.milliseconds(lookup)
        connect =
            transport == nil && tls == nil
            ? -1 : HARTimings.milliseconds((transport ?? .zero) + (tls ?? .zero))
        blocked = HARTimings.milliseconds(rest)
        let head = max(metrics.firstByte ?? metrics.total, ready)
        // A server may answer before it has read the whole request.
        let sending = min(max(metrics.send ?? .zero, .zero), head - ready)
        send = HARTimings.milliseconds(sending)
        wait = HARTimings.milliseconds(head - ready - sending)
        receive = HARTimings.milliseconds(max(metrics.total - head, .zero))
    }

    private static func milliseconds(_ duration: Duration?) -> Double {
        guard let duration else { return -1 }
        // Nanoseconds are whole numbers, and a quotient of whole numbers is as near as can be.
        return Double(duration.wholeNanoseconds) / 1e6
    }

    /// The member `timings` of an entry.
    var value: HARValue {
        .members([
            ("blocked", .milliseconds(blocked)), ("dns", .milliseconds(dns)),
            ("connect", .milliseconds(connect)),
            ("ssl", .milliseconds(ssl)), ("send", .milliseconds(send)), ("wait", .milliseconds(wait)),
            ("receive", .milliseconds(receive)),
        ])
    }
}
