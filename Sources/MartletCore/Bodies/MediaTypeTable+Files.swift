extension MediaTypeTable {
    /// The maximum size of a file that is read, in bytes: Debian's table has 74 KB.
    private static let fileLimit: UInt64 = 4 << 20
    /// The system's types, from the file of Debian's package `media-types`, read on first use.
    private static let systemTypes = (try? read("/etc/mime.types")) ?? [:]

    /// The system's table, `/etc/mime.types`; ``builtIn`` if the file does not exist.
    ///
    /// The file is read once per process, on first use, in a few milliseconds; by ``prepare()`` on another thread.
    public static let system = MediaTypeTable { systemTypes }

    /// Reads a `mime.types` file on another thread.
    ///
    /// Invalid lines and types are skipped. The last of several types for one suffix is used.
    /// - Throws: A ``StorageError`` if the file cannot be read, or has more than 4 MiB.
    public init(contentsOf path: some FilePathConvertible) async throws(StorageError) {
        let name = path.filePath.string
        let types = try await BlockingThreadPool.shared.run { () throws(StorageError) in try MediaTypeTable.read(name) }
        self.init { types }
    }

    /// Reads the system's table on another thread, unless it was read before.
    public static func prepare() async { await BlockingThreadPool.shared.run { _ = systemTypes } }

    /// Reads a file; blocks the thread.
    private static func read(_ path: String) throws(StorageError) -> [String: String] {
        let file = try FileReader(path: path)
        guard file.byteCount <= fileLimit else {
            throw StorageError(operation: "read", path: path, code: Errno.fileTooLarge.rawValue)
        }
        return parse(try file.read(at: 0, limit: Int(file.byteCount)))
    }
}
