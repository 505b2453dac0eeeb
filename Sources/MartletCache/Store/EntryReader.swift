import MartletStorage

/// A stored response that is being read.
///
/// It stays whole to its end, also when the entry is replaced, evicted or removed meanwhile. Each byte was checked before it
/// is returned.
package final class EntryReader: Sendable {
    /// The most bytes that one call reads.
    package static let readLimit = 1_048_576

    let name: EntryName
    let entry: StoredEntry
    private let body: OpenFile?
    private let identity: UInt64
    private let allocatedByteCount: UInt64
    private let cache: DiskCache

    init(_ opened: EntryOpening.Opened, in cache: DiskCache) {
        name = opened.name
        entry = opened.entry
        body = opened.body
        identity = opened.identity
        allocatedByteCount = opened.allocatedByteCount
        self.cache = cache
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

    private func read(
        at offset: UInt64, limit: Int, from files: any FileSystem
    ) throws(EntryFault) -> [UInt8] {
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
