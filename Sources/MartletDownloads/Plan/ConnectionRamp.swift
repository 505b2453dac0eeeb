package import MartletTransport

/// How many connections a download uses: one at first, and one more as long as that makes it faster by a tenth or more.
package struct ConnectionRamp: Sendable {
    /// How long the speed is measured after a connection was added.
    package static let window = Duration.milliseconds(300)
    /// After how long another one is tried that was of no use before.
    package static let rest = Duration.seconds(10)

    /// How many there should be.
    package private(set) var target = 1
    /// The most there may be.
    package let limit: Int
    private var ceiling: Int
    private var measuredFrom: MonotonicTime
    private var bytes: UInt64 = 0
    /// The speed with one connection fewer, in bytes a second.
    private var before: Double?
    private var nextTry: MonotonicTime?

    /// A ramp that begins now.
    package init(limit: Int, now: MonotonicTime) {
        self.limit = max(1, limit)
        ceiling = max(1, limit)
        measuredFrom = now
    }

    /// Bytes came, on whichever connection.
    package mutating func add(_ count: UInt64) {
        bytes += count
    }

    /// The number of connections that receive has changed: what was measured is of no account.
    package mutating func connectionsChanged(now: MonotonicTime) {
        (measuredFrom, bytes) = (now, 0)
    }

    /// Looks whether another connection is worth while.
    /// - Parameter active: How many receive now.
    package mutating func look(active: Int, now: MonotonicTime) {
        if let nextTry, now >= nextTry {
            self.nextTry = nil
            ceiling = limit
            before = nil
        }
        let span = now.since(measuredFrom)
        guard active >= target, bytes > 0, span >= ConnectionRamp.window else { return }
        let speed = Double(bytes) / (Double(span.attoseconds) / 1e18)
        (measuredFrom, bytes) = (now, 0)
        if let before, target > 1, speed < before * 1.1 {
            // It was of no use: the one before it stays, and the next try comes later.
            target -= 1
            ceiling = target
            nextTry = now.advanced(by: ConnectionRamp.rest)
            self.before = nil
            return
        }
        guard target < ceiling else { return }
        before = speed
        target += 1
    }

    /// The server, or the session, did not let one more in: there are no more than so many for a while.
    package mutating func refused(active: Int, now: MonotonicTime) {
        ceiling = max(1, active)
        target = min(target, ceiling)
        before = nil
        nextTry = now.advanced(by: ConnectionRamp.rest)
        connectionsChanged(now: now)
    }

    /// All begins anew, with one connection.
    package mutating func restart(now: MonotonicTime) {
        self = ConnectionRamp(limit: limit, now: now)
    }
}
