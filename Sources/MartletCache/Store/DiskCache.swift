import Glibc
package import MartletStorage
import Synchronization

/// Responses in a folder, which processes may share.
///
/// All calls block on files and belong on a worker; none of them fails because the disk does: what cannot be read is a miss,
/// what cannot be stored is not stored, and an event says so. A new cache serves at once, since a key's digest is the name
/// of its file; ``load()``, to be called in the background, makes the index complete, which only evicting needs.
///
/// | file | what |
/// |---|---|
/// | `<digest>.<slot>` | an entry: head, and body up to 32 KiB; never written again, put in place by a rename |
/// | `<digest>.<slot>.<generation>` | a larger body; there before its entry is |
/// | `new.<number>` | a file that is being written; locked by whoever writes it |
/// | `index` | in which order entries were used |
/// | `lock` | who may store, and how much is stored |
///
/// Nothing is synced: a crash may lose an entry, and a checksum keeps it from delivering a wrong one.
package final class DiskCache: Sendable {
    struct State {
        var index: DiskIndex
        var statistics = DiskStatistics()
        /// Keys that could not be removed from a disk that cannot be written: they are misses.
        var hidden: Set<CacheDigest> = []
        /// Whether nothing is served, since not everything could be removed.
        var hidesAll = false
        /// The errno that was reported last, while it lasts.
        var fault: Int32?
        /// What the folder itself occupied when that was looked at last, which no ledger counts.
        var folderByteCount: UInt64 = 0
        /// What the ledger had seen added when the folder was looked at last, and what this process added since.
        var addedAtScan: UInt64 = 0
        var ownAdded: UInt64 = 0
    }

    let folder: CacheFolder
    /// The folder, as far as its files are in the kernel's memory; `nil` where it cannot be asked for that.
    let folderAtHand: CacheFolder?
    let lock: CacheLock
    private let report: @Sendable (DiskCacheEvent) -> Void
    /// Read and written by any thread, never while it waits for a file.
    let state: Mutex<State>
    /// Told of each body that ends; set once, when the cache is put behind a store.
    private let endHandler = Mutex<(@Sendable (CacheKey, UInt64) -> Void)?>(nil)

    var files: any FileSystem { folder.files }

    /// A cache in a folder, which is made, with those above it, where it is missing.
    ///
    /// - Parameters:
    ///   - directory: the folder. One that is new or empty becomes the cache's; files that others put there later are left
    ///     alone.
    ///   - limit: what the cache may occupy in bytes, in allocated blocks, its own files for the purpose included. With 0
    ///     nothing is stored.
    ///   - order: what goes first when there is no room.
    ///   - onEvent: called on whatever thread works on the cache, at once: it must neither take long nor call the cache.
    /// - Throws: when the folder belongs to another user, when others may read or write it, or when it has files and is no
    ///   cache's. A folder that cannot be used for other reasons is an event.
    package init(
        directory: String, limit: UInt64, order: EvictionOrder = .leastRecentlyUsed,
        files: any FileSystem = LinuxFileSystem(),
        onEvent: @escaping @Sendable (DiskCacheEvent) -> Void = { _ in }
    ) throws(CacheDirectoryError) {
        let folder = CacheFolder(path: directory, files: files)
        var fault: StorageError?
        var isMarked = false
        do throws(CacheFolder.Fault) {
            try folder.prepare(withParents: true)
            isMarked = try folder.isMarked()
        } catch {
            if case .refused(let refusal) = error { throw refusal }
            fault = error.error
        }
        self.folder = folder
        folderAtHand = FilesAtHand(of: files, inFolder: directory).map {
            CacheFolder(path: directory, files: $0, mayBeMade: false)
        }
        lock = CacheLock(folder)
        report = onEvent
        state = Mutex(State(index: DiskIndex(order)))
        state.withLock { $0.statistics.limit = limit }
        do throws(StorageError) {
            if fault == nil, !isMarked { try lock.mark() }
        } catch {
            fault = error
        }
        if let fault { note(fault) }
    }

    /// A cache that is there already, to look into it or to clear it while others may use it.
    ///
    /// The folder is not made, and stays as it is until something is removed. There is no limit: what others hold their
    /// cache to is not known here, and nothing is given up for it.
    ///
    /// - Throws: when there is no folder, none that is a cache's, or one that is another user's or open to others.
    package init(
        existing directory: String, files: any FileSystem = LinuxFileSystem(),
        onEvent: @escaping @Sendable (DiskCacheEvent) -> Void = { _ in }
    ) throws(CacheOpeningError) {
        folder = CacheFolder(path: directory, files: files, mayBeMade: false)
        folderAtHand = nil
        lock = CacheLock(folder)
        report = onEvent
        state = Mutex(State(index: DiskIndex(.leastRecentlyUsed)))
        state.withLock { $0.statistics.limit = .max }
        do throws(CacheFolder.Fault) {
            try folder.prepare(withParents: false)
        } catch {
            switch error {
            case .refused(let refusal): throw .refused(refusal)
            case .storage(let fault): throw CacheOpeningError(fault, directory)
            }
        }
        let finding: FolderKind.Finding
        do throws(StorageError) {
            finding = try folder.look()
        } catch {
            throw CacheOpeningError(error, directory)
        }
        if case .foreign(let reason) = finding { throw .noCache(path: directory, reason: reason) }
    }

    /// What it holds and what it was asked.
    package var statistics: DiskStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.entryCount = state.index.count
            return statistics
        }
    }

    /// The longest body that is stored: an eighth of the limit.
    package var bodyLimit: UInt64 { state.withLock { $0.statistics.limit / 8 } }

    // MARK: Events

    /// Has a closure called with the generation of each body that is replaced or removed, by this process and not to make
    /// room. It is called under the lock: it must neither take long nor call the cache.
    func whenBodyEnds(_ body: @escaping @Sendable (CacheKey, UInt64) -> Void) {
        endHandler.withLock { $0 = body }
    }

    /// Says that bodies have ended; what was found under the names of a key may be another key's of the same digest.
    func noteEnd(_ key: CacheKey, _ generations: [UInt64]) {
        guard !generations.isEmpty, let handler = endHandler.withLock({ $0 }) else { return }
        for generation in generations { handler(key, generation) }
    }

    /// The generations of the bodies that entries name, where somebody is told when they end.
    func generations(of names: [EntryName]) -> [UInt64] {
        guard isWatched else { return [] }
        return names.compactMap { EntryIdentity.read(folder, $0)?.generation }
    }

    /// Whether somebody is told when bodies end.
    var isWatched: Bool { endHandler.withLock { $0 != nil } }

    func emit(_ event: DiskCacheEvent) { report(event) }

    /// Notes that the folder cannot be used.
    func note(_ error: StorageError) {
        let isNew = state.withLock { state in
            defer { state.fault = error.code }
            return state.fault != error.code
        }
        if isNew { emit(.unavailable(error)) }
    }

    /// Notes that something was stored.
    func noteSuccess() {
        let hadFault = state.withLock { state in
            defer { state.fault = nil }
            return state.fault != nil
        }
        if hadFault { emit(.recovered) }
    }

    /// Runs a closure under the lock, and notes how much is stored afterwards.
    func withLedger<Value: Sendable>(
        _ body: (inout CacheLedger) throws(StorageError) -> Value
    ) throws(StorageError) -> Value {
        try lock.withLock { (ledger) throws(StorageError) -> Value in
            let before = ledger.added
            defer {
                let (used, own) = (ledger.used, ledger.added &- before)
                state.withLock { state in
                    state.statistics.byteCount = used &+ state.folderByteCount
                    state.ownAdded &+= own
                }
            }
            return try body(&ledger)
        }
    }

    /// Bytes in blocks, as they will be counted.
    static func blocks(_ byteCount: UInt64) -> UInt64 {
        let (sum, overflows) = byteCount.addingReportingOverflow(4095)
        return overflows ? .max : sum & ~4095
    }
}

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
