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
