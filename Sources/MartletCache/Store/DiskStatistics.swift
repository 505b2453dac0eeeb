/// What a cache on disk holds and what it was asked, by this process.
package struct DiskStatistics: Equatable, Sendable {
    /// Entries that are known; all of them once the index is complete.
    package var entryCount = 0
    /// Bytes occupied when the lock was held last: the files of all processes, the index and the folder itself.
    package var byteCount: UInt64 = 0
    /// The limit of that.
    package var limit: UInt64 = 0
    /// Whether all entries of the folder are known.
    package var isIndexComplete = false
    /// Questions that were answered.
    package var hits = 0
    /// Questions that were not.
    package var misses = 0
    /// Responses that were stored.
    package var stores = 0
    /// Heads that were replaced by those of a 304.
    package var updates = 0
    /// Responses that were not stored: too large, no room, a failing disk.
    package var refusals = 0
    /// Entries given up for others.
    package var evictions = 0
    /// Damaged entries that were removed.
    package var damaged = 0
}
