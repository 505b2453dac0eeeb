/// The bodies whose end was told lately, for requests that were on their way meanwhile and bring one of them.
///
/// It knows the last thousand. One that it forgot only costs room, until it is the one used longest ago: no request is ever
/// answered with it.
struct RecentEndings: Sendable {
    static let limit = 1024

    private var ring: [UInt64] = []
    private var next = 0
    /// The last request that had begun when the body ended.
    private var lastFlights: [UInt64: UInt64] = [:]

    /// Notes an end.
    /// - Parameter lastFlight: The number of the request that began last.
    mutating func note(_ representation: UInt64, lastFlight: UInt64) {
        if lastFlights.updateValue(lastFlight, forKey: representation) != nil { return }
        if ring.count < Self.limit {
            ring.append(representation)
        } else {
            lastFlights[ring[next]] = nil
            ring[next] = representation
            next = (next + 1) % Self.limit
        }
    }

    /// Whether a body ended after a request had begun. One that ended before lives again: a body that was declared invalid
    /// may be found valid (RFC 9111 §4.4).
    func hasEnded(_ representation: UInt64, since flight: UInt64) -> Bool {
        lastFlights[representation].map { flight <= $0 } ?? false
    }

    /// Forgets all, since no request is on its way.
    mutating func removeAll() {
        guard !ring.isEmpty else { return }
        self = RecentEndings()
    }
}
