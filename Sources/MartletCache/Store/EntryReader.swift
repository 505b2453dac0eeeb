import Glibc
package import MartletStorage

/// A stored response that is being read.
///
/// It stays readable, even if the entry is replaced, evicted or removed. Each byte is checked before it is returned.
package final class EntryReader: Sendable {
    /// The maximum number of bytes of one read.
    package static let readLimit = 1_048_576

    let name: EntryName
    let entry: StoredEntry
    /// The size of its files on disk, in bytes.
    package let storedByteCount: UInt64
    private let body: OpenFile?
    /// The inode of the entry's file.
    private let identity: UInt64
    private let cache: DiskCache

    /// The reason why an entry cannot be opened.
    enum OpenError: Error {
        /// There is no file of the name.
        case absent
        case storage(StorageError)
        /// The entry is intact, and its body is missing.
        case bodyIsMissing(identity: UInt64)
        /// The file is not a valid entry.
        case damaged(EntryFormatError, identity: UInt64)
    }

    /// Opens an entry's file, and that of its body.
    init(_ name: EntryName, of cache: DiskCache, from files: any ReadableFileSystem) throws(OpenError) {
        let directory = cache.directory
        let status: FileStatus
        let bytes: [UInt8]
        do throws(StorageError) {
            let file = try files.open(directory.path(of: .entry(name)), for: .reading)
            status = try files.status(of: file)
            guard status.kind == .file else { throw StorageError(operation: "open", path: file.path, code: ELOOP) }
            let limit = EntryCodec.preambleByteCount + EntryCodec.metadataLimit + EntryCodec.inlineLimit
            // One byte more than the limit shows that the file is too long to be an entry.
            bytes = try files.read(file, count: Int(min(status.byteCount, UInt64(limit) + 1)), at: 0)
        } catch { throw error.code == ENOENT || error.code == ELOOP ? .absent : .storage(error) }
        (self.name, self.cache, identity) = (name, cache, status.identity)
        do throws(EntryFormatError) { entry = try EntryCodec.decode(bytes) } catch {
            throw .damaged(error, identity: status.identity)
        }
        guard entry.inlineBody == nil else {
            (body, storedByteCount) = (nil, status.allocatedByteCount)
            return
        }
        let bodyStatus: FileStatus
        do throws(StorageError) {
            let path = directory.path(of: .body(name, generation: entry.generation))
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
        storedByteCount = status.allocatedByteCount &+ bodyStatus.allocatedByteCount
    }

    package var head: StoredHead { entry.head }

    package var byteCount: UInt64 { entry.bodyByteCount }

    var record: DiskIndex.Record {
        DiskIndex.Record(
            name: name, byteCount: storedByteCount, bodyGeneration: body.map { _ in entry.generation },
            identity: identity)
    }

    /// Reads bytes of the body from an offset: at least one and at most `limit`; empty at the end. Blocks of 64 KiB are
    /// read and checked; with limits that are multiples of that, no block is read twice.
    /// - Throws: ``EntryFormatError``. A damaged entry is removed, but not after an error of the file system.
    package func read(at offset: UInt64, limit: Int) throws(EntryFormatError) -> [UInt8] {
        do throws(EntryFormatError) { return try read(at: offset, limit: limit, from: cache.files) } catch {
            if case .unreadable(let error) = error {
                cache.note(error)
            } else {
                cache.removeDamaged(name, identity: identity, error)
            }
            throw error
        }
    }

    /// Like ``read(at:limit:)``, without waiting for the disk; `nil` if that is impossible, or after an error.
    package func readNonBlocking(at offset: UInt64, limit: Int) -> [UInt8]? {
        guard let files = cache.nonBlockingFiles else { return nil }
        return try? read(at: offset, limit: limit, from: files)
    }

    private func read(at offset: UInt64, limit: Int, from files: any ReadableFileSystem) throws(EntryFormatError)
        -> [UInt8]
    {
        guard offset < byteCount, limit > 0 else { return [] }
        let available = min(UInt64(min(limit, Self.readLimit)), byteCount - offset)
        if let whole = entry.inlineBody {
            let range = Int(offset)..<Int(offset + available)
            return range.count == whole.count ? whole : Array(whole[range])
        }
        guard let body else { throw .length }
        let blockCount = UInt64(BlockChecksums.blockByteCount)
        let firstBlock = Int(offset / blockCount)
        let start = offset / blockCount * blockCount
        var wantedEnd = offset + available
        let boundary = wantedEnd / blockCount * blockCount
        if wantedEnd < byteCount, boundary > offset { wantedEnd = boundary }
        let blocksEnd = min(byteCount, (wantedEnd + blockCount - 1) / blockCount * blockCount)
        let bytes: [UInt8]
        do throws(StorageError) { bytes = try files.read(body, count: Int(blocksEnd - start), at: start) } catch {
            throw .unreadable(error)
        }
        guard UInt64(bytes.count) == blocksEnd - start else { throw .length }
        let checksums = BlockChecksums(of: bytes.span).values
        guard entry.checksums.values.dropFirst(firstBlock).starts(with: checksums) else { throw .checksum }
        if start == offset, blocksEnd == wantedEnd { return bytes }
        return Array(bytes[Int(offset - start)..<Int(wantedEnd - start)])
    }

    /// Reads the whole body.
    /// - Throws: The errors of ``read(at:limit:)``; ``EntryFormatError/length`` if the body is longer than the limit.
    package func contents(limit: Int) throws(EntryFormatError) -> [UInt8] {
        guard byteCount <= UInt64(max(0, limit)) else { throw .length }
        var bytes = try read(at: 0, limit: Self.readLimit)
        while UInt64(bytes.count) < byteCount { bytes += try read(at: UInt64(bytes.count), limit: Self.readLimit) }
        return bytes
    }
}

/// The result of inspecting an entry.
package enum EntryInspection: Sendable {
    /// An entry with an intact head and a body of the right length.
    case whole(EntryReader)
    /// The file is not a valid entry.
    case damaged(Damage)
    /// The file system failed to read it.
    case unreadable(StorageError)

    package struct Damage: Sendable {
        /// The name of the file in the cache's directory.
        package let file: String
        package let error: EntryFormatError
        /// The inode of the file that was read.
        let identity: UInt64
    }
}
