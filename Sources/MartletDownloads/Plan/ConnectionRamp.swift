package import MartletTransport

/// How many connections a download uses: one at first, soon as many as there may be, and then no more than pay: each is to
/// make the download faster by a tenth or more.
///
/// Servers that hold each connection to a rate do so in bursts of a second and more, so that a short look tells nothing:
/// connections are added at once, four times as many with each look, and whether one is needed is tried by doing without it
/// for a while.
package struct ConnectionRamp: Sendable {
    /// After how long connections are added, as long as there may be more. A little less than the clock's interval, so
    /// that each look may add some.
    package static let addition = Duration.milliseconds(40)
    /// How many times as many there are behind each addition; one more, once the server or the session had no place for one.
    package static let growth = 4
    /// How long the download does without a connection, to find out what it brings.
    package static let trial = Duration.seconds(3)
    /// How long after the last change the first such trial comes; four times as long after each that showed the connection
    /// to pay, up to ``longestRest``.
    package static let firstRest = Duration.seconds(5)
    /// The longest time between two trials.
    package static let longestRest = Duration.seconds(320)
    /// After how long more are tried, where the server or the session had no place for more.
    package static let refusalRest = Duration.seconds(10)

    private enum Phase: Sendable {
        /// More are added.
        case growing
        /// There are as many as there should be.
        case steady
        /// One fewer than there were, which came to so many bytes a second.
        case trying(before: Double)
    }

    /// How many there should be.
    package private(set) var target = 1
    /// The most there may be.
    package let limit: Int
    /// The most that the network's condition allows.
    private var allowance = Int.max
    private var ceiling: Int
    private var phase = Phase.growing
    private var since: MonotonicTime
    private var bytes: UInt64 = 0
    private var rest = ConnectionRamp.firstRest
    private var ceilingLifts: MonotonicTime?
    private var wasRefused = false

    /// A ramp that begins now.
    package init(limit: Int, now: MonotonicTime) {
        self.limit = max(1, limit)
        ceiling = max(1, limit)
        since = now
    }

    /// How many more there may be beside so many.
    package func room(beside count: Int) -> Int { max(0, ceiling - count) }

    /// Bytes came, on whichever connection.
    package mutating func add(_ count: UInt64) { bytes += count }

    /// Looks whether there should be more or fewer.
    /// - Parameters:
    ///   - active: How many receive now.
    ///   - isHeldBack: Whether they could be faster, and are held to a limit of our own: none is added then.
    package mutating func look(active: Int, isHeldBack: Bool = false, now: MonotonicTime) {
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
            target = min(wasRefused ? target + 1 : target * ConnectionRamp.growth, ceiling)
            enter(.growing, now)
        case .steady:
            guard target > 1, active >= target, span >= rest else { return }
            let before = speed(over: span)
            target -= 1
            enter(.trying(before: before), now)
        case .trying(let before):
            guard active <= target else {
                // The one that is too many has not ended yet.
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

    private func speed(over span: Duration) -> Double {
        Double(bytes) / max(0.001, Double(span.attoseconds) / 1e18)
    }

    private mutating func enter(_ phase: Phase, _ now: MonotonicTime) {
        self.phase = phase
        (since, bytes) = (now, 0)
    }

    /// The server, or the session, had no place for one more: there are no more than so many for a while.
    package mutating func refused(active: Int, now: MonotonicTime) {
        wasRefused = true
        ceiling = max(1, active)
        target = min(target, ceiling)
        ceilingLifts = now.advanced(by: ConnectionRamp.refusalRest)
        enter(.steady, now)
    }

    /// The network's condition allows so many; `nil` for any number. Those that are too many come to their ends.
    package mutating func allow(_ count: Int?, now: MonotonicTime) {
        let count = max(1, count ?? .max)
        guard count != allowance else { return }
        let isMore = count > allowance
        allowance = count
        if isMore {
            // What the server refused stays refused for its while.
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

    /// All begins anew, with one connection.
    package mutating func restart(now: MonotonicTime) {
        let allowance = allowance
        self = ConnectionRamp(limit: limit, now: now)
        self.allowance = allowance
        ceiling = min(limit, allowance)
    }
}
