import Glibc
package import MartletStorage
import Synchronization

/// The bytes of a download that have come, and the record of them: two files beside the target.
///
/// Whoever has the part file open holds its lock, which ends with the process, however that ends. What the record claims
/// is on the disk. All calls block: they belong on a worker.
package final class PartFile: Sendable {
    /// Why a record cannot be written.
    package enum RecordFault: Error {
        /// The download began anew meanwhile, or the file got its name: what it would claim is no longer there.
        case outdated
        /// Somebody else writes the record: a lock that lies, as on some network file systems.
        case taken
        /// The bytes could not be synced, and nothing is known of them any more.
        case unsynced(StorageError)
        /// The record could not be written; the one before stands.
        case unwritten(StorageError)
    }

    struct State {
        var file: OpenFile
        /// Which beginning of the download the bytes are of: the first, until it begins anew.
        var epoch: UInt32 = 1
        /// The last beginning that got an empty file; 0 for none.
        var renewed: UInt32 = 0
        /// Why nothing is known any more of what was written: after a sync that failed, another one would succeed without the
        /// bytes.
        var syncFailure: StorageError?
        /// The earlier bytes, which have the part's name while the new ones are fewer and lie under the next part's. Its lock
        /// is held until then.
        var earlier: OpenFile?
        /// How many bytes the record claims that this download could go on with; 0 for none.
        var claimedCount: UInt64 = 0
        /// Who wrote the record that is there, as far as that is known.
        var lastOwner: UInt64?
        /// Whether it has its name: there is nothing left that a record could be about.
        var isPublished = false
        /// Whether there may be files beside it, of this run or of one that was killed: one that was found empty has none, but
        /// for a record that claims nothing.
        var mayHaveOthers: Bool
    }

    /// The names.
    package let names: PartNames
    /// The number by which this run signs its records.
    package let owner: UInt64
    let files: any FileSystem
    /// Held while files change their names: transfers that begin anew, checkpoints, the end.
    let state: Mutex<State>

    private init(names: PartNames, files: any FileSystem, file: OpenFile, mayHaveOthers: Bool) {
        self.names = names
        self.files = files
        var generator = SystemRandomNumberGenerator()
        owner = generator.next()
        state = Mutex(State(file: file, mayHaveOthers: mayHaveOthers))
    }

    /// Opens the part file of a target, or makes it, and takes its lock.
    /// - Returns: nil where another download has it.
    package static func open(_ names: PartNames, files: any FileSystem) throws(StorageError) -> PartFile? {
        // Whoever publishes a file renames it: what was opened may be the target by the time it is locked.
        for _ in 0..<16 {
            let file: OpenFile
            do throws(StorageError) {
                file = try files.open(names.part, for: .sharing)
            } catch  where error.code == EACCES {
                guard try removeForeign(names, files) else { throw error }
                continue
            }
            let opened = try files.status(of: file)
            guard opened.kind == .file else {
                throw StorageError(operation: "open", path: names.part, code: EEXIST)
            }
            // Before its lock, which whoever planted it may hold.
            guard opened.access.isOfThisUserAlone else {
                _ = try removeForeign(names, files)
                continue
            }
            guard try files.tryLock(file) else { return nil }
            if try files.statusIfPresent(at: names.part)?.identity == opened.identity {
                return PartFile(names: names, files: files, file: file, mayHaveOthers: opened.byteCount > 0)
            }
        }
        return nil
    }

    /// Removes a part that another user owns or may write: in a shared folder anybody could have put it there, with a record that
    /// claims all of it.
    /// - Returns: Whether there was one.
    private static func removeForeign(
        _ names: PartNames, _ files: any FileSystem
    ) throws(StorageError) -> Bool {
        guard let status = try files.statusIfPresent(at: names.part) else { return true }
        guard status.kind == .file, !status.access.isOfThisUserAlone else { return false }
        try files.remove(names.part)
        return true
    }

    /// The open file.
    package var file: OpenFile { state.withLock { $0.file } }

    /// How many bytes are there; none where nothing was ever written.
    package func byteCount() throws(StorageError) -> UInt64 { try files.status(of: file).byteCount }

    // MARK: Earlier bytes

    /// How many earlier bytes are kept beside those of a new beginning; nil where none are.
    package var earlierByteCount: UInt64? { state.withLock { $0.earlier == nil ? nil : $0.claimedCount } }

    /// The download goes on with what a record claims: a new beginning may keep that until it has more.
    package func take(_ record: ResumeRecord) { state.withLock { $0.claimedCount = record.writtenCount } }

    /// What is there is wrong, and is not to be kept by a new beginning.
    package func distrust() {
        state.withLock { if $0.earlier == nil { $0.claimedCount = 0 } }
    }

    /// Gives up a new beginning: the earlier bytes and their record stay as they are.
    package func restoreEarlier() {
        state.withLock { state in
            guard let earlier = state.earlier else { return }
            (state.file, state.earlier) = (earlier, nil)
            try? files.remove(names.nextPart)
        }
    }

    /// Puts the new bytes in the place of the earlier ones, where there are such.
    func replaceEarlier(_ state: inout State) throws(StorageError) {
        guard state.earlier != nil else { return }
        // The record first, and for good: it would claim bytes that are not there.
        if try remove(names.record) { try files.syncFolder(folderPath) }
        state.claimedCount = 0
        try files.rename(names.nextPart, to: names.part)
        state.earlier = nil
        // A record of the new bytes beside the old ones would be the end of them.
        try files.syncFolder(folderPath)
    }

    // MARK: The record

    /// The record, if it is there, whole, and claims no more bytes than there are.
    package func record() -> ResumeRecord? {
        do {
            let record = try PartFile.record(at: names.record, files: files)
            state.withLock { $0.lastOwner = record.owner }
            let end = record.written.ranges.last?.upperBound ?? 0
            return try byteCount() >= end ? record : nil
        } catch {
            return nil
        }
    }

    /// Reads the record of a name.
    package static func record(at path: String, files: any FileSystem) throws -> ResumeRecord {
        let file = try files.open(path, for: .reading)
        let status = try files.status(of: file)
        guard status.kind == .file, status.access.isOfThisUserAlone,
            status.byteCount <= UInt64(ResumeRecord.byteLimit)
        else { throw RecordEnvelope.Fault.length }
        return try ResumeRecord.decode(try files.read(file, count: Int(status.byteCount), at: 0))
    }

    /// Syncs the bytes, then puts a record in the place of the one before; nothing while there are more earlier bytes than the
    /// record claims.
    /// - Parameter epoch: Which beginning of the download, counted from 1, what the record claims is of.
    package func note(_ record: ResumeRecord, epoch: UInt32) throws(RecordFault) {
        try state.withLock { state throws(RecordFault) in
            guard state.epoch == epoch, !state.isPublished else { throw .outdated }
            if state.earlier != nil, record.writtenCount < state.claimedCount { return }
            do throws(StorageError) {
                try sync(&state)
            } catch {
                throw .unsynced(error)
            }
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
                defer { FolderRecords.shared.forget(names.folder) }
                try files.rename(names.nextRecord, to: names.record)
                state.lastOwner = owner
                state.claimedCount = record.writtenCount
            } catch {
                try? files.remove(names.nextRecord)
                throw .unwritten(error)
            }
        }
    }

    /// Syncs the bytes; fails for good where that has failed before.
    func sync(_ state: inout State) throws(StorageError) {
        if let failure = state.syncFailure { throw failure }
        do throws(StorageError) {
            try files.sync(state.file)
        } catch {
            state.syncFailure = error
            throw error
        }
    }

    // MARK: Bytes

    /// Makes an empty file the part, in place of what was there, and sets room aside for it.
    ///
    /// Whoever still writes to the old one writes to a file that has no name any more. Of several transfers that want an
    /// empty file for the same beginning, or for an earlier one, only the first gets it.
    /// - Parameters:
    ///   - epoch: Which beginning of the download it is for, counted from 1.
    ///   - total: How long the file will be; nil where that is not known.
    ///   - keepsEarlier: Whether bytes that a record claims, and their record, stay until there are as many new ones.
    package func renew(
        epoch: UInt32, expecting total: UInt64?, keepsEarlier: Bool = false
    ) throws(StorageError) {
        try state.withLock { state throws(StorageError) in
            guard epoch > state.renewed else { return }
            state.epoch = epoch
            let keepsEarlier = keepsEarlier && state.claimedCount > 0
            // The record first, and for good: it would claim bytes that are not there.
            if !keepsEarlier {
                if try remove(names.record) { try files.syncFolder(folderPath) }
                (state.claimedCount, state.earlier) = (0, nil)
            }
            // Somebody may be about to write to one that was given away, though it is still empty.
            let byteCount = try files.status(of: state.file).byteCount
            if state.renewed > 0 || byteCount > 0 {
                state.mayHaveOthers = true
                // Who finds the empty file looks for none beside it.
                _ = try remove(names.nextRecord)
                _ = try remove(names.nextPart)
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
                    // A record of the new bytes beside the old ones would be the end of them.
                    try files.syncFolder(folderPath)
                }
                state.syncFailure = nil
            }
            state.renewed = epoch
            // Small files are written at once as a whole.
            if let total, total > 1 << 20 { try files.allocate(total, for: state.file) }
        }
    }

    var folderPath: String { names.folderPath }

    func remove(_ path: String) throws(StorageError) -> Bool {
        do throws(StorageError) {
            // Most are not there: a look holds nobody up who has other files in the folder.
            _ = try files.status(at: path)
            try files.remove(path)
            return true
        } catch  where error.isMissingFile {
            return false
        }
    }

    // MARK: The end

    /// Closes the part file and lets go of its lock: at the end of a run, when nobody writes any more.
    package func close() {
        state.withLock { state in
            state.file.close()
            state.earlier?.close()
        }
    }

    /// Removes the bytes and the record.
    package func discard() {
        state.withLock { _ in
            for path in [names.record, names.nextRecord, names.part, names.nextPart] {
                try? files.remove(path)
            }
        }
    }
}
