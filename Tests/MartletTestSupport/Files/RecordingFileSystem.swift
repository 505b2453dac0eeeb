import Glibc
package import MartletStorage
import Synchronization

/// A file system that records, in order, all changes of the disk and all syncs.
///
/// Names omit their directory. Files are numbered in the order of their creation, because their names can change.
package final class RecordingFileSystem: FileSystem {
    /// A change, or the completion of a sync.
    package enum Change: Sendable {
        /// A file was created.
        case made(String, file: Int)
        /// Bytes were written to a file.
        case wrote(file: Int, offset: Int, [UInt8])
        /// A file was truncated to a length.
        case cut(file: Int, byteCount: Int)
        /// A file was renamed.
        case renamed(String, to: String)
        /// A name was removed.
        case removed(String)
        /// A file's earlier writes are on disk.
        case synced(file: Int)
        /// The directory's earlier changes are on disk.
        case syncedDirectory
    }

    private struct State {
        var changes: [Change] = []
        /// The file numbers by file system identity.
        var numbers: [UInt64: Int] = [:]
        var lastNumber = 0
    }

    private let base = LinuxFileSystem()
    /// The state, which each calling thread changes.
    private let state = Mutex(State())

    /// Creates a file system without recorded changes.
    package init() {}

    /// All changes so far in order.
    package var changes: [Change] { state.withLock { $0.changes } }

    private func note(_ change: Change) {
        state.withLock { $0.changes.append(change) }
    }

    /// Records a change of a file by its number.
    private func note(_ file: OpenFile, _ change: (Int) -> Change) throws(StorageError) {
        let identity = try base.status(of: file).identity
        state.withLock { state in
            var number = state.numbers[identity]
            if number == nil {
                state.lastNumber += 1
                number = state.lastNumber
                state.numbers[identity] = number
            }
            if let number { state.changes.append(change(number)) }
        }
    }

    private static func name(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? ""
    }

    // MARK: Changing calls

    package func open(_ path: String, for opening: FileOpening) throws(StorageError) -> OpenFile {
        var isNew = opening == .creating || opening == .creatingShared
        if opening == .updating || opening == .sharing {
            do throws(StorageError) {
                _ = try base.status(at: path)
            } catch {
                isNew = error.code == ENOENT
            }
        }
        let file = try base.open(path, for: opening)
        if isNew {
            // Another file may have had the same identity earlier.
            let identity = try base.status(of: file).identity
            state.withLock { $0.numbers[identity] = nil }
            try note(file) { .made(RecordingFileSystem.name(path), file: $0) }
        }
        return file
    }

    package func writeSome(
        _ bytes: RawSpan, to file: OpenFile, at offset: UInt64
    ) throws(StorageError) -> Int {
        let count = try base.writeSome(bytes, to: file, at: offset)
        let written = unsafe bytes.extracting(first: count).withUnsafeBytes { unsafe Array($0) }
        try note(file) { .wrote(file: $0, offset: Int(offset), written) }
        return count
    }

    package func truncate(_ file: OpenFile, to byteCount: UInt64) throws(StorageError) {
        try base.truncate(file, to: byteCount)
        try note(file) { .cut(file: $0, byteCount: Int(byteCount)) }
    }

    package func rename(_ path: String, to target: String) throws(StorageError) {
        try base.rename(path, to: target)
        note(.renamed(RecordingFileSystem.name(path), to: RecordingFileSystem.name(target)))
    }

    package func renameWithoutReplacing(_ path: String, to target: String) throws(StorageError) {
        try base.renameWithoutReplacing(path, to: target)
        note(.renamed(RecordingFileSystem.name(path), to: RecordingFileSystem.name(target)))
    }

    package func sync(_ file: OpenFile) throws(StorageError) {
        try base.sync(file)
        try note(file) { .synced(file: $0) }
    }

    package func syncDirectory(_ path: String) throws(StorageError) {
        try base.syncDirectory(path)
        note(.syncedDirectory)
    }

    package func setModificationTime(_ seconds: Int64, of file: OpenFile) throws(StorageError) {
        try base.setModificationTime(seconds, of: file)
    }

    package func remove(_ path: String) throws(StorageError) {
        try base.remove(path)
        note(.removed(RecordingFileSystem.name(path)))
    }

    // MARK: Calls without relevant changes

    package func status(of file: OpenFile) throws(StorageError) -> FileStatus { try base.status(of: file) }

    package func status(at path: String) throws(StorageError) -> FileStatus { try base.status(at: path) }

    package func readSome(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        try base.readSome(file, limit: limit, at: offset)
    }

    package func allocate(_ byteCount: UInt64, for file: OpenFile) throws(StorageError) {
        try base.allocate(byteCount, for: file)
    }

    package func makeDirectory(_ path: String) throws(StorageError) { try base.makeDirectory(path) }

    package func names(inDirectory path: String) throws(StorageError) -> [String] {
        try base.names(inDirectory: path)
    }

    package func tryLock(_ file: OpenFile) throws(StorageError) -> Bool { try base.tryLock(file) }

    package func unlock(_ file: OpenFile) { base.unlock(file) }

    // Only the calls above read files.

    package func supportsNonBlockingReads(inDirectory path: String) -> Bool { false }

    package func openNonBlocking(_ path: String) throws(StorageError) -> OpenFile {
        throw StorageError(operation: "open", path: path, code: EAGAIN)
    }

    package func readSomeNonBlocking(
        _ file: OpenFile, limit: Int, at offset: UInt64
    ) throws(StorageError) -> [UInt8] {
        throw StorageError(operation: "pread", path: file.path, code: EAGAIN)
    }
}
