package import MartletStorage

/// What a cache on disk has to say. None of it is an error of a request.
package enum DiskCacheEvent: Sendable, Equatable {
    /// A body above an eighth of the limit was not stored; so many bytes of it were seen or announced.
    case tooLarge(CacheKey, byteCount: UInt64, limit: UInt64)
    /// A response was not stored, since there was no room that could be made.
    case noRoom(CacheKey)
    /// A file was damaged or of another version; the entry was removed.
    case damaged(file: String, EntryFault)
    /// The folder cannot be used as it should; said once, until that changes.
    case unavailable(StorageError)
    /// The folder can be used again.
    case recovered
    /// Entries were given up for others.
    case evicted(count: Int, byteCount: UInt64)
    /// The index is complete: so many entries, and whether an index file was there to tell their order.
    case indexed(count: Int, hadFile: Bool)
}
