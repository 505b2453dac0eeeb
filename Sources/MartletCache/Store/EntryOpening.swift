import Glibc
import MartletStorage

/// Opens an entry's file, and that of its body.
enum EntryOpening {
    /// An entry that can be read.
    struct Opened {
        let name: EntryName
        let entry: StoredEntry
        /// The larger body.
        let body: OpenFile?
        /// The number of the entry's file.
        let identity: UInt64
        /// What both files occupy.
        let allocatedByteCount: UInt64
    }

    /// Why there is no entry.
    enum Failure: Error {
        /// Nothing has the name, or something that is no file.
        case absent
        /// The file system failed.
        case storage(StorageError)
        /// The entry is whole, and its body is not there.
        case bodyIsMissing(identity: UInt64)
        /// It is no entry.
        case damaged(EntryFault, identity: UInt64)
    }

    static func open(_ name: EntryName, in folder: CacheFolder) throws(Failure) -> Opened {
        let files = folder.files
        let file: OpenFile
        let status: FileStatus
        let bytes: [UInt8]
        do throws(StorageError) {
            file = try files.open(folder.path(of: .entry(name)), for: .reading)
            status = try files.status(of: file)
            guard status.kind == .file else {
                throw StorageError(operation: "open", path: file.path, code: ELOOP)
            }
            let limit = EntryCodec.preambleByteCount + EntryCodec.metadataLimit + EntryCodec.inlineLimit
            // What is too long to be an entry is read only so far that it can be told.
            bytes = try files.read(file, count: Int(min(status.byteCount, UInt64(limit) + 1)), at: 0)
        } catch {
            throw error.code == ENOENT || error.code == ELOOP ? .absent : .storage(error)
        }
        let entry: StoredEntry
        do throws(EntryFault) {
            entry = try EntryCodec.decode(bytes)
        } catch {
            throw .damaged(error, identity: status.identity)
        }
        guard entry.inlineBody == nil else {
            return Opened(
                name: name, entry: entry, body: nil, identity: status.identity,
                allocatedByteCount: status.allocatedByteCount)
        }
        let body: OpenFile
        let bodyStatus: FileStatus
        do throws(StorageError) {
            body = try files.open(folder.path(of: .body(name, generation: entry.generation)), for: .reading)
            bodyStatus = try files.status(of: body)
        } catch {
            throw error.code == ENOENT || error.code == ELOOP
                ? .bodyIsMissing(identity: status.identity) : .storage(error)
        }
        guard bodyStatus.kind == .file, bodyStatus.byteCount == entry.bodyByteCount else {
            throw .damaged(.length, identity: status.identity)
        }
        return Opened(
            name: name, entry: entry, body: body, identity: status.identity,
            allocatedByteCount: status.allocatedByteCount &+ bodyStatus.allocatedByteCount)
    }
}
