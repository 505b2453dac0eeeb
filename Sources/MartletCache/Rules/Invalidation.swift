package import MartletWire

/// The URLs that were invalidated, so that responses to earlier requests are not stored afterwards (RFC 9111 §4.4).
///
/// Code that sends a request reads ``epoch`` first, and calls `holds(_:for:)` before it stores the response. The size
/// of the log is limited: when an entry is removed, all URLs count as invalidated at the time of that entry.
package struct InvalidationLog: Sendable {
    /// A moment between invalidations.
    package struct Epoch: Sendable { fileprivate let number: UInt64 }

    private var count: UInt64 = 0
    /// The first epoch that may be valid. Earlier ones are invalid for every URL.
    private var floor: UInt64 = 0
    private var latest: RecentKeys<String, UInt64>
    /// The number of the responses of a key that are being received and stored, and the epoch of the last one that was
    /// later and is not stored.
    private var pending: [CacheKey: (count: Int, superseded: UInt64)] = [:]

    /// Creates a log with a maximum number of URLs, 1024 by default.
    package init(limit: Int = 1024) { latest = RecentKeys(limit: limit) }

    /// The current epoch, for a request that is about to be sent.
    package var epoch: Epoch { Epoch(number: count) }

    /// Records that a URL is out of date, in all partitions.
    package mutating func invalidate(_ url: String) {
        count += 1
        floor = max(floor, latest.update(count, for: url).removed ?? 0)
    }

    /// Records that a response is being received, and is to be stored.
    package mutating func begin(_ key: CacheKey) { pending[key, default: (0, 0)].count += 1 }

    /// Records the end of such a response.
    package mutating func end(_ key: CacheKey) {
        pending[key]?.count -= 1
        if pending[key]?.count == 0 { pending[key] = nil }
    }

    /// Records that the responses of a key that are being received are out of date: a later one is not stored.
    package mutating func supersede(_ key: CacheKey) {
        guard pending[key] != nil else { return }
        count += 1
        pending[key]?.superseded = count
    }

    /// Records that everything is out of date: the cache was cleared.
    package mutating func invalidateAll() {
        count += 1
        floor = count
        latest = RecentKeys(limit: latest.limit)
    }

    /// Whether a URL was not invalidated since an epoch.
    package func holds(_ epoch: Epoch, for url: String) -> Bool {
        epoch.number >= floor && epoch.number >= latest[url] ?? 0
    }

    /// Whether the response to a request of an epoch may be stored.
    package func holds(_ epoch: Epoch, for key: CacheKey) -> Bool {
        holds(epoch, for: key.url) && epoch.number >= pending[key]?.superseded ?? 0
    }
}

/// The URLs that are out of date after a request that may have changed them (RFC 9111 §4.4).
package enum InvalidationRule {
    /// The safe methods (RFC 9110 §9.2.1), and CONNECT. All others, known or not, may change resources.
    private static let safe: Set<String> = [
        "GET", "HEAD", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "REPORT", "SEARCH", "QUERY", "PRI",
    ]

    /// Returns the URLs that are out of date, in normal form: the request's, then those that `Location` and
    /// `Content-Location` name at the same origin. None after a safe method or an error.
    /// - Parameter resolve: Resolves a reference against the request's URL; `nil` if it is malformed.
    package static func targets(method: String, url: String, response: ResponseHead, resolve: (String) -> String?)
        -> [String]
    {
        guard !safe.contains(method), (200..<400).contains(response.status), let target = KeyURL(url) else { return [] }
        var targets = [target.text]
        for name in ["Location", "Content-Location"] {
            let other = response.fields.firstValue(of: name).flatMap(resolve).flatMap { KeyURL($0) }
            guard let other, other.origin == target.origin else { continue }
            if !targets.contains(other.text) { targets.append(other.text) }
        }
        return targets
    }
}
