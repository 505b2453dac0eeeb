/// How one request uses the cache.
public enum CacheMode: String, Sendable, Hashable, CaseIterable, Codable {
    /// As RFC 9111 has it: a fresh response is served, a stale one validated.
    case standard
    /// From the network, whatever is stored; the answer is stored. Caches on the way are asked by `no-cache` to do the same,
    /// unless the request has a `Cache-Control` of its own.
    case reload
    /// Validated even when fresh, except what is fresh and immutable (RFC 8246).
    case revalidate
    /// What is stored, however stale, and the network without that. `no-cache` and `must-revalidate` still forbid it.
    case preferCache
    /// As ``preferCache``, but never the network: status 504 without a stored response that may be used.
    case onlyIfCached
    /// From the network; nothing is looked up, and no trace of the answer is left. Caches on the way are asked by `no-store`
    /// to leave none either (RFC 9111 §5.2.1.5), unless the request has a `Cache-Control` of its own.
    case noStore
    /// What is stored at once, however stale and whatever it forbids, since it is a preview; then the answer of the
    /// network. Two deliveries at most, and one where nothing is stored or what is stored is fresh.
    case cacheThenNetwork
}
