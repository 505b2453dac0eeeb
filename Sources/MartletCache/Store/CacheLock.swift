import Glibc
import MartletStorage
import Synchronization

/// Who may store, evict and write the index: one thread of one process at a time.
///
/// The kernel lets go of it when its holder dies. Reading needs no lock.
final class CacheLock: Sendable {
    private let folder: CacheFolder
    /// The lock file, once it was opened. Held by the thread that has the lock, also while it works.
    private let file = Mutex<OpenFile?>(nil)

    init(_ folder: CacheFolder) {
        self.folder = folder
    }

    /// Runs a closure that owns the folder meanwhile. It must not take the lock again.
    ///
    /// - Throws: what the closure throws; `EWOULDBLOCK` when another process has kept the lock for 2 s, which none does
    ///   but one that was stopped or writes to a disk that hangs; and what keeps the lock file from being opened.
    func withLock<Value: Sendable>(
        _ body: (inout CacheLedger) throws(StorageError) -> Value
    ) throws(StorageError) -> Value {
        try file.withLock { (file) throws(StorageError) -> Value in
            let held = try acquire(&file)
            defer { folder.files.unlock(held) }
            var ledger = try CacheLedger(held, folder.files)
            let value: Value
            do throws(StorageError) {
                value = try body(&ledger)
            } catch {
                try? ledger.save()
                throw error
            }
            try ledger.save()
            return value
        }
    }

    private func acquire(_ file: inout OpenFile?) throws(StorageError) -> OpenFile {
        let path = folder.path(of: .lock)
        for _ in 0..<3 {
            let candidate: OpenFile
            if let file { candidate = file } else { candidate = try open(path) }
            file = candidate
            try wait(for: candidate)
            // The folder may have been removed and made again: then others lock another file of this name.
            do throws(StorageError) {
                let own = try folder.files.status(of: candidate).identity
                if try folder.files.status(at: path).identity == own { return candidate }
            } catch {
                if error.code != ENOENT {
                    folder.files.unlock(candidate)
                    throw error
                }
            }
            folder.files.unlock(candidate)
            file = nil
        }
        throw StorageError(operation: "lock", path: path, code: ENOENT)
    }

    private func open(_ path: String) throws(StorageError) -> OpenFile {
        do throws(StorageError) {
            return try folder.files.open(path, for: .updating)
        } catch  where error.code == ENOENT {
            do throws(CacheFolder.Fault) {
                try folder.prepare(withParents: false)
            } catch {
                throw error.error
            }
            return try folder.files.open(path, for: .updating)
        }
    }

    private func wait(for file: OpenFile) throws(StorageError) {
        for _ in 0..<4000 {
            if try folder.files.tryLock(file) { return }
            usleep(500)
        }
        throw StorageError(operation: "lock", path: file.path, code: EWOULDBLOCK)
    }
}
