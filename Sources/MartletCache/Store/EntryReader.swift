import Glibc
package import MartletStorage

/// A stored response that is being read.
///
/// It stays whole to its end, also when the entry is replaced, evicted or removed meanwhile. Each byte was checked before it
/// is returned.
package final class EntryReader: Sendable {
    /// The most bytes that one call reads.
    package static let readLimit = 1_048_576

    let name: EntryName
    let entry: StoredEntry
    /// The larger body.
    private let body: OpenFile?
    /// The number of the entry's file.
    private let identity: UInt64
    /// What both files occupy.
    private let allocatedByteCount: UInt64
    private let cache: DiskCache

    /// The reason why there is no entry.
    enum OpeningFailure: Error {
        /// Nothing has the name, or something that is no file.
        case absent
        /// The file system failed.
        case storage(StorageError)
        /// The entry is whole, and its body is not there.
        case bodyIsMissing(identity: UInt64)
        /// It is no entry.
        case damaged(EntryFault, identity: UInt64)
    }

    /// Opens an entry's file, and that of its body.
    init(_ name: EntryName, in folder: CacheFolder, of cache: DiskCache) throws(OpeningFailure) {
        let files = folder.files
        let status: FileStatus
        let bytes: [UInt8]
        do throws(StorageError) {
            let file = try files.open(folder.path(of: .entry(name)), for: .reading)
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
        self.name = name
        self.cache = cache
        identity = status.identity
        do throws(EntryFault) {
            entry = try EntryCodec.decode(bytes)
        } catch {
            throw .damaged(error, identity: status.identity)
        }
        guard entry.inlineBody == nil else {
            body = nil
            allocatedByteCount = status.allocatedByteCount
            return
        }
        let bodyStatus: FileStatus
        do throws(StorageError) {
            let path = folder.path(of: .body(name, generation: entry.generation))
            let file = try files.open(path, for: .reading)
            bodyStatus = try files.status(of: file)
            body = file
        } catch {
            throw error.code == ENOENT || error.code == ELOOP
                ? .bodyIsMissing(identity: status.identity) : .storage(error)
        }
        guard bodyStatus.kind == .file, bodyStatus.byteCount == entry.bodyByteCount else {
            throw .damaged(.length, identity: status.identity)
        }
        allocatedByteCount = status.allocatedByteCount &+ bodyStatus.allocatedByteCount
    }

    /// All but the body.
    package var head: StoredHead { entry.head }

    /// The body's length.
    package var byteCount: UInt64 { entry.bodyByteCount }

    /// What its files occupy.
    package var storedByteCount: UInt64 { allocatedByteCount }

    /// The whole body where it is small, at no cost; `nil` where it is in a file of its own.
    package var inlineBody: [UInt8]? { entry.inlineBody }

    var record: DiskIndex.Record {
        DiskIndex.Record(
            name: name, byteCount: allocatedByteCount, generation: body == nil ? 0 : entry.generation,
            identity: identity)
    }

    /// Bytes of the body from an offset on: at least one and at most so many, none at the end.
    ///
    /// The body is read and checked in blocks of 64 KiB, and a piece ends with a block where it can: with limits that are
    /// multiples of that, no block is read twice.
    ///
    /// - Throws: what is wrong; then the entry is removed. The file system's own error leaves it there.
    package func read(at offset: UInt64, limit: Int) throws(EntryFault) -> [UInt8] {
        do throws(EntryFault) {
            return try read(at: offset, limit: limit, from: cache.files)
        } catch {
            if case .unreadable(let error) = error {
                cache.note(error)
            } else {
                cache.removeDamaged(name, identity: identity, error)
            }
            throw error
        }
    }

    /// The same, where it waits for no disk; `nil` where it might, or where something is wrong, which ``read(at:limit:)`` sees
    /// to.
    package func readAtHand(at offset: UInt64, limit: Int) -> [UInt8]? {
        guard let files = cache.folderAtHand?.files else { return nil }
        return try? read(at: offset, limit: limit, from: files)
    }

    private func read(at offset: UInt64, limit: Int, from files: any FileSystem) throws(EntryFault) -> [UInt8]
    {
        guard offset < byteCount, limit > 0 else { return [] }
        let available = Int(min(UInt64(min(limit, Self.readLimit)), byteCount - offset))
        if let whole = entry.inlineBody {
            let start = Int(offset)
            return start == 0 && available == whole.count ? whole : Array(whole[start..<(start + available)])
        }
        guard let body else { throw .length }
        return try read(body, offset, available, from: files)
    }

    private func read(
        _ body: OpenFile, _ offset: UInt64, _ available: Int, from files: any FileSystem
    ) throws(EntryFault) -> [UInt8] {
        let blockCount = UInt64(BlockChecksums.blockByteCount)
        let firstBlock = offset / blockCount
        let start = firstBlock * blockCount
        var wantedEnd = offset + UInt64(available)
        let boundary = wantedEnd / blockCount * blockCount
        if wantedEnd < byteCount, boundary > offset { wantedEnd = boundary }
        let blocksEnd = min(byteCount, (wantedEnd + blockCount - 1) / blockCount * blockCount)
        let bytes: [UInt8]
        do throws(StorageError) {
            bytes = try files.read(body, count: Int(blocksEnd - start), at: start)
        } catch {
            throw .unreadable(error)
        }
        guard UInt64(bytes.count) == blocksEnd - start else { throw .length }
        var checksums = BlockChecksums()
        checksums.update(bytes.span)
        checksums.finish()
        let first = Int(firstBlock)
        guard first + checksums.values.count <= entry.checksums.values.count,
            checksums.values.elementsEqual(entry.checksums.values[first..<(first + checksums.values.count)])
        else { throw .checksum }
        if start == offset, blocksEnd == wantedEnd { return bytes }
        return Array(bytes[Int(offset - start)..<Int(wantedEnd - start)])
    }

    /// The whole body.
    ///
    /// - Throws: as ``read(at:limit:)`` does; ``EntryFault/length`` when it is longer than the limit.
    package func contents(limit: Int) throws(EntryFault) -> [UInt8] {
        guard byteCount <= UInt64(max(0, limit)) else { throw .length }
        var bytes = try read(at: 0, limit: Self.readLimit)
        while UInt64(bytes.count) < byteCount {
            bytes += try read(at: UInt64(bytes.count), limit: Self.readLimit)
        }
        return bytes
    }
}

/// What was seen where an entry lies.
package enum EntrySight: Sendable {
    /// An entry whose head is whole, and whose body has the right length.
    case whole(EntryReader)
    /// Something that is no entry.
    case damaged(Damage)
    /// The file system kept it from being read.
    case unreadable(StorageError)

    /// What is wrong with an entry.
    package struct Damage: Sendable {
        /// The file's name in the cache's folder.
        package let file: String
        /// What is wrong with it.
        package let fault: EntryFault
        /// The number of the file that was read.
        let identity: UInt64
    }
}

/// What an entry's file holds.
package struct StoredEntry: Equatable, Sendable {
    /// All but the body.
    package var head: StoredHead
    /// A number drawn for each body that is stored. A larger body's file carries it in its name.
    package var generation: UInt64
    /// The body's length in bytes.
    package var bodyByteCount: UInt64
    /// The body where it lies in the same file; `nil` where it has a file of its own.
    package var inlineBody: [UInt8]?
    var checksums: BlockChecksums
}
