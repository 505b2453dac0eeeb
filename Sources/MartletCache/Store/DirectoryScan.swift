import MartletStorage

/// The files in a cache's directory.
struct DirectoryScan: Sendable {
    /// The entries, with the times at which they were stored.
    private(set) var entries: [(record: DiskIndex.Record, time: Int64)] = []
    /// Bodies without an entry: a process ended after storing one and before storing its entry.
    private(set) var orphans: [(name: EntryName, generation: UInt64)] = []
    /// Files that were being written, or still are, with their sizes on disk.
    private(set) var temporaries: [UInt64: UInt64] = [:]
    /// The size of all files of the cache, in bytes.
    private(set) var byteCount: UInt64 = 0
    /// The size of the directory itself, which grows with the names in it.
    let directoryByteCount: UInt64

    /// Scans all files. Files of other programs, and files that disappear during the scan, are skipped.
    init(_ directory: CacheDirectory) throws(StorageError) {
        let files = directory.files
        directoryByteCount = try directory.allocatedByteCount()
        var bodies: [EntryName: [(generation: UInt64, byteCount: UInt64)]] = [:]
        for name in try files.names(inDirectory: directory.path) {
            guard let file = CacheFile(name: name),
                let status = try files.statusIfPresent(at: directory.path(of: file)),
                status.kind == .file
            else { continue }
            let allocated = status.allocatedByteCount
            // The lock file has no blocks until its first numbers are written, which is about to happen.
            byteCount &+= file == .lock ? max(4096, allocated) : allocated
            switch file {
            case .entry(let name):
                let record = DiskIndex.Record(name: name, byteCount: allocated, identity: status.identity)
                entries.append((record, status.modificationTime))
            case .body(let name, let generation): bodies[name, default: []].append((generation, allocated))
            case .temporary(let number): temporaries[number] = allocated
            case .index, .lock: break
            }
        }
        for index in entries.indices {
            let name = entries[index].record.name
            guard let candidates = bodies.removeValue(forKey: name) else { continue }
            let generation = EntryIdentity.read(directory, name)?.bodyGeneration
            for candidate in candidates {
                if candidate.generation == generation {
                    entries[index].record.bodyGeneration = generation
                    entries[index].record.byteCount &+= candidate.byteCount
                } else {
                    orphans.append((name, candidate.generation))
                }
            }
        }
        for (name, candidates) in bodies { orphans += candidates.map { (name, $0.generation) } }
    }

    /// Returns the size of all files, with the space that was reserved for temporary files and is not allocated yet.
    func byteCount(with reserved: [UInt64: UInt64]) -> UInt64 {
        reserved.reduce(byteCount) { sum, file in
            sum &+ (file.value - min(file.value, temporaries[file.key] ?? 0))
        }
    }
}

/// The number of stored bytes, in the lock file, for all processes that use the directory. The lock guards it.
///
/// Additions are written before bytes are stored, and subtractions after bytes are removed. So a process that is killed
/// leaves a number that is too high, never too low, until the directory is scanned again.
struct CacheUsage: Sendable {
    private static let magic = DirectoryKind.cache.mark
    private static let byteCount = 28
    private static let version: UInt16 = 1

    /// Bytes that are stored or reserved, in allocated blocks; without the directory itself.
    private(set) var used: UInt64 = 0
    /// The sum of all additions since the file was created. Its growth during a scan is what the scan may have missed.
    private(set) var added: UInt64 = 0
    /// Whether the lock file held numbers: if it is new or damaged, the directory must be scanned.
    private(set) var isKnown = false
    private var isChanged = false

    private let files: any FileSystem
    private let file: OpenFile

    init(_ file: OpenFile, _ files: any FileSystem) throws(StorageError) {
        (self.files, self.file) = (files, file)
        let bytes = try files.read(file, count: Self.byteCount, at: 0)
        guard bytes.count == Self.byteCount, bytes.starts(with: Self.magic) else { return }
        var reader = RecordReader(bytes[4...])
        guard let version: UInt16 = try? reader.number("version"), version == Self.version,
            let _: UInt16 = try? reader.number("flags"), let used: UInt64 = try? reader.number("used"),
            let added: UInt64 = try? reader.number("added"), let checksum: UInt32 = try? reader.number("checksum"),
            checksum == RecordChecksum(bytes.span.extracting(0..<24)).value
        else { return }
        (self.used, self.added) = (used, added)
        isKnown = true
    }

    /// Adds bytes that are about to be stored; written immediately.
    mutating func add(_ byteCount: UInt64) throws(StorageError) {
        guard byteCount > 0 else { return }
        let before = self
        used = used.addingReportingOverflow(byteCount).overflow ? .max : used &+ byteCount
        added &+= byteCount
        do throws(StorageError) { try write() } catch {
            self = before
            throw error
        }
    }

    /// Subtracts bytes that were removed; written by ``save()``.
    mutating func subtract(_ byteCount: UInt64) {
        guard byteCount > 0 else { return }
        used = used > byteCount ? used - byteCount : 0
        isChanged = true
    }

    /// Replaces a number of reserved bytes by the number of allocated ones.
    mutating func settle(reserved: UInt64, allocated: UInt64) throws(StorageError) {
        if allocated > reserved { try add(allocated - reserved) } else { subtract(reserved - allocated) }
    }

    /// Sets the result of a scan; written by ``save()``.
    mutating func set(used byteCount: UInt64) {
        used = byteCount
        isKnown = true
        isChanged = true
    }

    mutating func save() throws(StorageError) { if isChanged { try write() } }

    private mutating func write() throws(StorageError) {
        // Before a scan, no numbers are written that could be mistaken for its result.
        if !isKnown { return }
        var writer = RecordWriter()
        writer.write(raw: Self.magic)
        writer.write(Self.version)
        writer.write(UInt16(0))
        writer.write(used)
        writer.write(added)
        writer.write(RecordChecksum(writer.bytes.span).value)
        try files.write(all: writer.bytes, to: file, at: 0)
        isChanged = false
    }
}
