package import MartletStorage
import Synchronization

/// A cache of responses in a directory that several processes may share.
///
/// Unless stated otherwise, calls block on files, so they must run on a worker thread. No call fails because of the
/// disk: an unreadable entry is a miss, and an event reports it. A new cache serves immediately, since a key's digest
/// is the name of its file. Call ``load()`` in the background to complete the index, which only eviction needs.
///
/// | file | content |
/// |---|---|
/// | `<digest>.<slot>` | an entry: head, and body up to 32 KiB; never written again, put in place by a rename |
/// | `<digest>.<slot>.<generation>` | a larger body; it exists before its entry does |
/// | `new.<number>` | a file that is being written; locked by its writer |
/// | `index` | the order of use of the entries |
/// | `lock` | the right to store, and the amount that is stored |
///
/// Nothing is synced: a crash may lose an entry, and a checksum prevents delivery of a damaged one.
package final class DiskCache: Sendable {
    struct State {
        var index: DiskIndex
        var statistics = DiskStatistics()
        /// Keys that could not be removed from a read-only disk: they are misses.
        var hidden: Set<CacheDigest> = []
        /// Whether nothing is served, since not everything could be removed.
        var hidesAll = false
        /// The errno that was reported last, until the disk works again.
        var lastErrorCode: Int32?
        /// The last known size of the directory itself, which ``CacheUsage`` does not include.
        var directoryByteCount: UInt64 = 0
        /// ``CacheUsage/added`` at the last scan of the directory.
        var addedAtScan: UInt64 = 0
        /// The bytes that this process has added since then.
        var ownAdded: UInt64 = 0
        /// The space reserved for the bodies that this process is writing, by the numbers of their files. A scan finds
        /// only the part that is allocated.
        var reserved: [UInt64: UInt64] = [:]
    }

    let directory: CacheDirectory
    /// The files in the page cache; `nil` if they cannot be read without blocking.
    let nonBlockingFiles: NonBlockingFileSystem?
    let lock: CacheLock
    let emit: @Sendable (DiskCacheEvent) -> Void
    /// The lock on the state, used by any thread, but never while it waits for a file.
    let state: Mutex<State>
    /// Called with each body that is removed; set by ``onBodyRemoved(_:)``.
    private let endHandler = Mutex<(@Sendable (CacheKey, UInt64) -> Void)?>(nil)

    var files: any FileSystem { directory.files }

    /// Creates a cache in a directory, which is created with its parents if it is missing.
    /// - Parameters:
    ///   - directory: A new or empty one becomes the cache's; files that others put there later are ignored.
    ///   - limit: The maximum size of allocated blocks on disk, in bytes, including the cache's own files; 0 stores
    ///     nothing.
    ///   - onEvent: Called immediately, on any thread that uses the cache. It must return quickly and must not call the
    ///     cache.
    /// - Throws: ``CacheDirectoryError``. Other reasons why the directory cannot be used are events.
    package init(
        directory path: String, limit: UInt64, order: EvictionOrder = .leastRecentlyUsed,
        files: any FileSystem = LinuxFileSystem(), onEvent: @escaping @Sendable (DiskCacheEvent) -> Void = { _ in }
    ) throws(CacheDirectoryError) {
        let directory = CacheDirectory(path: path, files: files)
        self.directory = directory
        let preparation = Result { () throws(CacheDirectory.AccessError) in try directory.prepare(withParents: true) }
        // After the preparation, which creates the directory: only an existing one has a file system.
        nonBlockingFiles = NonBlockingFileSystem(of: files, inDirectory: path)
        lock = CacheLock(directory)
        emit = onEvent
        state = Mutex(State(index: DiskIndex(order), statistics: DiskStatistics(limit: limit)))
        do throws(CacheDirectory.AccessError) {
            let finding = try preparation.get()
            if case .foreign(let reason) = finding {
                throw .rejected(.holdsOtherFiles(path: path, reason: reason))
            }
            if finding == .unmarked { noting { () throws(StorageError) in try lock.mark() } }
        } catch {
            if case .rejected(let rejection) = error { throw rejection }
            note(error.error)
        }
    }

    /// Opens an existing cache, to inspect or to clear it while other processes may use it.
    ///
    /// The directory is not created, and is not changed until something is removed. Nothing is evicted: there is no
    /// limit.
    /// - Throws: ``CacheOpeningError``.
    package init(
        existing path: String, files: any FileSystem = LinuxFileSystem(),
        onEvent: @escaping @Sendable (DiskCacheEvent) -> Void = { _ in }
    ) throws(CacheOpeningError) {
        directory = CacheDirectory(path: path, files: files, createsIfMissing: false)
        nonBlockingFiles = nil
        lock = CacheLock(directory)
        emit = onEvent
        state = Mutex(State(index: DiskIndex(.leastRecentlyUsed), statistics: DiskStatistics(limit: .max)))
        let finding: DirectoryKind.Finding
        do throws(CacheDirectory.AccessError) { finding = try directory.prepare(withParents: false) } catch {
            switch error {
            case .rejected(let rejection): throw .rejected(rejection)
            case .storage(let storageError): throw CacheOpeningError(storageError, path)
            }
        }
        if case .foreign(let reason) = finding { throw .noCache(path: path, reason: reason) }
    }

    package var statistics: DiskStatistics {
        state.withLock { state in
            var statistics = state.statistics
            statistics.entryCount = state.index.count
            return statistics
        }
    }

    /// The maximum length of a body: an eighth of the limit.
    package var bodyLimit: UInt64 { state.withLock { $0.statistics.limit / 8 } }

    /// Sets a closure to call, under the lock, with each body that this process replaces or removes, but not evicts.
    func onBodyRemoved(_ body: @escaping @Sendable (CacheKey, UInt64) -> Void) { endHandler.withLock { $0 = body } }

    /// Reports removed bodies, which may belong to another key of the same digest.
    func notifyRemoved(_ key: CacheKey, _ generations: [UInt64]) {
        guard !generations.isEmpty, let handler = endHandler.withLock({ $0 }) else { return }
        for generation in generations { handler(key, generation) }
    }

    /// Returns the generations of the bodies that entries name, if removed bodies are reported.
    func generations(of names: [EntryName]) -> [UInt64] {
        isWatched ? names.compactMap { EntryIdentity.read(directory, $0)?.generation } : []
    }

    var isWatched: Bool { endHandler.withLock { $0 != nil } }

    /// Records an error of the file system. An event reports it, unless the previous error was the same.
    func note(_ error: StorageError) {
        let isNew = state.withLock { state in
            defer { state.lastErrorCode = error.code }
            return state.lastErrorCode != error.code
        }
        if isNew { emit(.unavailable(error)) }
    }

    /// Records that something was stored. After an error, an event reports the recovery.
    func noteSuccess() { if state.withLock({ $0.lastErrorCode.take() }) != nil { emit(.recovered) } }

    /// Runs a closure that uses files. After an error, which is recorded unless it is expected, it returns `nil`.
    @discardableResult func noting<Value>(except expected: Int32? = nil, _ body: () throws(StorageError) -> Value)
        -> Value?
    {
        do throws(StorageError) { return try body() } catch {
            if error.code != expected { note(error) }
            return nil
        }
    }

    /// Runs a closure under the lock, and records the stored amount afterwards.
    func withUsage<Value: Sendable>(_ body: (inout CacheUsage) throws(StorageError) -> Value) throws(StorageError)
        -> Value
    {
        try lock.withLock { (usage) throws(StorageError) -> Value in
            let before = usage.added
            defer {
                let (used, own) = (usage.used, usage.added &- before)
                state.withLock { state in
                    state.statistics.byteCount = used &+ state.directoryByteCount
                    state.ownAdded &+= own
                }
            }
            return try body(&usage)
        }
    }

    /// Returns a number of bytes, rounded up to blocks.
    static func blocks(_ byteCount: UInt64) -> UInt64 {
        let (sum, overflows) = byteCount.addingReportingOverflow(4095)
        return overflows ? .max : sum & ~4095
    }
}

/// An event of a cache on disk. None is an error of a request.
package enum DiskCacheEvent: Sendable, Equatable {
    /// A body above an eighth of the limit was not stored. The count is that of its received or announced bytes.
    case tooLarge(CacheKey, byteCount: UInt64, limit: UInt64)
    /// A response was not stored, because no space could be freed.
    case noRoom(CacheKey)
    /// A file was damaged or of another version; the entry was removed.
    case damaged(file: String, EntryFormatError)
    /// The directory cannot be read or written; reported once, until that changes.
    case unavailable(StorageError)
    case recovered
    case evicted(count: Int, byteCount: UInt64)
    /// The index is complete: the number of entries, and whether an index file contained their order.
    case indexed(count: Int, hadFile: Bool)
}

/// The content of a cache on disk, and its use by this process.
package struct DiskStatistics: Equatable, Sendable {
    /// The number of known entries: all of them once the index is complete.
    package var entryCount = 0
    /// The size on disk when the lock was last held: the files of all processes, the index and the directory itself.
    package var byteCount: UInt64 = 0
    package var limit: UInt64 = 0
    /// Whether all entries of the directory are known.
    package var isIndexComplete = false
    package var hits = 0
    package var misses = 0
    package var evictions = 0
    package var damaged = 0
}
