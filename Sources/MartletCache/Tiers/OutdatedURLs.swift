/// Which URLs an unsafe request has made out of date, and when, for what cannot be found by its URL alone: what was stored for
/// other credentials, or in other partitions (RFC 9111 §4.4).
///
/// Bounded: of more URLs than ``limit`` those are forgotten that came first, half of them at once, and what others have of
/// these counts again. Times are the wall clock's: where that is set back, what is stored of such a URL is not used until it has
/// come that far again.
struct OutdatedURLs: Sendable {
    /// The most URLs.
    static let limit = 1024

    private var times: [String: WallTime] = [:]
    /// The URLs in the order in which they came first.
    private var order: [String] = []

    /// Notes that what was asked for up to now is out of date.
    mutating func note(_ url: String, at now: WallTime) {
        if times.updateValue(now, forKey: url) == nil { order.append(url) }
        guard order.count > OutdatedURLs.limit else { return }
        for url in order.prefix(OutdatedURLs.limit / 2) { times[url] = nil }
        order.removeFirst(OutdatedURLs.limit / 2)
    }

    /// Forgets all of them: nothing is stored any more.
    mutating func removeAll() {
        times = [:]
        order = []
    }

    /// The moment at which a request is sent: behind that at which its URL went out of date, also within its millisecond.
    func requestTime(for url: String, now: WallTime) -> WallTime {
        guard !times.isEmpty, times[url] == now, now.milliseconds < .max else { return now }
        return WallTime(milliseconds: now.milliseconds + 1)
    }

    /// Whether a response was asked for before its URL went out of date. One that another process asked for in the same
    /// millisecond counts as older, which costs a request at most.
    func cover(_ head: StoredHead) -> Bool {
        guard !times.isEmpty, let time = times[head.key.url] else { return false }
        return head.requestTime <= time
    }
}
