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

    /// A path from the root, whatever folder the process works in later.
    package static func absolute(_ path: String) throws(StorageError) -> String {
        guard !path.hasPrefix("/") else { return path }
        // The folder itself goes without saying.
        var rest = path[...]
        while rest.hasPrefix("./") { rest = rest.dropFirst(2) }
        let folder = try WorkingFolder.path()
        return rest.isEmpty || rest == "." ? folder : "\(folder)/\(rest)"
    }
}
