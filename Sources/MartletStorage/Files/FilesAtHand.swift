import Glibc

/// The part of a file system that is in the kernel's memory at the moment: reading from it waits for no disk, so that it may
/// be done anywhere, and everything else fails with `EAGAIN`.
///
/// A thread of a pool that is woken to read a small file costs ten times what reading it does.
package struct FilesAtHand: FileSystem {
    private let base: any FileSystem

    /// What is at hand of a file system; `nil` where it cannot tell for the files of a folder.
    package init?(of base: any FileSystem, inFolder path: String) {
        guard base.readsAtHand(inFolder: path) else { return nil }
        self.base = base
    }

    package func open(_ path: String, for opening: FileOpening) throws(StorageError) -> OpenFile {
        guard opening == .reading else { throw mustWait("open", path) }
        return try base.openAtHand(path)
    }

    package func status(of file: OpenFile) throws(StorageError) -> FileStatus {
        // Of an open file it is known.
        try base.status(of: file)
    }

    package func status(at path: String) throws(StorageError) -> FileStatus { throw mustWait("lstat", path) }

    package func readSome(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        try base.readSomeAtHand(file, limit: limit, at: offset)
    }

    package func writeSome(
        _ bytes: RawSpan, to file: OpenFile, at offset: UInt64
    ) throws(StorageError) -> Int {
        throw mustWait("pwrite", file.path)
    }

    package func allocate(_ byteCount: UInt64, for file: OpenFile) throws(StorageError) {
        throw mustWait("fallocate", file.path)
    }

    package func truncate(_ file: OpenFile, to byteCount: UInt64) throws(StorageError) {
        throw mustWait("ftruncate", file.path)
    }

    package func rename(_ path: String, to target: String) throws(StorageError) {
        throw mustWait("rename", path)
    }

    package func renameWithoutReplacing(_ path: String, to target: String) throws(StorageError) {
        throw mustWait("rename", path)
    }

    package func sync(_ file: OpenFile) throws(StorageError) { throw mustWait("fdatasync", file.path) }

    package func syncFolder(_ path: String) throws(StorageError) { throw mustWait("fsync", path) }

    package func setModificationTime(_ seconds: Int64, of file: OpenFile) throws(StorageError) {
        throw mustWait("futimens", file.path)
    }

    package func remove(_ path: String) throws(StorageError) { throw mustWait("unlink", path) }

    package func makeFolder(_ path: String) throws(StorageError) { throw mustWait("mkdir", path) }

    package func names(inFolder path: String) throws(StorageError) -> [String] {
        throw mustWait("opendir", path)
    }

    package func tryLock(_ file: OpenFile) throws(StorageError) -> Bool { throw mustWait("flock", file.path) }

    package func unlock(_ file: OpenFile) {}

    package func readsAtHand(inFolder path: String) -> Bool { true }

    package func openAtHand(_ path: String) throws(StorageError) -> OpenFile { try base.openAtHand(path) }

    package func readSomeAtHand(
        _ file: OpenFile, limit: Int, at offset: UInt64
    ) throws(StorageError) -> [UInt8] { try base.readSomeAtHand(file, limit: limit, at: offset) }

    private func mustWait(_ operation: String, _ path: String) -> StorageError {
        StorageError(operation: operation, path: path, code: EAGAIN)
    }
}

/// A file opened for reading by position. Its calls block: they belong on a worker.
package final class FileReader: Sendable {
    /// The length in bytes when it was opened.
    package let byteCount: UInt64
    /// Who might do what with it when it was opened.
    package let access: FileAccess
    private let files = LinuxFileSystem()
    private let file: OpenFile

    /// The path it was opened by.
    package var path: String { file.path }

    /// Opens a regular file.
    /// - Throws: What the system said; `EISDIR` for a directory, `EINVAL` for another thing that has no length.
    package init(path: String) throws(StorageError) {
        // Without waiting: a pipe that nobody writes to would hold the worker until somebody does.
        file = try files.open(path, flags: O_RDONLY | O_NONBLOCK)
        let status = try files.status(of: file)
        guard status.kind == .file else {
            throw StorageError(operation: "open", path: path, code: status.kind == .folder ? EISDIR : EINVAL)
        }
        byteCount = status.byteCount
        access = status.access
    }

    /// Reads up to so many bytes from an offset; fewer only at the file's end.
    package func read(at offset: UInt64, limit: Int) throws(StorageError) -> [UInt8] {
        try files.read(file, count: limit, at: offset)
    }

    /// Reads the whole file, as long as it was when it was opened.
    ///
    /// - Throws: `EFBIG` when it is longer than so many bytes.
    package func contents(limit: UInt64) throws(StorageError) -> [UInt8] {
        guard byteCount <= limit else { throw StorageError(operation: "read", path: path, code: EFBIG) }
        return try read(at: 0, limit: Int(byteCount))
    }
}
