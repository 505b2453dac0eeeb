import Glibc
package import MartletStorage

/// Why a folder cannot be opened as a cache that is there already.
package enum CacheOpeningError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It is another user's, or others may read or write it.
    case refused(CacheDirectoryError)
    /// There is nothing of this name.
    case missing(path: String)
    /// The name is that of something else than a folder.
    case notAFolder(path: String)
    /// It has files of another program, and is no cache's folder. The reason says what was found.
    case noCache(path: String, reason: String)
    /// It cannot be looked at.
    case storage(StorageError)

    /// What the file system said of the folder.
    init(_ error: StorageError, _ path: String) {
        switch error.code {
        case ENOENT: self = .missing(path: path)
        case ENOTDIR: self = .notAFolder(path: path)
        default: self = .storage(error)
        }
    }

    /// Which folder, and what is wrong.
    package var description: String {
        switch self {
        case .refused(let error): error.description
        case .missing(let path): "\(path): there is no such folder"
        case .notAFolder(let path): "\(path): is not a folder"
        case .noCache(let path, let reason): "\(path): is not a cache: \(reason); name the folder of a cache"
        case .storage(let error): error.description
        }
    }
}
