import Glibc

/// A view of a file system that reads only from the page cache. Any thread may use it, because a call fails with
/// `EAGAIN` if it would block. Waking a thread of a pool to read a small file costs ten times as much as the read.
package struct NonBlockingFileSystem: ReadableFileSystem {
    private let base: any FileSystem

    /// Creates a view of a file system; `nil` if it does not support non-blocking reads in the directory.
    package init?(of base: any FileSystem, inDirectory path: String) {
        guard base.supportsNonBlockingReads(inDirectory: path) else { return nil }
        self.base = base
    }

    package func open(_ path: String, for opening: FileOpening) throws(StorageError) -> OpenFile {
        guard opening == .reading else { throw StorageError(operation: "open", path: path, code: EAGAIN) }
        return try base.openNonBlocking(path)
    }

    // Does not block: the status of an open file is in memory.
    package func status(of file: OpenFile) throws(StorageError) -> FileStatus { try base.status(of: file) }

    package func readSome(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        try base.readSomeNonBlocking(file, limit: limit, at: offset)
    }
}

/// A file opened for reading by position. The calls block: make them on a worker.
package final class FileReader: Sendable {
    /// The length in bytes when the file was opened.
    package let byteCount: UInt64
    /// The access rights when the file was opened.
    package let access: FileAccess
    private let files = LinuxFileSystem()
    private let file: OpenFile

    /// The path by which the file was opened.
    package var path: String { file.path }

    /// Opens a regular file.
    /// - Throws: The system's error; `EISDIR` for a directory, `EINVAL` for another file that is not regular.
    package init(path: String) throws(StorageError) {
        // Non-blocking: opening a pipe would otherwise block the worker until there is a writer.
        file = try files.open(path, flags: O_RDONLY | O_NONBLOCK)
        let status = try files.status(of: file)
        guard status.kind == .file else {
            throw StorageError(operation: "open", path: path, code: status.kind == .directory ? EISDIR : EINVAL)
        }
        byteCount = status.byteCount
        access = status.access
    }

    /// Reads up to `limit` bytes at an offset; fewer only at the end of the file.
    package func read(at offset: UInt64, limit: Int) throws(StorageError) -> [UInt8] {
        try files.read(file, count: limit, at: offset)
    }

    /// Reads the whole file, up to its length when it was opened.
    /// - Throws: `EFBIG` if that is more than `limit` bytes.
    package func contents(limit: UInt64) throws(StorageError) -> [UInt8] {
        guard byteCount <= limit else { throw StorageError(operation: "read", path: path, code: EFBIG) }
        return try read(at: 0, limit: Int(byteCount))
    }
}
