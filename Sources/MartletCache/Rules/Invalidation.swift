package import MartletWire

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

/// Which URLs are out of date after a request that may have changed them (RFC 9111 §4.4).
package enum InvalidationRule {
    /// The methods that change nothing (RFC 9110 §9.2.1); all others, known or not, may.
    private static let safe: Set<String> = [
        "GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "REPORT", "SEARCH", "QUERY", "PRI",
    ]

    /// The URLs that are out of date, in their normal form and each once: that of the request first, then those that
    /// `Location` and `Content-Location` name at the same origin. None after a safe method, or an error.
    ///
    /// - Parameters:
    ///   - method: the method that was answered.
    ///   - url: the URL of the request.
    ///   - response: the head of the answer.
    ///   - resolve: makes a reference absolute, with the request's URL as its base; nil where it is malformed.
    package static func targets(
        method: String, url: String, response: ResponseHead, resolve: (String) -> String?
    ) -> [String] {
        guard !safe.contains(method), (200..<400).contains(response.status), let target = KeyURL(url) else {
            return []
        }
        var targets = [target.origin + target.target]
        for name in ["Location", "Content-Location"] {
            guard let reference = response.fields.firstValue(of: name), let resolved = resolve(reference),
                let other = KeyURL(resolved), other.origin == target.origin
            else { continue }
            let text = other.origin + other.target
            if !targets.contains(text) { targets.append(text) }
        }
        return targets
    }
}
