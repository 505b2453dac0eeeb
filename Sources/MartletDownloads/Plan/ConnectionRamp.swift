package import MartletTransport

/// The number of connections of a download: one at first, soon the maximum, and then only those that make the download
/// at least a tenth faster. Servers that limit the rate of each connection send in bursts of a second or more, so a
/// short measurement proves nothing. Therefore connections are added immediately, and later omitted one at a time for a
/// while, to test whether they are needed.
package struct ConnectionRamp: Sendable {
    /// The time between two additions, slightly less than the clock's interval, so that each tick may add connections.
    package static let addition = Duration.milliseconds(40)
    /// The factor of each addition. One connection at a time is added after the server or the session had no slot.
    package static let growth = 4
    /// The time for which one connection is omitted, to measure its effect.
    package static let trial = Duration.seconds(3)
    /// The time until the first trial; four times as long after each trial that confirmed the connection.
    package static let firstRest = Duration.seconds(5)
    /// The maximum time between two trials.
    package static let longestRest = Duration.seconds(320)
    /// The time until another addition after the server or the session had no slot.
    package static let rejectionRest = Duration.seconds(10)

    private enum Phase: Sendable {
        /// Connections are added.
        case growing
        /// The number of connections is stable.
        case steady
        /// A trial with one connection fewer. Contains the rate before it, in bytes per second.
        case trying(before: Double)
    }

    /// The wanted number of connections.
    package private(set) var target = 1
    /// The maximum number.
    package let limit: Int
    /// The maximum number that the condition of the network allows.
    private var allowance = Int.max
    private var ceiling: Int
    private var phase = Phase.growing
    private var since: MonotonicTime
    private var bytes: UInt64 = 0
    private var rest = ConnectionRamp.firstRest
    private var ceilingLifts: MonotonicTime?
    private var wasRejected = false

    /// Creates a ramp that starts now.
    package init(limit: Int, now: MonotonicTime) {
        self.limit = max(1, limit)
        ceiling = self.limit
        since = now
    }

    /// Returns the number of connections that may be added to `count` connections.
    package func room(beside count: Int) -> Int { max(0, ceiling - count) }

    /// Adds bytes received on any connection.
    package mutating func add(_ count: UInt64) { bytes += count }

    /// Updates the wanted number.
    /// - Parameters:
    ///   - active: The number of receiving connections.
    ///   - isHeldBack: Whether our own rate limit applies; no connection is added then.
    package mutating func update(active: Int, isHeldBack: Bool = false, now: MonotonicTime) {
        if let lifts = ceilingLifts, now >= lifts {
            ceilingLifts = nil
            ceiling = min(limit, allowance)
            enter(.growing, now)
        }
        let span = now.since(since)
        switch phase {
        case .growing:
            guard active >= target, bytes > 0, span >= ConnectionRamp.addition else { return }
            guard target < ceiling else {
                enter(.steady, now)
                return
            }
            guard !isHeldBack else { return }
            target = min(wasRejected ? target + 1 : target * ConnectionRamp.growth, ceiling)
            enter(.growing, now)
        case .steady:
            guard target > 1, active >= target, span >= rest else { return }
            target -= 1
            enter(.trying(before: speed(over: span)), now)
        case .trying(let before):
            guard active <= target else {
                // The surplus connection has not ended yet.
                enter(phase, now)
                return
            }
            guard span >= ConnectionRamp.trial else { return }
            if before >= speed(over: span) * 1.1 {
                target += 1
                rest = min(rest * 4, ConnectionRamp.longestRest)
            }
            enter(.steady, now)
        }
    }

    private func speed(over span: Duration) -> Double { Double(bytes) / max(0.001, Double(span.attoseconds) / 1e18) }

    private mutating func enter(_ phase: Phase, _ now: MonotonicTime) {
        self.phase = phase
        (since, bytes) = (now, 0)
    }

    /// Records that the server or the session had no slot for another connection: for a while none is added.
    package mutating func rejected(active: Int, now: MonotonicTime) {
        wasRejected = true
        ceiling = max(1, active)
        target = min(target, ceiling)
        ceilingLifts = now.advanced(by: ConnectionRamp.rejectionRest)
        enter(.steady, now)
    }

    /// Applies the maximum that the condition of the network allows; `nil` for none.
    package mutating func allow(_ count: Int?, now: MonotonicTime) {
        let count = max(1, count ?? .max)
        guard count != allowance else { return }
        let isMore = count > allowance
        allowance = count
        if isMore {
            // A rejection by the server remains in effect for its time.
            guard ceilingLifts == nil else { return }
            ceiling = min(limit, allowance)
            enter(.growing, now)
        } else {
            ceiling = min(ceiling, allowance)
            guard target > ceiling else { return }
            target = ceiling
            enter(.steady, now)
        }
    }

    /// Restarts with one connection.
    package mutating func restart(now: MonotonicTime) {
        let allowance = allowance
        self = ConnectionRamp(limit: limit, now: now)
        self.allowance = allowance
        ceiling = min(limit, allowance)
    }
}
