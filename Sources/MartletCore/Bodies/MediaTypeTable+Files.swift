public import MartletContent
public import MartletStorage
import MartletTransport
public import SystemPackage

extension MediaTypeTable {
    /// Larger files are no tables, in bytes: Debian's has 74 KB.
    private static let fileLimit: UInt64 = 4 << 20
    /// Where the machine's table is: Debian's package `media-types` puts it there.
    private static let systemPath = "/etc/mime.types"

    /// The machine's types, read by whoever asks first; the others wait for it.
    private static let systemTypes = (try? read(systemPath)) ?? [:]

    /// The machine's table, `/etc/mime.types`; where there is none, ``builtIn``.
    ///
    /// It is read once in a process, when it is first asked for a type, which takes a few milliseconds. ``prepare()`` has
    /// that done on a thread of its own.
    public static let system = MediaTypeTable { systemTypes }

    /// The table of a `mime.types` file, read on a thread of its own.
    ///
    /// Lines that are none, and types that are none, are skipped. Of two types with one suffix the last counts.
    /// - Throws: A ``StorageError``: the file cannot be read, or has more than 4 MiB.
    public init(contentsOf path: FilePath) async throws(StorageError) {
        let name = path.string
        let types = try await BlockingWorkers.shared.run { () throws(StorageError) in
            try MediaTypeTable.read(name)
        }
        self.init { types }
    }

    /// Reads the machine's table on a thread of its own, if nobody has yet.
    public static func prepare() async { await BlockingWorkers.shared.run { _ = systemTypes } }

    /// Reads a file; blocks.
    private static func read(_ path: String) throws(StorageError) -> [String: String] {
        let file = try FileReader(path: path)
        guard file.byteCount <= fileLimit else {
            throw StorageError(operation: "read", path: path, code: Errno.fileTooLarge.rawValue)
        }
        return parse(try file.read(at: 0, limit: Int(file.byteCount)))
    }
}
