import Glibc
package import MartletStorage
import Synchronization

/// The received bytes of a download and their record: two files next to the target. The process that has the part file
/// open holds its lock, which the kernel releases when the process ends. The record claims only bytes that are on disk.
/// All calls block.
package final class PartFile: Sendable {
    /// The reason why a record was not written.
    package enum RecordError: Error {
        /// The download was restarted, or the file got its name: the claimed bytes no longer exist.
        case outdated
        /// Another process writes the record: the lock does not work, as on some network file systems.
        case taken
        /// The bytes could not be synced, and their state is unknown.
        case unsynced(StorageError)
        /// The record could not be written; the previous one is intact.
        case unwritten(StorageError)
    }

    struct State {
        var file: OpenFile
        /// The generation that the bytes belong to: 1, until the download is restarted.
        var epoch: UInt32 = 1
        /// The last generation that got an empty file; 0 for none.
        var renewed: UInt32 = 0
        /// The error of a failed sync. The written bytes may be lost then: a later sync can succeed without them.
        var syncFailure: StorageError?
        /// The file with the bytes from before a restart. It remains the part until there are as many new bytes, which
        /// are in the next part until then.
        var earlier: OpenFile?
        /// The number of bytes in the record that this download could reuse; 0 for none.
        var claimedCount: UInt64 = 0
        /// The run that wrote the present record, if it is known.
        var lastOwner: UInt64?
        /// Whether the file has its final name. Records are no longer written then.
        var isPublished = false
        /// Whether there may be related files, of this run or of a killed one. An empty part has none that matter.
        var mayHaveOthers: Bool
    }

    package let names: PartNames
    /// The random number that identifies the records of this run.
    package let owner: UInt64
    /// Whether the file system shows another owner of the part, or a mode that lets others write it, although this run
    /// has created it: for example a mount with a fixed owner. Other runs take it for another user's.
    private let looksForeign: Bool
    private static let lastOwner = Atomic(UInt64.random(in: 0 ... .max))
    let durability: DownloadOptions.Durability
    let files: any FileSystem
    /// Held while files are renamed: by transfers that restart, checkpoints, and publishing.
    let state: Mutex<State>

    private init(
        names: PartNames, durability: DownloadOptions.Durability, files: any FileSystem, file: OpenFile,
        mayHaveOthers: Bool, looksForeign: Bool
    ) {
        (self.names, self.durability, self.files) = (names, durability, files)
        self.looksForeign = looksForeign
        // Random in each process, and another number for each run.
        owner = PartFile.lastOwner.wrappingAdd(1, ordering: .relaxed).newValue
        state = Mutex(State(file: file, mayHaveOthers: mayHaveOthers))
    }

    /// Opens or creates the part file of a target, and acquires its lock.
    /// - Parameter durability: Whether the complete file and its name are synced.
    /// - Returns: `nil` if another download has it.
    package static func open(
        _ names: PartNames, durability: DownloadOptions.Durability = .synced, files: any FileSystem
    ) throws(StorageError) -> PartFile? {
        // Another process may publish: by the time the opened file is locked, it may have been renamed to the target.
        for _ in 0..<16 {
            guard let (file, isNew) = try openOrCreate(names, files) else { continue }
            let opened = try files.status(of: file)
            guard opened.kind == .file else { throw StorageError(operation: "open", path: names.part, code: EEXIST) }
            let looksForeign = !opened.access.isWritableOnlyByThisUser
            // A file that this run has created cannot have been planted.
            let isForeign = looksForeign && !isNew
            // Checked before the lock, which the user who planted the file may hold.
            if isForeign, !opened.access.isOwnedByThisUser {
                _ = try removeForeign(names, files)
                continue
            }
            guard try files.tryLock(file) else { return nil }
            guard try files.statusIfPresent(at: names.part)?.identity == opened.identity else { continue }
            if isForeign {
                // No other download of this user has it, because this one has the lock.
                try files.remove(names.part)
                continue
            }
            return PartFile(
                names: names, durability: durability, files: files, file: file, mayHaveOthers: opened.byteCount > 0,
                looksForeign: looksForeign)
        }
        return nil
    }

    /// Creates the part, or opens the present one.
    /// - Returns: The file, and whether it was created; `nil` if another user's file was removed instead.
    private static func openOrCreate(_ names: PartNames, _ files: any FileSystem) throws(StorageError) -> (
        file: OpenFile, isNew: Bool
    )? {
        do throws(StorageError) { return (try files.open(names.part, for: .creatingShared), true) } catch
            where error.code == EEXIST
        {}
        do throws(StorageError) { return (try files.open(names.part, for: .sharing), false) } catch
            where error.code == EACCES
        {
            guard try removeForeign(names, files) else { throw error }
            return nil
        }
    }

    /// Removes a part that another user owns or may write, as others may plant it in a shared directory.
    /// - Returns: Whether the name is free now.
    private static func removeForeign(_ names: PartNames, _ files: any FileSystem) throws(StorageError) -> Bool {
        guard let status = try files.statusIfPresent(at: names.part) else { return true }
        guard status.kind == .file, !status.access.isWritableOnlyByThisUser else { return false }
        try files.remove(names.part)
        return true
    }

    package var file: OpenFile { state.withLock { $0.file } }

    package func byteCount() throws(StorageError) -> UInt64 { try files.status(of: file).byteCount }

    // MARK: Earlier bytes

    /// The number of earlier bytes that are retained during a restart; `nil` without such bytes.
    package var earlierByteCount: UInt64? { state.withLock { $0.earlier == nil ? nil : $0.claimedCount } }

    /// Records that the download reuses the bytes of a record: a restart may retain them until it has more.
    package func take(_ record: ResumeRecord) { state.withLock { $0.claimedCount = record.writtenCount } }

    /// Whether this run has replaced the bytes that it found.
    package var isReplaced: Bool { state.withLock { $0.renewed > 0 } }

    /// Records that the received bytes are wrong, so that neither a restart nor another run reuses them.
    package func distrust() {
        state.withLock { state in
            guard state.earlier == nil else { return }
            state.claimedCount = 0
            try? removeRecord()
        }
    }

    /// Checks that the part still has its name. A run that takes it for another user's replaces it.
    func checkName(of file: OpenFile) throws(StorageError) {
        guard looksForeign else { return }
        let identity = try files.status(of: file).identity
        guard try files.statusIfPresent(at: names.part)?.identity == identity else {
            throw StorageError(operation: "rename", path: names.part, code: ENOENT)
        }
    }

    /// Abandons a restart: the earlier bytes and their record are used again.
    package func restoreEarlier() {
        state.withLock { state in
            guard let earlier = state.earlier else { return }
            (state.file, state.earlier) = (earlier, nil)
            try? files.remove(names.nextPart)
        }
    }

    /// Replaces the earlier bytes, if there are any, by the new ones.
    func replaceEarlier(_ state: inout State) throws(StorageError) {
        guard state.earlier != nil else { return }
        try removeRecord()
        state.claimedCount = 0
        try files.rename(names.nextPart, to: names.part)
        state.earlier = nil
        // A record of the new bytes must not exist together with the old bytes.
        try files.syncDirectory(names.directoryPath)
    }

    /// Removes the record durably, before the bytes that it claims.
    private func removeRecord() throws(StorageError) {
        if try PartFile.remove(names.record, files) { try files.syncDirectory(names.directoryPath) }
    }

    // MARK: The record

    /// Returns the record, if it is valid and claims no more bytes than the file has.
    package func record() -> ResumeRecord? {
        guard let record = try? PartFile.record(at: names.record, files: files) else { return nil }
        state.withLock { $0.lastOwner = record.owner }
        let end = record.written.ranges.last?.upperBound ?? 0
        guard let count = try? byteCount(), count >= end else { return nil }
        return record
    }

    package static func record(at path: String, files: any FileSystem) throws -> ResumeRecord {
        let file = try files.open(path, for: .reading)
        let status = try files.status(of: file)
        guard status.kind == .file, status.access.isWritableOnlyByThisUser,
            status.byteCount <= UInt64(ResumeRecord.byteLimit)
        else { throw RecordEnvelope.FormatError.length }
        return try ResumeRecord.decode(try files.read(file, count: Int(status.byteCount), at: 0))
    }

    /// Syncs the bytes, then replaces the record; not while there are more earlier bytes than the record claims.
    /// - Parameter epoch: The generation of the claimed bytes, counted from 1.
    package func note(_ record: ResumeRecord, epoch: UInt32) throws(RecordError) {
        try state.withLock { state throws(RecordError) in
            guard state.epoch == epoch, !state.isPublished else { throw .outdated }
            if state.earlier != nil, record.writtenCount < state.claimedCount { return }
            do throws(StorageError) { try sync(&state) } catch { throw .unsynced(error) }
            if let present = try? PartFile.record(at: names.record, files: files), present.owner != owner,
                present.owner != state.lastOwner
            {
                throw .taken
            }
            do throws(StorageError) {
                state.mayHaveOthers = true
                try replaceEarlier(&state)
                try? files.remove(names.nextRecord)
                let next = try files.open(names.nextRecord, for: .creating)
                try files.write(all: record.bytes, to: next, at: 0)
                try files.sync(next)
                defer { DirectoryRecordIndex.shared.forget(names.directory) }
                try files.rename(names.nextRecord, to: names.record)
                state.lastOwner = owner
                state.claimedCount = record.writtenCount
            } catch {
                try? files.remove(names.nextRecord)
                throw .unwritten(error)
            }
        }
    }

    /// Syncs the bytes. After a failure, later calls fail with the same error.
    func sync(_ state: inout State) throws(StorageError) {
        if let failure = state.syncFailure { throw failure }
        do throws(StorageError) { try files.sync(state.file) } catch {
            state.syncFailure = error
            throw error
        }
    }

    // MARK: Bytes

    /// Replaces the part by an empty file, and reserves space for it. Transfers that still write to the old file do not
    /// affect the new one. Only the first call for the latest generation has an effect.
    /// - Parameters:
    ///   - epoch: The generation of the download, counted from 1.
    ///   - total: The length of the file; `nil` if it is unknown.
    ///   - keepsEarlier: Whether bytes that a record claims, and their record, stay until there are as many new ones.
    package func renew(epoch: UInt32, expecting total: UInt64?, keepsEarlier: Bool = false) throws(StorageError) {
        try state.withLock { state throws(StorageError) in
            guard epoch > state.renewed else { return }
            state.epoch = epoch
            let keepsEarlier = keepsEarlier && state.claimedCount > 0
            if !keepsEarlier {
                try removeRecord()
                (state.claimedCount, state.earlier) = (0, nil)
            }
            // A transfer that has the file may be about to write to it, even if it is still empty.
            let byteCount = try state.mayHaveOthers ? files.status(of: state.file).byteCount : 0
            if state.renewed > 0 || byteCount > 0 {
                state.mayHaveOthers = true
                // A later process that finds the empty file expects no other files.
                _ = try PartFile.remove(names.nextRecord, files)
                _ = try PartFile.remove(names.nextPart, files)
                let next = try files.open(names.nextPart, for: .creatingShared)
                guard try files.tryLock(next) else {
                    throw StorageError(operation: "flock", path: names.nextPart, code: EAGAIN)
                }
                if keepsEarlier {
                    state.earlier = state.earlier ?? state.file
                    state.file = next
                } else {
                    try files.rename(names.nextPart, to: names.part)
                    state.file = next
                    // A record of the new bytes must not exist together with the old bytes.
                    try files.syncDirectory(names.directoryPath)
                }
                state.syncFailure = nil
            }
            state.renewed = epoch
            // Small files are written as a whole, and need no reservation.
            if let total, total > 1 << 20 { try files.allocate(total, for: state.file) }
        }
    }

    /// Closes the part file and releases its lock, at the end of a run, after all transfers have stopped writing.
    package func close() {
        state.withLock { state in
            state.file.close()
            state.earlier?.close()
        }
    }

    /// Removes the bytes and the record. After an error, the other files are removed nevertheless.
    package func discard() throws(StorageError) {
        try state.withLock { _ throws(StorageError) in
            try PartFile.remove(names.companions + [names.part], files)
        }
    }

    /// Removes those of some files that exist.
    /// - Throws: The first error, after all files were tried.
    static func remove(_ paths: [String], _ files: any FileSystem) throws(StorageError) {
        var failure: StorageError?
        for path in paths {
            do throws(StorageError) { _ = try remove(path, files) } catch { failure = failure ?? error }
        }
        if let failure { throw failure }
    }

    /// Removes a file, and returns whether it existed.
    static func remove(_ path: String, _ files: any FileSystem) throws(StorageError) -> Bool {
        do throws(StorageError) {
            // Most do not exist, and unlike a removal, a status query does not block other users of the directory.
            _ = try files.status(at: path)
            try files.remove(path)
            return true
        } catch  where error.isMissingFile { return false }
    }
}
