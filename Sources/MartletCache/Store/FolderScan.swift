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
