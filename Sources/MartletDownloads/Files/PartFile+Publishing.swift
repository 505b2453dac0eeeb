import Glibc
package import MartletStorage
import Synchronization
import SystemPackage

// A complete file gets its name in steps, so that it can be noted in between by what it will be known under that name.
// Whatever fails before it has the name, the bytes and the record stay.
extension PartFile {
    /// Ends the file where it has to end, gives it its time and syncs it, so that nothing but its name is missing.
    /// - Parameters:
    ///   - total: How long it has to be.
    ///   - modified: When it was written last, in seconds since 1970; nil for now.
    /// - Returns: By what it is known, whatever its name.
    package func seal(total: UInt64, modified: Int64?) throws(StorageError) -> FileMark {
        try state.withLock { state throws(StorageError) in
            try replaceEarlier(&state)
            var status = try settledStatus(&state, modified)
            if status.byteCount > total {
                // Somebody else put it there: what was fetched ends where the file does.
                try files.truncate(state.file, to: total)
                status = try settledStatus(&state, modified)
            }
            guard status.byteCount == total else {
                throw StorageError(
                    operation: "length \(status.byteCount), not \(total)", path: names.part, code: EIO)
            }
            return FileMark(status)
        }
    }

    /// Gives the file its time and syncs it.
    /// - Returns: What it is then.
    private func settledStatus(_ state: inout State, _ modified: Int64?) throws(StorageError) -> FileStatus {
        if let modified { try files.setModificationTime(modified, of: state.file) }
        try sync(&state)
        return try files.status(of: state.file)
    }

    /// Gives the file its name.
    /// - Returns: The name it got; nil where it cannot be moved there (`EXDEV`), though a copy may.
    package func publish(_ collision: DownloadOptions.Collision) throws(StorageError) -> PublishedName? {
        try state.withLock { state throws(StorageError) in
            do throws(StorageError) {
                let name = try rename(names.part, collision)
                state.isPublished = true
                return settle(
                    name,
                    removing: state.mayHaveOthers ? [names.record, names.nextRecord, names.nextPart] : [])
            } catch  where error.code == EXDEV {
                return nil
            }
        }
    }

    /// How much of a file is copied at a time: 1 MiB.
    private static let pieceByteCount: UInt64 = 1 << 20

    /// Makes a copy of the file beside it, synced, which may get the name where the file itself cannot: parts of some folders
    /// are other file systems' or of other quotas.
    /// - Parameters:
    ///   - total: How long the file is.
    ///   - modified: When it was written last, in seconds since 1970; nil for now.
    /// - Returns: By what the copy is known, whatever its name.
    package func copy(total: UInt64, modified: Int64?) throws(StorageError) -> FileMark {
        try state.withLock { state throws(StorageError) in
            _ = try remove(names.nextPart)
            do throws(StorageError) {
                let copy = try files.open(names.nextPart, for: .creatingShared)
                var offset: UInt64 = 0
                while offset < total {
                    let count = Int(min(total - offset, PartFile.pieceByteCount))
                    let bytes = try files.read(state.file, count: count, at: offset)
                    guard bytes.count == count else {
                        throw StorageError(operation: "read", path: names.part, code: EIO)
                    }
                    try files.write(all: bytes, to: copy, at: offset)
                    offset += UInt64(count)
                }
                if let modified { try files.setModificationTime(modified, of: copy) }
                try files.sync(copy)
                return FileMark(try files.status(of: copy))
            } catch {
                try? files.remove(names.nextPart)
                throw error
            }
        }
    }

    /// Gives the copy the name. Where that fails it is removed.
    /// - Returns: The name it got.
    package func publishCopy(_ collision: DownloadOptions.Collision) throws(StorageError) -> PublishedName {
        try state.withLock { state throws(StorageError) in
            do throws(StorageError) {
                let name = try rename(names.nextPart, collision)
                state.isPublished = true
                return settle(name, removing: [names.part, names.record, names.nextRecord, names.nextPart])
            } catch {
                try? files.remove(names.nextPart)
                throw error
            }
        }
    }

    /// Removes a copy that is not to have the name.
    package func removeCopy() { try? files.remove(names.nextPart) }

    private func settle(_ name: String, removing others: [String]) -> PublishedName {
        do throws(StorageError) {
            try files.syncFolder(folderPath)
        } catch {
            return PublishedName(path: name, fault: error)
        }
        // It is there, whatever becomes of the record now: without its bytes it says nothing.
        // A process that was killed may have left the beginnings of others.
        for path in others { try? files.remove(path) }
        return PublishedName(path: name)
    }

    private func rename(
        _ source: String, _ collision: DownloadOptions.Collision
    ) throws(StorageError) -> String {
        if case .overwrite = collision {
            try files.rename(source, to: names.target)
            return names.target
        }
        for candidate in names.candidates(collision) {
            do throws(StorageError) {
                try files.renameWithoutReplacing(source, to: candidate)
                return candidate
            } catch  where error.code == EEXIST {
                continue
            }
        }
        throw StorageError(operation: "rename", path: names.target, code: EEXIST)
    }
}

/// What is noted of a complete file just before it gets its name, so that whoever comes after a process that did not live to
/// tell it knows the file again, and neither fetches it once more nor takes it for somebody else's.
package struct DownloadPublication: Hashable, Sendable {
    /// What there is to tell once it has the name, as a later run tells it. Its path is the name it wants.
    package var result: DownloadResult
    /// The file as it is under its part's name.
    package var part: FileMark
    /// The copy that gets the name instead, where the file itself cannot have it.
    package var copy: FileMark?

    /// Looks whether the file got its name, and does what was left to be done behind that.
    ///
    /// It blocks: it belongs on a worker.
    /// - Parameter collision: What was to become of a file that had the name.
    /// - Returns: The name; nil where no file of the names it may have got is this one.
    package func complete(
        _ collision: DownloadOptions.Collision, files: any FileSystem
    ) throws(StorageError) -> PublishedName? {
        let names = PartNames(target: result.path.string)
        guard let name = try name(among: names.candidates(collision), files) else { return nil }
        do throws(StorageError) {
            try files.syncFolder(names.folderPath)
        } catch {
            return PublishedName(path: name, fault: error)
        }
        // A part that is another one belongs to a download that came later, and so does the record.
        if let present = try files.statusIfPresent(at: names.part) {
            guard part.isOf(present) else { return PublishedName(path: name) }
            try? files.remove(names.part)
        }
        for path in [names.record, names.nextRecord, names.nextPart] { try? files.remove(path) }
        return PublishedName(path: name)
    }

    private func name(
        among candidates: some Sequence<String>, _ files: any FileSystem
    ) throws(StorageError) -> String? {
        for candidate in candidates {
            guard let status = try files.statusIfPresent(at: candidate),
                status.byteCount == result.byteCount, (copy ?? part).isOf(status)
            else { continue }
            return candidate
        }
        return nil
    }
}

/// The name that a complete file has got.
package struct PublishedName: Sendable {
    /// The name.
    package var path: String
    /// Why it may be gone after a power cut, where the folder could not be synced. Then what the bytes were known by is still
    /// there, for the case that they are found under their old name again.
    package var fault: StorageError?
}
