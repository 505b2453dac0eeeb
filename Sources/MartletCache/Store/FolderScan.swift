import Glibc
import MartletStorage

/// What lies in a cache's folder.
struct FolderScan: Sendable {
    /// The entries, each with the time it was stored at.
    private(set) var entries: [(record: DiskIndex.Record, time: Int64)] = []
    /// Bodies that no entry names: a process ended between storing one and storing its entry.
    private(set) var orphans: [(name: EntryName, generation: UInt64)] = []
    /// Files that were being written, or still are.
    private(set) var temporaries: [UInt64] = []
    /// What all of the cache's files occupy.
    private(set) var byteCount: UInt64 = 0
    /// What the folder itself occupies, which grows with the names in it.
    let folderByteCount: UInt64

    /// Looks at all files there. What is not the cache's is passed over; what disappears meanwhile, too.
    init(_ folder: CacheFolder) throws(StorageError) {
        let files = folder.files
        folderByteCount = try folder.allocatedByteCount()
        var bodies: [EntryName: [(generation: UInt64, byteCount: UInt64)]] = [:]
        for name in try files.names(inFolder: folder.path) {
            guard let file = CacheFile(name: name) else { continue }
            let status: FileStatus
            do throws(StorageError) {
                status = try files.status(at: folder.path(of: file))
            } catch  where error.code == ENOENT {
                continue
            }
            guard status.kind == .file else { continue }
            // The lock file occupies nothing until its first numbers are written, which is about to happen.
            byteCount &+= file == .lock ? max(4096, status.allocatedByteCount) : status.allocatedByteCount
            switch file {
            case .entry(let name):
                let record = DiskIndex.Record(
                    name: name, byteCount: status.allocatedByteCount, generation: 0, identity: status.identity
                )
                entries.append((record, status.modificationTime))
            case .body(let name, let generation):
                bodies[name, default: []].append((generation, status.allocatedByteCount))
            case .temporary(let number): temporaries.append(number)
            case .index, .lock: break
            }
        }
        for place in entries.indices {
            guard let candidates = bodies.removeValue(forKey: entries[place].record.name) else { continue }
            let name = entries[place].record.name
            let generation = EntryIdentity.read(folder, name)?.bodyGeneration
            for candidate in candidates {
                if candidate.generation == generation {
                    entries[place].record.generation = candidate.generation
                    entries[place].record.byteCount &+= candidate.byteCount
                } else {
                    orphans.append((name, candidate.generation))
                }
            }
        }
        for (name, candidates) in bodies {
            orphans += candidates.map { (name, $0.generation) }
        }
    }
}

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
            else { return }
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
    mutating func save() throws(StorageError) { if isChanged { try write() } }

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
