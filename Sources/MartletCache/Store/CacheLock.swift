import Glibc
import MartletStorage
import Synchronization

/// The right to store, evict and write the index: held by one thread of one process at a time.
///
/// The kernel releases it when the process that holds it ends. Reading needs no lock.
final class CacheLock: Sendable {
    /// The maximum time that a process waits for a lock of another one.
    private static let maximumWait = Duration.seconds(1)
    /// The time after which a lock counts as held up. Until then, another process is probably storing a response.
    private static let blockedThreshold = Duration.milliseconds(50)
    /// The time after which a failed attempt no longer shows that a lock is held up: it may be free by then.
    private static let maximumFailureAge = Duration.seconds(10)
    /// The first and the last failed attempt since the last success, by directory, for all caches.
    private static let failures = Mutex<[String: (first: ContinuousClock.Instant, last: ContinuousClock.Instant)]>([:])

    private let directory: CacheDirectory
    /// The lock file, once it is open. A thread holds this mutex while it has the lock, but not while it waits for one.
    private let file = Mutex<OpenFile?>(nil)

    init(_ directory: CacheDirectory) { self.directory = directory }

    /// Whether recent attempts found that another process holds the lock for longer than storing takes. Does not block.
    func isHeldUp(at now: ContinuousClock.Instant = .now) -> Bool {
        guard let failed = CacheLock.failures.withLock({ $0.isEmpty ? nil : $0[directory.path] }) else { return false }
        return failed.first.duration(to: now) > CacheLock.blockedThreshold
            && failed.last.duration(to: now) < CacheLock.maximumFailureAge
    }

    /// Runs a closure with exclusive access to the directory. The closure must not acquire the lock again.
    /// - Throws: The closure's error; the error of opening the lock file; `EWOULDBLOCK` if another process holds the
    ///   lock for a second. Later calls then throw immediately, until one succeeds.
    func withLock<Value: Sendable>(_ body: (inout CacheUsage) throws(StorageError) -> Value) throws(StorageError)
        -> Value
    {
        while true {
            if let value = try withFreeLock(body) { return value }
            guard mayWait() else {
                throw StorageError(operation: "lock", path: directory.path(of: .lock), code: EWOULDBLOCK)
            }
            usleep(500)
        }
    }

    /// Runs a closure with exclusive access to the directory; `nil` if another process has the lock.
    private func withFreeLock<Value: Sendable>(_ body: (inout CacheUsage) throws(StorageError) -> Value)
        throws(StorageError) -> Value?
    {
        try file.withLock { (file) throws(StorageError) -> Value? in
            guard let held = try acquire(&file) else { return nil }
            defer { directory.files.unlock(held) }
            var usage = try CacheUsage(held, directory.files)
            let value: Value
            do throws(StorageError) { value = try body(&usage) } catch {
                try? usage.save()
                throw error
            }
            try usage.save()
            return value
        }
    }

    /// Whether this process may wait longer for the lock that it has just failed to acquire.
    private func mayWait() -> Bool {
        let now = ContinuousClock.now
        return CacheLock.failures.withLock { failures in
            let first = failures[directory.path]?.first ?? now
            failures[directory.path] = (first, now)
            return first.duration(to: now) < CacheLock.maximumWait
        }
    }

    /// Acquires the lock; `nil` if another process has it.
    private func acquire(_ file: inout OpenFile?) throws(StorageError) -> OpenFile? {
        let path = directory.path(of: .lock)
        for _ in 0..<3 {
            let candidate: OpenFile
            if let file { candidate = file } else { candidate = try open(path) }
            file = candidate
            guard try directory.files.tryLock(candidate) else { return nil }
            CacheLock.failures.withLock { if !$0.isEmpty { $0[directory.path] = nil } }
            // The directory may have been removed and created again: then others lock another file of this name.
            do throws(StorageError) {
                let own = try directory.files.status(of: candidate).identity
                if try directory.files.statusIfPresent(at: path)?.identity == own { return candidate }
            } catch {
                // Some network file systems report a removed file in this way.
                if error.code != ENOENT, error.code != ESTALE {
                    directory.files.unlock(candidate)
                    throw error
                }
            }
            directory.files.unlock(candidate)
            file = nil
        }
        throw StorageError(operation: "lock", path: path, code: ENOENT)
    }

    /// Opens the lock file, and marks the directory as a cache's. It comes before all other writes, so that nothing is
    /// written to the directory of another program.
    private func open(_ path: String) throws(StorageError) -> OpenFile {
        let finding: DirectoryKind.Finding
        do throws(StorageError) { finding = try directory.inspect() } catch  where error.code == ENOENT {
            do throws(CacheDirectory.AccessError) { finding = try directory.prepare(withParents: false) } catch {
                throw error.error
            }
        }
        if case .foreign = finding { throw StorageError(operation: "open", path: path, code: EEXIST) }
        let file = try directory.files.open(path, for: .updating)
        if finding == .unmarked {
            // Another process may write the same bytes at the same time.
            try directory.files.write(all: DirectoryKind.cache.mark, to: file, at: 0)
            // Only the mark is synced: it identifies the directory after a power failure, even beside files of other
            // programs. Some file systems cannot sync; then the cache's files identify the directory.
            try? directory.files.sync(file)
            try? directory.files.syncDirectory(directory.path)
        }
        return file
    }

    /// Marks the directory as a cache's, unless it is marked.
    func mark() throws(StorageError) {
        try file.withLock { (file) throws(StorageError) -> Void in
            if file == nil { file = try open(directory.path(of: .lock)) }
        }
    }
}
