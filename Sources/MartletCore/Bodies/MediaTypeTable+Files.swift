extension MediaTypeTable {
    /// The largest file that is read, in bytes: Debian's table has 74 KB.
    private static let fileLimit: UInt64 = 4 << 20
    /// The machine's types, from the file of Debian's package `media-types`. The first use reads it; others wait.
    private static let systemTypes = (try? read("/etc/mime.types")) ?? [:]

    /// The machine's table, `/etc/mime.types`; ``builtIn`` if there is none.
    ///
    /// It is read once in a process, on its first use, which takes a few milliseconds. ``prepare()`` does that on another thread.
    public static let system = MediaTypeTable { systemTypes }

    /// Reads a `mime.types` file on another thread.
    ///
    /// Invalid lines and types are skipped. Of two types with one suffix the last is used.
    /// - Throws: A ``StorageError`` if the file cannot be read, or has more than 4 MiB.
    public init(contentsOf path: some FilePathConvertible) async throws(StorageError) {
        let name = path.filePath.string
        let types = try await BlockingThreadPool.shared.run { () throws(StorageError) in try MediaTypeTable.read(name) }
        self.init { types }
    }

    /// Reads the machine's table on another thread, unless it was read before.
    public static func prepare() async { await BlockingThreadPool.shared.run { _ = systemTypes } }

    /// Reads a file; blocks.
    private static func read(_ path: String) throws(StorageError) -> [String: String] {
        let file = try FileReader(path: path)
        guard file.byteCount <= fileLimit else {
            throw StorageError(operation: "read", path: path, code: Errno.fileTooLarge.rawValue)
        }
        return parse(try file.read(at: 0, limit: Int(file.byteCount)))
    }
}
