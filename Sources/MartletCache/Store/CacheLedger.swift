import Glibc
import MartletStorage

/// How much is stored, shared by all processes that use the folder: read and written in the lock file, under the lock.
///
/// What is added is written before anything is stored, what is subtracted after it was removed: a process that is killed
/// leaves a number that is too high, never one too low, until the folder is counted again.
struct CacheLedger: Sendable {
    private static let magic = FolderKind.cache.mark
    private static let byteCount = 28
    private static let version: UInt16 = 1

    /// Bytes that are stored or set aside, by allocated blocks; without the folder itself.
    private(set) var used: UInt64 = 0
    /// All bytes that were ever added. What a count of the folder may have missed is the growth of this meanwhile.
    private(set) var added: UInt64 = 0
    /// Whether the lock file held numbers: not where it is new or damaged, and then the folder must be counted.
    private(set) var isKnown = false
    private var isChanged = false

    private let files: any FileSystem
    private let file: OpenFile

    /// Reads the numbers.
    init(_ file: OpenFile, _ files: any FileSystem) throws(StorageError) {
        self.files = files
        self.file = file
        let bytes = try files.read(file, count: Self.byteCount, at: 0)
        guard bytes.count == Self.byteCount, bytes.starts(with: Self.magic) else { return }
        var reader = RecordReader(bytes[4...])
        do throws(RecordReader.Fault) {
            let version: UInt16 = try reader.number("version")
            let _: UInt16 = try reader.number("flags")
            let used: UInt64 = try reader.number("used")
            let added: UInt64 = try reader.number("added")
            let checksum: UInt32 = try reader.number("checksum")
            guard version == Self.version, checksum == RecordChecksum(bytes.span.extracting(0..<24)).value
            else {
                return
            }
            (self.used, self.added) = (used, added)
            isKnown = true
        } catch {
            return
        }
    }

    /// Adds bytes that are about to be stored, at once.
    mutating func add(_ byteCount: UInt64) throws(StorageError) {
        guard byteCount > 0 else { return }
        let before = self
        used = used.addingReportingOverflow(byteCount).overflow ? .max : used &+ byteCount
        added &+= byteCount
        do throws(StorageError) {
            try write()
        } catch {
            self = before
            throw error
        }
    }

    /// Subtracts bytes that are gone; written by ``save()``.
    mutating func subtract(_ byteCount: UInt64) {
        guard byteCount > 0 else { return }
        used = used > byteCount ? used - byteCount : 0
        isChanged = true
    }

    /// Sets what a count of the folder came to; written by ``save()``.
    mutating func set(used byteCount: UInt64) {
        used = byteCount
        isKnown = true
        isChanged = true
    }

    /// Writes what was changed.
    mutating func save() throws(StorageError) {
        if isChanged { try write() }
    }

    private mutating func write() throws(StorageError) {
        var writer = RecordWriter()
        writer.write(raw: Self.magic)
        writer.write(Self.version)
        writer.write(UInt16(0))
        writer.write(used)
        writer.write(added)
        writer.write(RecordChecksum(writer.bytes.span).value)
        // Of numbers that nobody has counted yet, nothing is written that looks as if somebody had.
        if !isKnown { return }
        try files.write(all: writer.bytes, to: file, at: 0)
        isChanged = false
    }
}
