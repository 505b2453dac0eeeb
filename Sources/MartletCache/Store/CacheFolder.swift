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
            case .refused(.holdsOtherFiles(let path, _)):
                StorageError(operation: "open", path: path, code: EEXIST)
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

    /// Refuses a folder with files of another program.
    /// - Returns: Whether it has the mark of a cache's folder already.
    func isMarked() throws(Fault) -> Bool {
        let finding: FolderKind.Finding
        do throws(StorageError) {
            finding = try look()
        } catch {
            throw .storage(error)
        }
        if case .foreign(let reason) = finding {
            throw .refused(.holdsOtherFiles(path: path, reason: reason))
        }
        return finding == .marked
    }

    /// The kind of its files: a cache's, another program's, or none.
    func look() throws(StorageError) -> FolderKind.Finding {
        try FolderKind.cache.look(at: path, files, isLock: { _ in false }) { name in
            switch CacheFile(name: name) {
            case .entry, .index: .typed
            case .body, .temporary: .unmistakable
            case .lock, nil: .other
            }
        }
    }
}
