import Glibc

/// The folder that relative paths of this process begin at.
package enum WorkingFolder {
    /// Its path, absolute.
    package static func path() throws(StorageError) -> String {
        guard let path = unsafe getcwd(nil, 0) else {
            throw StorageError(operation: "getcwd", path: ".", code: errno)
        }
        defer { unsafe free(path) }
        return unsafe String(cString: path)
    }
}
