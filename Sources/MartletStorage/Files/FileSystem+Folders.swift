import Glibc

extension FileSystem {
    /// Makes a folder that is its owner's alone (0700), if nothing has its name.
    ///
    /// - Parameter withParents: whether folders above it may be made, too.
    package func makeFolder(_ path: String, withParents: Bool) throws(StorageError) {
        do throws(StorageError) {
            try makeFolder(path)
        } catch  where error.code == EEXIST {
            return
        } catch  where error.code == ENOENT && withParents {
            let parts = path.split(separator: "/").dropLast()
            guard !parts.isEmpty else { throw error }
            try makeFolder((path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/"), withParents: true)
            try makeFolder(path)
        }
    }
}
