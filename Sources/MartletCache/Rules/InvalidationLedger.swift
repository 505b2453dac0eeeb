/// Which URLs were invalidated when, so that what was asked before is not stored behind it as if it were new (RFC 9111
/// §4.4).
///
/// Whoever sends a request takes an ``Epoch`` first, and asks before storing whether it still holds. The ledger is
/// bounded: what it forgets counts as invalidated for all requests that are older.
package struct InvalidationLedger: Sendable {
    /// A moment between invalidations.
    package struct Epoch: Hashable, Comparable, Sendable {
        fileprivate let number: UInt64

        /// The earlier one first.
        package static func < (left: Epoch, right: Epoch) -> Bool { left.number < right.number }
    }

    /// The most URLs that are remembered, at least 1.
    private let limit: Int
    private var count: UInt64 = 0
    /// Epochs below it hold for no URL: everything was invalidated, or what was has been forgotten.
    private var floor: UInt64 = 0
    private var latest: [String: UInt64] = [:]
    /// The URLs in the order they were invalidated; some have been again since, and stand there again.
    private var order: [(url: String, number: UInt64)] = []
    private var first = 0

    /// A ledger that remembers so many URLs, 1024 by default.
    package init(limit: Int = 1024) { self.limit = max(1, limit) }

    /// The present epoch, for a request that is about to be sent.
    package var epoch: Epoch { Epoch(number: count) }

    /// Notes that a URL is out of date, in all partitions.
    package mutating func invalidate(_ url: String) {
        count += 1
        latest[url] = count
        order.append((url, count))
        while order.count - first > limit {
            let oldest = order[first]
            first += 1
            if latest[oldest.url] == oldest.number {
                latest[oldest.url] = nil
                floor = max(floor, oldest.number)
            }
        }
        if first > limit {
            order.removeFirst(first)
            first = 0
        }
    }

    /// Notes that everything is out of date: the cache was cleared.
    package mutating func invalidateAll() {
        count += 1
        floor = count
        latest = [:]
        order = []
        first = 0
    }

    /// Whether a response to a request that was sent at an epoch may be stored.
    package func holds(_ epoch: Epoch, for url: String) -> Bool {
        epoch.number >= floor && epoch.number >= latest[url] ?? 0
    }
}
