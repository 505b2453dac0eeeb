/// What both tiers of a store hold and were asked.
///
/// A request that is answered by memory counts there and nowhere else; the disk counts those that memory did not answer.
package struct TierStatistics: Equatable, Sendable {
    /// Memory's. Its misses are also the requests that the disk answered.
    package var memory: MemoryCache.Statistics
    /// The disk's; `nil` where there is none.
    package var disk: DiskStatistics?
    /// Responses stored in a tier or in both.
    package var stores = 0
    /// Responses that no tier took: too large, no room, a failing disk, or out of date before they were whole.
    package var refusals = 0

    /// Requests that a tier answered.
    package var hits: Int { memory.hits + (disk?.hits ?? 0) }
    /// Requests that none did.
    package var misses: Int { disk?.misses ?? memory.misses }
}
