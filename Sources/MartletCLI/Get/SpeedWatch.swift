/// Whether a transfer is too slow: it moved less than so many bytes a second, on average over the last so many seconds.
///
/// It begins with a connection, as curl's `-Y` and `-y`: the wait for the head counts, the wait for a connection does not.
struct SpeedWatch: Sendable {
    private struct Sample: Sendable {
        var instant: ContinuousClock.Instant
        var bytes: UInt64
    }

    /// How many times at most in each of ``time`` it is asked.
    private static let sampleLimit = 20

    /// Bytes a second.
    let limit: Int
    /// How long they are counted.
    let time: Duration
    /// The samples of the last ``time``, with one before them; none while there is no connection.
    private var samples: [Sample] = []

    /// A watch; `nil` where nothing is too slow.
    init?(_ options: TransferOptions) {
        guard options.speedLimit > 0, options.speedTime > .zero else { return nil }
        limit = options.speedLimit
        time = options.speedTime
    }

    /// How long to wait between two questions.
    var interval: Duration { max(time / SpeedWatch.sampleLimit, .milliseconds(1)) }

    /// What is said of a transfer that is too slow, in curl's words.
    var message: String {
        let seconds = time / .seconds(1)
        let text = seconds == seconds.rounded() ? String(Int(seconds)) : String(seconds)
        return "Operation too slow. Less than \(limit) bytes/sec transferred the last \(text) seconds"
    }

    /// There is a connection: from now on bytes can move.
    mutating func begin(at now: ContinuousClock.Instant) {
        samples = [Sample(instant: now, bytes: 0)]
    }

    /// There is none any more: no time counts until there is another.
    mutating func rest() {
        samples = []
    }

    /// Notes how many bytes have moved since the connection was there, either way.
    /// - Returns: Whether that is too slow.
    mutating func isTooSlow(_ bytes: UInt64, at now: ContinuousClock.Instant) -> Bool {
        guard let last = samples.last else { return false }
        // A request that was sent again counts anew.
        if bytes < last.bytes { begin(at: now) }
        samples.append(Sample(instant: now, bytes: bytes))
        while samples.count > 2, now - samples[1].instant >= time { samples.removeFirst() }
        let elapsed = now - samples[0].instant
        guard elapsed >= time else { return false }
        return Double(bytes - samples[0].bytes) < Double(limit) * (elapsed / .seconds(1))
    }
}
