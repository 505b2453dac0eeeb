import Glibc
package import MartletStorage

struct CacheDirectory: Sendable {
    /// The reason why the directory cannot be used.
    enum AccessError: Error {
        /// The directory belongs to another user or program, or others may read or write it.
        case rejected(CacheDirectoryError)
        /// The directory is missing and cannot be created, or the path is not that of a directory.
        case storage(StorageError)

        var error: StorageError {
            switch self {
            case .rejected(.ownedByAnotherUser(let path)), .rejected(.accessibleByOthers(let path)):
                StorageError(operation: "open", path: path, code: EACCES)
            case .rejected(.holdsOtherFiles(let path, _)): StorageError(operation: "open", path: path, code: EEXIST)
            case .storage(let error): error
            }
        }
    }

    let path: String
    let files: any FileSystem
    /// Whether a missing directory is created. Inspecting a cache creates no files.
    var createsIfMissing = true

    func path(of file: CacheFile) -> String { "\(path)/\(file.name)" }

    /// Returns the size of the directory itself, without its files, in bytes.
    func allocatedByteCount() throws(StorageError) -> UInt64 { try files.status(at: path + "/.").allocatedByteCount }

    /// Creates the directory if it is missing, checks its owner and mode, and returns the kind of its files.
    /// - Parameter withParents: Whether missing parent directories may be created, too.
    func prepare(withParents: Bool) throws(AccessError) -> DirectoryKind.Finding {
        let status = try converting { () throws(StorageError) -> FileStatus in
            // The dot makes the system follow a symbolic link: the user decides where the directory is.
            if let found = try files.statusIfPresent(at: path + "/.") { return found }
            if createsIfMissing { try files.makeDirectory(path, withParents: withParents) }
            return try files.status(at: path + "/.")
        }
        guard status.kind == .directory else {
            throw .storage(StorageError(operation: "open", path: path, code: ENOTDIR))
        }
        guard status.access.isOwnedByThisUser else { throw .rejected(.ownedByAnotherUser(path: path)) }
        guard !status.access.isReadableByOthers, !status.access.isWritableByOthers else {
            throw .rejected(.accessibleByOthers(path: path))
        }
        return try converting { () throws(StorageError) in try inspect() }
    }

    private func converting<Value>(_ body: () throws(StorageError) -> Value) throws(AccessError) -> Value {
        do throws(StorageError) { return try body() } catch { throw .storage(error) }
    }

    /// Determines the kind of the files: a cache's, another program's, or none.
    func inspect() throws(StorageError) -> DirectoryKind.Finding {
        try DirectoryKind.cache.inspect(path, files, isLock: { _ in false }) { name in
            switch CacheFile(name: name) {
            case .entry, .index: .typed
            case .body, .temporary: .unmistakable
            case .lock, nil: .other
            }
        }
    }
}

/// A file of the cache, identified by its name. Files with other names are neither read nor removed.
enum CacheFile: Hashable, Sendable {
    /// A stored response: its head, and its body if that is small.
    case entry(EntryName)
    /// A larger body, in a file that is never written again; the number is the entry's generation.
    case body(EntryName, generation: UInt64)
    /// A file that is still being written. Its lock shows whether its writer is alive.
    case temporary(UInt64)
    /// The index of the order of use of the entries.
    case index
    /// The lock, and the number of stored bytes.
    case lock

    /// The name in the cache's directory.
    var name: String {
        switch self {
        case .entry(let entry): "\(entry.digest.text).\(entry.slot)"
        case .body(let entry, let generation): "\(entry.digest.text).\(entry.slot).\(CacheDigest.text(of: generation))"
        case .temporary(let number): "new.\(CacheDigest.text(of: number))"
        case .index: "index"
        case .lock: "lock"
        }
    }

    /// Parses a name; `nil` if no file of the cache has it.
    init?(name: String) {
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        switch (parts[0], parts.count) {
        case ("index", 1): self = .index
        case ("lock", 1): self = .lock
        case ("new", 2):
            guard let number = CacheDigest.number(parts[1].utf8) else { return nil }
            self = .temporary(number)
        case (_, 2...3):
            guard let digest = CacheDigest(text: parts[0].utf8), parts[1].utf8.count == 1, let slot = Int(parts[1]),
                slot < EntryName.slotLimit
            else { return nil }
            let entry = EntryName(digest: digest, slot: slot)
            self = .entry(entry)
            guard parts.count == 3 else { return }
            guard let generation = CacheDigest.number(parts[2].utf8) else { return nil }
            self = .body(entry, generation: generation)
        default: return nil
        }
    }
}

/// The reason why a directory cannot hold a cache: responses are not stored where others may read or write.
public enum CacheDirectoryError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The directory belongs to another user.
    case ownedByAnotherUser(path: String)
    /// Other users may read or write the directory.
    case accessibleByOthers(path: String)
    /// The directory has files of another program, which the reason describes. Nothing in it was changed.
    case holdsOtherFiles(path: String, reason: String)

    /// The problem and its solution.
    public var description: String {
        switch self {
        case .ownedByAnotherUser(let path):
            "\(path): the cache directory belongs to another user; choose a directory that you own"
        case .accessibleByOthers(let path):
            "\(path): other users can access the cache directory; choose a new one, or, if only the cache uses it, "
                + "run chmod 700 on it"
        case .holdsOtherFiles(let path, let reason):
            "\(path): is not a response cache directory (\(reason)); it was not changed; choose a new or an empty one"
        }
    }
}

/// The reason why a directory cannot be opened as an existing cache.
package enum CacheOpeningError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The directory belongs to another user, or other users may read or write it.
    case rejected(CacheDirectoryError)
    case missing(path: String)
    case notADirectory(path: String)
    /// The directory has files of another program, which the reason describes.
    case noCache(path: String, reason: String)
    /// The directory cannot be inspected.
    case storage(StorageError)

    init(_ error: StorageError, _ path: String) {
        switch error.code {
        case ENOENT: self = .missing(path: path)
        case ENOTDIR: self = .notADirectory(path: path)
        default: self = .storage(error)
        }
    }

    package var description: String {
        switch self {
        case .rejected(let error): error.description
        case .missing(let path): "\(path): the directory does not exist"
        case .notADirectory(let path): "\(path): is not a directory"
        case .noCache(let path, let reason): "\(path): is not a cache: \(reason); name a cache directory"
        case .storage(let error): error.description
        }
    }
}
