/// How one request uses the cache.
public enum CacheMode: String, Sendable, Hashable, CaseIterable, Codable {
    /// As RFC 9111 has it: a fresh response is served, a stale one validated.
    case standard
    /// From the network, whatever is stored; the answer is stored.
    case reload
    /// Validated even when fresh, except what is fresh and immutable (RFC 8246).
    case revalidate
    /// What is stored, however stale, and the network without that. `no-cache` and `must-revalidate` still forbid it.
    case preferCache
    /// As ``preferCache``, but never the network: status 504 without a stored response that may be used.
    case onlyIfCached
    /// From the network; nothing is looked up, and no trace of the answer is left.
    case noStore
    /// What is stored at once, however stale and whatever it forbids, since it is a preview; then the answer of the
    /// network. Two deliveries at most, and one where nothing is stored or what is stored is fresh.
    case cacheThenNetwork
}
