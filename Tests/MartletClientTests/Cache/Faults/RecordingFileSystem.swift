import Glibc
import MartletStorage
import Synchronization

/// A file system that writes down, in order, all that changes what is on disk.
final class RecordingFileSystem: FileSystem {
    /// A change. A file is called by the name that it was made under, whatever it is called by now; names are without their
    /// folder.
    enum Change: Sendable {
        /// A file was made.
        case made(String)
        /// Bytes were written to a file.
        case wrote(String, offset: Int, [UInt8])
        /// A file was cut to a length.
        case cut(String, byteCount: Int)
        /// A name was given to what had another.
        case renamed(String, to: String)
        /// A name was taken away.
        case removed(String)

        /// Whether it is one of the folder, and none of a file.
        var isOfFolder: Bool {
            switch self {
            case .made, .renamed, .removed: true
            case .wrote, .cut: false
            }
        }
    }

    private let base = LinuxFileSystem()
    /// Written by any thread that makes a call.
    private let recorded = Mutex<[Change]>([])

    /// All changes so far, in order.
    var changes: [Change] { recorded.withLock { $0 } }

    private func note(_ change: Change) {
        recorded.withLock { $0.append(change) }
    }

    private static func name(_ path: String) -> String {
        path.split(separator: "/").last.map(String.init) ?? ""
    }

    // MARK: Calls that change something

    func open(_ path: String, for opening: FileOpening) throws(StorageError) -> OpenFile {
        var isNew = opening == .creating || opening == .creatingShared
        if opening == .updating || opening == .sharing {
            do throws(StorageError) {
                _ = try base.status(at: path)
            } catch {
                isNew = error.code == ENOENT
            }
        }
        let file = try base.open(path, for: opening)
        if isNew { note(.made(RecordingFileSystem.name(path))) }
        return file
    }

    func writeSome(_ bytes: RawSpan, to file: OpenFile, at offset: UInt64) throws(StorageError) -> Int {
        let count = try base.writeSome(bytes, to: file, at: offset)
        let written = unsafe bytes.extracting(first: count).withUnsafeBytes { unsafe Array($0) }
        note(.wrote(RecordingFileSystem.name(file.path), offset: Int(offset), written))
        return count
    }

    func truncate(_ file: OpenFile, to byteCount: UInt64) throws(StorageError) {
        try base.truncate(file, to: byteCount)
        note(.cut(RecordingFileSystem.name(file.path), byteCount: Int(byteCount)))
    }

    func rename(_ path: String, to target: String) throws(StorageError) {
        try base.rename(path, to: target)
        note(.renamed(RecordingFileSystem.name(path), to: RecordingFileSystem.name(target)))
    }

    func renameWithoutReplacing(_ path: String, to target: String) throws(StorageError) {
        try base.renameWithoutReplacing(path, to: target)
        note(.renamed(RecordingFileSystem.name(path), to: RecordingFileSystem.name(target)))
    }

    func sync(_ file: OpenFile) throws(StorageError) { try base.sync(file) }

    func syncFolder(_ path: String) throws(StorageError) { try base.syncFolder(path) }

    func setModificationTime(_ seconds: Int64, of file: OpenFile) throws(StorageError) {
        try base.setModificationTime(seconds, of: file)
    }

    func remove(_ path: String) throws(StorageError) {
        try base.remove(path)
        note(.removed(RecordingFileSystem.name(path)))
    }

    // MARK: Calls that change nothing that matters

    func status(of file: OpenFile) throws(StorageError) -> FileStatus { try base.status(of: file) }

    func status(at path: String) throws(StorageError) -> FileStatus { try base.status(at: path) }

    func readSome(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        try base.readSome(file, limit: limit, at: offset)
    }

    func allocate(_ byteCount: UInt64, for file: OpenFile) throws(StorageError) {
        try base.allocate(byteCount, for: file)
    }

    func makeFolder(_ path: String) throws(StorageError) { try base.makeFolder(path) }

    func names(inFolder path: String) throws(StorageError) -> [String] { try base.names(inFolder: path) }

    func tryLock(_ file: OpenFile) throws(StorageError) -> Bool { try base.tryLock(file) }

    func unlock(_ file: OpenFile) { base.unlock(file) }

    // Nothing is read but by the calls above.

    func readsAtHand(inFolder path: String) -> Bool { false }

    func openAtHand(_ path: String) throws(StorageError) -> OpenFile {
        throw StorageError(operation: "open", path: path, code: EAGAIN)
    }

    func readSomeAtHand(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        throw StorageError(operation: "pread", path: file.path, code: EAGAIN)
    }
}
