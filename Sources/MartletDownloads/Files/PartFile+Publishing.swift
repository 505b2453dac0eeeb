import Glibc
package import MartletStorage
import Synchronization
import SystemPackage

// A complete file gets its name in steps, so that its identity can be recorded in between. Until it has the name, the
// bytes and the record remain after a failure.
extension PartFile {
    /// Truncates the file to its length, sets its modification time, and syncs it unless the options omit that. Then
    /// only its name is missing.
    /// - Parameter modified: The modification time in seconds since 1970; `nil` to leave it.
    /// - Returns: The identity of the file, which a rename does not change.
    package func seal(total: UInt64, modified: Int64?) throws(StorageError) -> FileIdentity {
        try state.withLock { state throws(StorageError) in
            try replaceEarlier(&state)
            var status = try settledStatus(&state, modified)
            if status.byteCount > total {
                // Another program has appended bytes: the download writes none after its end.
                try files.truncate(state.file, to: total)
                status = try settledStatus(&state, modified)
            }
            guard status.byteCount == total else {
                throw StorageError(operation: "length \(status.byteCount), not \(total)", path: names.part, code: EIO)
            }
            return FileIdentity(status)
        }
    }

    /// Sets the modification time of the file, makes it durable, and returns its status.
    private func settledStatus(_ state: inout State, _ modified: Int64?) throws(StorageError) -> FileStatus {
        if let modified { try files.setModificationTime(modified, of: state.file) }
        // Bytes that an earlier sync may have lost are rejected in any case.
        if durability == .synced { try sync(&state) } else if let failure = state.syncFailure { throw failure }
        return try files.status(of: state.file)
    }

    /// Renames the file to its name.
    /// - Returns: The name; `nil` after `EXDEV`, as between two project quotas: a copy may then succeed.
    package func publish(_ collision: DownloadOptions.Collision) throws(StorageError) -> PublishedName? {
        try state.withLock { state throws(StorageError) in
            try checkName(of: state.file)
            let name: String
            do throws(StorageError) { name = try rename(names.part, collision) } catch  where error.code == EXDEV {
                return nil
            }
            state.isPublished = true
            return settle(name, removing: state.mayHaveOthers ? names.companions : [])
        }
    }

    /// The number of bytes that are copied at a time: 1 MiB.
    private static let pieceByteCount: UInt64 = 1 << 20

    /// Copies the file to a new file in the target's directory. Used if the part cannot be renamed.
    /// - Returns: The identity of the copy, which a rename does not change.
    package func copy(total: UInt64, modified: Int64?) throws(StorageError) -> FileIdentity {
        try state.withLock { state throws(StorageError) in
            _ = try PartFile.remove(names.nextPart, files)
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
                if durability == .synced { try files.sync(copy) }
                return FileIdentity(try files.status(of: copy))
            } catch {
                removeCopy()
                throw error
            }
        }
    }

    /// Renames the copy to the name. After a failure the copy is removed.
    /// - Returns: The name.
    package func publishCopy(_ collision: DownloadOptions.Collision) throws(StorageError) -> PublishedName {
        try state.withLock { state throws(StorageError) in
            do throws(StorageError) {
                let name = try rename(names.nextPart, collision)
                state.isPublished = true
                return settle(name, removing: [names.part] + names.companions)
            } catch {
                removeCopy()
                throw error
            }
        }
    }

    /// Removes a copy that will not get the name.
    package func removeCopy() { try? files.remove(names.nextPart) }

    private func settle(_ name: String, removing others: [String]) -> PublishedName {
        if durability == .synced {
            do throws(StorageError) { try files.syncDirectory(names.directoryPath) } catch {
                return PublishedName(path: name, syncError: error)
            }
        }
        // A record without its bytes is useless. The other files may be incomplete ones of a killed process.
        for path in others { try? files.remove(path) }
        return PublishedName(path: name)
    }

    private func rename(_ source: String, _ collision: DownloadOptions.Collision) throws(StorageError) -> String {
        if case .overwrite = collision {
            try files.rename(source, to: names.target)
            return names.target
        }
        for candidate in names.candidates(collision) {
            do throws(StorageError) {
                try files.renameWithoutReplacing(source, to: candidate)
                return candidate
            } catch  where error.code == EEXIST { continue }
        }
        throw StorageError(operation: "rename", path: names.target, code: EEXIST)
    }
}

/// The record of a complete file, written just before the file gets its name. If the process is then killed, the next
/// run recognizes the file.
package struct PublicationRecord: Hashable, Sendable {
    /// The result as a later run reports it. Its path is the requested name.
    package var result: DownloadResult
    package var part: FileIdentity
    /// The identity of the copy that gets the name instead, if the part cannot be renamed.
    package var copy: FileIdentity?

    /// Checks whether the file got its name, and completes the steps that follow. Blocks.
    /// - Parameter collision: The action for a file that already had the name.
    /// - Returns: The name; `nil` if the file has none of its possible names.
    package func complete(_ collision: DownloadOptions.Collision, files: any FileSystem) throws(StorageError)
        -> PublishedName?
    {
        let names = PartNames(target: result.path.string)
        guard let name = try name(among: names.candidates(collision), files) else { return nil }
        do throws(StorageError) { try files.syncDirectory(names.directoryPath) } catch {
            return PublishedName(path: name, syncError: error)
        }
        // A part that is not this file belongs to a later download, and so does the record.
        if let present = try files.statusIfPresent(at: names.part) {
            guard part.isOf(present) else { return PublishedName(path: name) }
            try? files.remove(names.part)
        }
        for path in names.companions { try? files.remove(path) }
        return PublishedName(path: name)
    }

    private func name(among candidates: some Sequence<String>, _ files: any FileSystem) throws(StorageError) -> String?
    {
        for candidate in candidates {
            guard let status = try files.statusIfPresent(at: candidate), status.byteCount == result.byteCount,
                (copy ?? part).isOf(status)
            else { continue }
            return candidate
        }
        return nil
    }
}

/// The name that a complete file got.
package struct PublishedName: Sendable {
    package var path: String
    /// The error of the directory's sync. A power cut may undo the rename, so the record is retained.
    package var syncError: StorageError?
}
