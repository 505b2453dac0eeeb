import Glibc
import MartletStorage

/// The folder that a cache lies in.
struct CacheFolder: Sendable {
    /// Why it cannot be used.
    enum Fault: Error {
        /// It is another's, or others may look into it.
        case refused(CacheDirectoryError)
        /// It is not there and cannot be made, or is no folder.
        case storage(StorageError)

        /// The fault as an errno.
        var error: StorageError {
            switch self {
            case .refused(.ownedByOther(let path)), .refused(.openToOthers(let path)):
                StorageError(operation: "open", path: path, code: EACCES)
            case .storage(let error): error
            }
        }
    }

    let path: String
    let files: any FileSystem
    /// Whether it is made where it is missing: whoever only looks leaves nothing behind.
    var mayBeMade = true

    /// The path of one of its files.
    func path(of file: CacheFile) -> String { "\(path)/\(file.name)" }

    /// What the folder itself occupies, without its files, in bytes.
    func allocatedByteCount() throws(StorageError) -> UInt64 {
        try files.status(at: path + "/.").allocatedByteCount
    }

    /// Makes the folder where it is missing, and checks whose it is.
    ///
    /// - Parameter withParents: whether folders above it may be made, too.
    func prepare(withParents: Bool) throws(Fault) {
        // The dot makes a link in the folder's place be followed: it is the user's choice where the folder lies.
        let status: FileStatus
        do throws(StorageError) {
            do throws(StorageError) {
                status = try files.status(at: path + "/.")
            } catch  where error.code == ENOENT && mayBeMade {
                try files.makeFolder(path, withParents: withParents)
                status = try files.status(at: path + "/.")
            }
        } catch {
            throw .storage(error)
        }
        guard status.kind == .folder else {
            throw .storage(StorageError(operation: "open", path: path, code: ENOTDIR))
        }
        guard status.access.isOwnedByThisUser else { throw .refused(.ownedByOther(path: path)) }
        guard !status.access.isReadableByOthers, !status.access.isWritableByOthers else {
            throw .refused(.openToOthers(path: path))
        }
    }

    /// Whether its files are a cache's: one is an entry, or belongs to one, or is a cache's lock; or there is nothing yet
    /// but perhaps a lock.
    ///
    /// A file that is merely called `index` or `lock`, as other programs' are, makes no cache.
    func holdsCache() throws(StorageError) -> Bool {
        let names = try files.names(inFolder: path)
        if names.allSatisfy({ CacheFile(name: $0) == .lock }) { return true }
        for name in names {
            switch CacheFile(name: name) {
            case .entry, .body, .temporary: return true
            case .lock: if try CacheLedger.isLock(at: self.path(of: .lock), files) { return true }
            case .index, nil: break
            }
        }
        return false
    }
}
