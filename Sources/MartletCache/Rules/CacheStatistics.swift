/// What a cache did so far, in numbers that agree with the ledger of its servers.
///
/// Each request that ends counts once, by what answered it. Those that reached a server are ``validated``, ``misses``,
/// ``bypasses`` and ``revalidations``, and those of ``staleOnErrors`` whose server answered with an error.
package struct CacheStatistics: Equatable, Sendable {
    /// What came of a request.
    package enum Outcome: Equatable, Sendable {
        /// A fresh stored response answered.
        case hit
        /// A stale stored response answered without waiting for the network.
        case staleHit
        /// The network said that the stored response is still good.
        case validated
        /// The network's response answered.
        case miss
        /// A stored response stood in for an error.
        case staleOnError
        /// The cache had no part in it.
        case bypass
        /// The transfer of another request answered.
        case shared
        /// Nothing might answer but the cache, and it had no response.
        case unsatisfiable
    }

    /// Requests answered by fresh stored responses.
    package private(set) var hits: UInt64 = 0
    /// Requests answered by stale stored responses, without waiting.
    package private(set) var staleHits: UInt64 = 0
    /// Requests answered by stored responses after a 304.
    package private(set) var validated: UInt64 = 0
    /// Requests answered by the network.
    package private(set) var misses: UInt64 = 0
    /// Requests answered by stored responses in place of errors.
    package private(set) var staleOnErrors: UInt64 = 0
    /// Requests that the cache had no part in.
    package private(set) var bypasses: UInt64 = 0
    /// Requests answered by the transfer of another.
    package private(set) var shared: UInt64 = 0
    /// Requests that got 504 without a network.
    package private(set) var unsatisfiable: UInt64 = 0
    /// Validations behind responses that were served stale.
    package private(set) var revalidations: UInt64 = 0
    /// Responses stored.
    package private(set) var stores: UInt64 = 0
    /// Responses evicted for want of room.
    package private(set) var evictions: UInt64 = 0
    /// Stored responses removed because they were out of date or damaged.
    package private(set) var removals: UInt64 = 0
    /// Bytes of bodies delivered from the cache.
    package private(set) var bytesServed: UInt64 = 0
    /// Bytes of bodies stored.
    package private(set) var bytesStored: UInt64 = 0

    /// Nothing yet.
    package init() {}

    /// Counts what came of a request.
    package mutating func count(_ outcome: Outcome) {
        switch outcome {
        case .hit: hits &+= 1
        case .staleHit: staleHits &+= 1
        case .validated: validated &+= 1
        case .miss: misses &+= 1
        case .staleOnError: staleOnErrors &+= 1
        case .bypass: bypasses &+= 1
        case .shared: shared &+= 1
        case .unsatisfiable: unsatisfiable &+= 1
        }
    }

    /// Counts a validation behind a response that was served stale.
    package mutating func countRevalidation() { revalidations &+= 1 }

    /// Counts a stored response by the bytes of its body.
    package mutating func countStore(byteCount: UInt64) {
        stores &+= 1
        bytesStored &+= byteCount
    }

    /// Counts evicted responses.
    package mutating func countEvictions(_ number: UInt64) { evictions &+= number }

    /// Counts removed responses.
    package mutating func countRemovals(_ number: UInt64) { removals &+= number }

    /// Counts bytes delivered from the cache.
    package mutating func countServed(byteCount: UInt64) { bytesServed &+= byteCount }

    /// All lookups that ended.
    package var lookups: UInt64 {
        hits &+ staleHits &+ validated &+ misses &+ staleOnErrors &+ shared &+ unsatisfiable
    }
}
