import MartletCore
import MartletCache

extension ResponseCache {
    /// What a cache did in this process, and what it holds, in numbers that agree with those of its servers: each request
    /// that ended counts once, by what answered it.
    public struct Statistics: Hashable, Sendable {
        /// Requests answered by fresh stored responses.
        public var hits: UInt64 = 0
        /// Requests answered by stale stored responses, without waiting for the network.
        public var staleHits: UInt64 = 0
        /// Requests answered by stored responses after a 304.
        public var validated: UInt64 = 0
        /// Requests answered by the network.
        public var misses: UInt64 = 0
        /// Requests answered by stored responses in place of errors.
        public var staleOnErrors: UInt64 = 0
        /// Requests that the cache had no part in.
        public var bypasses: UInt64 = 0
        /// Requests answered by the transfer of another.
        public var shared: UInt64 = 0
        /// Requests that got 504, since nothing might answer but the cache, and it had nothing.
        public var unsatisfiable: UInt64 = 0
        /// Validations behind responses that were served stale.
        public var revalidations: UInt64 = 0
        /// Responses stored.
        public var stores: UInt64 = 0
        /// Responses given up for others, in memory and on disk.
        public var evictions: UInt64 = 0
        /// Stored responses removed because they were out of date or damaged.
        public var removals: UInt64 = 0
        /// Bytes of bodies delivered from the cache.
        public var bytesServed: UInt64 = 0
        /// Bytes of bodies stored.
        public var bytesStored: UInt64 = 0
        /// Responses held in memory, and what they cost in bytes.
        public var memoryEntries = 0
        /// What the responses in memory cost, in bytes.
        public var memoryBytes = 0
        /// Responses on disk that are known: all, once the index is complete.
        public var diskEntries = 0
        /// Bytes occupied on disk when that was looked at last.
        public var diskBytes: UInt64 = 0

        /// Nothing.
        public init() {}

        /// The same, with what the tiers of a store hold and gave up.
        func with(_ tiers: TierStatistics) -> Statistics {
            var statistics = self
            statistics.memoryEntries = tiers.memory.entryCount
            statistics.memoryBytes = tiers.memory.byteCount
            statistics.evictions = UInt64(tiers.memory.evictions)
            guard let disk = tiers.disk else { return statistics }
            statistics.diskEntries = disk.entryCount
            statistics.diskBytes = disk.byteCount
            statistics.evictions += UInt64(disk.evictions)
            statistics.removals += UInt64(disk.damaged)
            return statistics
        }
    }
}
