import Glibc

/// A path without symbolic links, `.` and `..`, from the root.
package enum ResolvedPath {
    /// Resolves the path of a file that exists. Blocks.
    package static func of(_ path: String) throws(StorageError) -> String {
        guard let resolved = unsafe realpath(path, nil) else {
            throw StorageError(operation: "realpath", path: path, code: errno)
        }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }
}
