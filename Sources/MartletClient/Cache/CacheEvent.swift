import MartletCache

/// What a cache has to say. None of it is an error of a request.
public enum CacheEvent: Sendable, Hashable {
    /// A body was not stored, since it is above an eighth of the limit; so many bytes of it were announced or seen.
    case tooLarge(url: String, byteCount: UInt64, limit: UInt64)
    /// A response was not stored, since no room could be made.
    case noRoom(url: String)
    /// A stored file was damaged, or of another version; it was removed.
    case damaged(file: String, reason: String)
    /// The folder cannot be used as it should, for this reason; said once, until that changes.
    case unavailable(reason: String)
    /// The folder can be used again.
    case recovered
    /// Entries on disk were given up for others.
    case evicted(count: Int, byteCount: UInt64)
    /// The index of the disk is complete: so many entries, and whether there was a file that told their order.
    case indexed(count: Int, hadFile: Bool)
    /// A response that had been served stale could not be validated behind it.
    case revalidationFailed(url: String)
    /// A stored response stood in for an error: the server's, by its status, or `nil` where there was no answer.
    case staleOnError(url: String, status: Int?)
    /// A subscriber was too slow for so many events, which came before the next one.
    case dropped(Int)

    init(_ event: DiskCacheEvent) {
        self =
            switch event {
            case .tooLarge(let key, let byteCount, let limit):
                .tooLarge(url: key.url, byteCount: byteCount, limit: limit)
            case .noRoom(let key): .noRoom(url: key.url)
            case .damaged(let file, let fault): .damaged(file: file, reason: "\(fault)")
            case .unavailable(let error): .unavailable(reason: error.description)
            case .recovered: .recovered
            case .evicted(let count, let byteCount): .evicted(count: count, byteCount: byteCount)
            case .indexed(let count, let hadFile): .indexed(count: count, hadFile: hadFile)
            }
    }
}
