import Glibc
package import MartletStorage

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

/// A file of the cache's, told by its name. What has another name is not the cache's: it is neither read nor removed.
enum CacheFile: Hashable, Sendable {
    /// A stored response: its head, and its body where that is small.
    case entry(EntryName)
    /// A larger body, in a file that is never written again; the number is the entry's generation.
    case body(EntryName, generation: UInt64)
    /// A file that is still being written. Its lock says whether by anybody.
    case temporary(UInt64)
    /// The order in which entries were used.
    case index
    /// The lock, and how much is stored.
    case lock

    /// The name in the cache's folder.
    var name: String {
        switch self {
        case .entry(let entry): "\(entry.digest.text).\(entry.slot)"
        case .body(let entry, let generation):
            "\(entry.digest.text).\(entry.slot).\(CacheDigest.text(of: generation))"
        case .temporary(let number): "new.\(CacheDigest.text(of: number))"
        case .index: "index"
        case .lock: "lock"
        }
    }

    /// The file of a name; `nil` for names that are not the cache's.
    init?(name: String) {
        switch name {
        case "index": self = .index
        case "lock": self = .lock
        default:
            let parts = name.split(separator: ".", omittingEmptySubsequences: false)
            if parts.count == 2, parts[0] == "new" {
                guard let number = CacheDigest.number(parts[1].utf8) else { return nil }
                self = .temporary(number)
                return
            }
            guard parts.count == 2 || parts.count == 3, let digest = CacheDigest(text: parts[0].utf8),
                parts[1].utf8.count == 1, let byte = parts[1].utf8.first,
                (0x30..<(0x30 + UInt8(EntryName.slotLimit))).contains(byte)
            else { return nil }
            let entry = EntryName(digest: digest, slot: Int(byte - 0x30))
            guard parts.count == 3 else {
                self = .entry(entry)
                return
            }
            guard let generation = CacheDigest.number(parts[2].utf8) else { return nil }
            self = .body(entry, generation: generation)
        }
    }
}

/// Why a folder cannot be a cache's. Said when the cache is set up: what others may read or write holds no responses.
public enum CacheDirectoryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// It belongs to another user.
    case ownedByOther(path: String)
    /// Others than its owner may read or write it.
    case openToOthers(path: String)
    /// It has files of another program, and is not a cache's folder. Nothing in it was changed. The reason says what was
    /// found.
    case holdsOtherFiles(path: String, reason: String)

    /// What is wrong, and what to do about it.
    public var description: String {
        switch self {
        case .ownedByOther(let path):
            "\(path): the cache's folder belongs to another user; choose one of your own"
        case .openToOthers(let path): "\(path): others may read or write the cache's folder; chmod 700 it"
        case .holdsOtherFiles(let path, let reason):
            "\(path): is not the folder of a response cache: \(reason); "
                + "nothing in it was changed; choose a new or an empty one"
        }
    }
}

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
