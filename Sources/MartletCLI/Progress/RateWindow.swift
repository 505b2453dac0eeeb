/// The rate of a transfer over its last ten seconds; it falls to zero when nothing moves.
struct RateWindow: Sendable {
    private static let length = Duration.seconds(10)
    private var samples: [(time: Duration, bytes: UInt64)] = []
    private var lastAdvance = Duration.zero

    /// Notes how far the transfer is. Times are counted from its beginning and never fall.
    mutating func note(_ bytes: UInt64, at time: Duration) {
        if samples.last?.bytes != bytes { lastAdvance = time }
        samples.append((time, bytes))
        // One sample older than the window is kept: the rate is measured from it.
        while samples.count > 2, samples[1].time <= time - RateWindow.length { samples.removeFirst() }
    }

    /// Bytes a second.
    var rate: Double {
        guard let first = samples.first, let last = samples.last else { return 0 }
        // Over the window alone: what came before it counts for nothing once ten seconds have passed.
        let span = (last.time - first.time) / .seconds(1)
        guard span > 0, last.bytes > first.bytes else { return 0 }
        return Double(last.bytes - first.bytes) / span
    }

    /// For how long nothing has moved.
    func stall(at time: Duration) -> Duration {
        max(.zero, time - lastAdvance)
    }
}
