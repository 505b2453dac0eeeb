import Glibc
import Synchronization

/// The calls that read files, one system call each.
package protocol ReadableFileSystem: Sendable {
    /// Opens a file with close-on-exec.
    func open(_ path: String, for opening: FileOpening) throws(StorageError) -> OpenFile
    /// The status of an open file.
    func status(of file: OpenFile) throws(StorageError) -> FileStatus
    /// Reads up to `limit` bytes at an offset; empty at the end of the file.
    func readSome(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8]
}

/// The calls that read and write files, one system call each, so that tests can make any of them fail. All of them
/// block: make them on a worker, never on the cooperative pool. Implementations handle `EINTR`;
/// ``ReadableFileSystem/read(_:count:at:)`` and ``write(all:to:at:)`` handle short reads and writes.
package protocol FileSystem: ReadableFileSystem {
    /// The status of a path. A symbolic link is not followed.
    func status(at path: String) throws(StorageError) -> FileStatus
    /// Writes at an offset.
    /// - Returns: The number of bytes written.
    func writeSome(_ bytes: RawSpan, to file: OpenFile, at offset: UInt64) throws(StorageError) -> Int
    /// Reserves disk space without changing the length, if the file system supports that. On a file system in memory,
    /// only checks the free space.
    func allocate(_ byteCount: UInt64, for file: OpenFile) throws(StorageError)
    /// Cuts a file to a length and frees the space reserved after it.
    func truncate(_ file: OpenFile, to byteCount: UInt64) throws(StorageError)
    /// Renames a file and replaces a file that has the name.
    func rename(_ path: String, to target: String) throws(StorageError)
    /// Renames a file; fails with `EEXIST` if a file has the name.
    func renameWithoutReplacing(_ path: String, to target: String) throws(StorageError)
    /// Waits until the data of a file, and the metadata needed to read it, is on the disk (`fdatasync`). After a
    /// failure, everything written since the last success may be lost, and a successful retry proves nothing.
    func sync(_ file: OpenFile) throws(StorageError)
    /// Waits until the names in a directory are on the disk.
    func syncDirectory(_ path: String) throws(StorageError)
    /// Sets the modification time, in seconds since 1970.
    func setModificationTime(_ seconds: Int64, of file: OpenFile) throws(StorageError)
    /// Removes a name of a file. The file is deleted when no process has it open.
    func remove(_ path: String) throws(StorageError)
    /// Creates a directory accessible only by its owner (0700).
    func makeDirectory(_ path: String) throws(StorageError)
    /// The names in a directory except `.` and `..`, unordered.
    func names(inDirectory path: String) throws(StorageError) -> [String]
    /// Acquires the lock of an open file; `false` if another owner holds it. The end of the process releases the lock.
    func tryLock(_ file: OpenFile) throws(StorageError) -> Bool
    /// Releases the lock of an open file.
    func unlock(_ file: OpenFile)

    /// Whether files in a directory can be read from the page cache without blocking: see ``NonBlockingFileSystem``.
    func supportsNonBlockingReads(inDirectory path: String) -> Bool
    /// Opens a file for reading without blocking; `EAGAIN` if it could block.
    func openNonBlocking(_ path: String) throws(StorageError) -> OpenFile
    /// Reads as ``ReadableFileSystem/readSome(_:limit:at:)`` without blocking; `EAGAIN` if it could block.
    func readSomeNonBlocking(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8]
}

extension ReadableFileSystem {
    /// Reads `count` bytes at an offset; fewer only at the end of the file.
    package func read(_ file: OpenFile, count: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        var bytes = try readSome(file, limit: count, at: offset)
        while bytes.count < count {
            let more = try readSome(file, limit: count - bytes.count, at: offset &+ UInt64(bytes.count))
            if more.isEmpty { break }
            bytes += more
        }
        return bytes
    }
}

extension FileSystem {
    /// Writes all of the bytes at an offset.
    package func write(all bytes: [UInt8], to file: OpenFile, at offset: UInt64) throws(StorageError) {
        let bytes = unsafe bytes.span.bytes
        var written = 0
        while written < bytes.byteCount {
            written += try writeSome(bytes.extracting(droppingFirst: written), to: file, at: offset &+ UInt64(written))
        }
    }

    /// The status of a path as by ``status(at:)``; `nil` if it does not exist.
    package func statusIfPresent(at path: String) throws(StorageError) -> FileStatus? {
        do throws(StorageError) { return try status(at: path) } catch  where error.isMissingFile { return nil }
    }

    /// Creates a directory accessible only by its owner (0700), unless its name exists.
    /// - Parameter withParents: Whether missing parent directories are created too.
    package func makeDirectory(_ path: String, withParents: Bool) throws(StorageError) {
        do throws(StorageError) { try makeDirectory(path) } catch  where error.code == EEXIST { return } catch
            where error.code == ENOENT && withParents
        {
            let parts = path.split(separator: "/").dropLast()
            guard !parts.isEmpty else { throw error }
            try makeDirectory((path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/"), withParents: true)
            try makeDirectory(path)
        }
    }
}

/// The purpose for which a file is opened. A symbolic link as the last component is never followed.
package enum FileOpening: Sendable {
    /// Reads an existing file. Opening a pipe in its place does not block.
    case reading
    /// Creates a file that must not exist, accessible only by its owner (0600), to read and write.
    case creating
    /// Opens a file to read and write; a missing one is created accessible only by its owner.
    case updating
    /// As ``updating``, but a file that is created has the mode that the umask permits (0666).
    case sharing
    /// As ``creating``, but with the mode that the umask permits (0666).
    case creatingShared
}

package struct FileStatus: Equatable, Sendable {
    /// The type of a file.
    package enum Kind: Sendable {
        /// A regular file.
        case file
        /// A directory of files.
        case directory
        /// A symbolic link, pipe, socket or device.
        case other
    }

    /// The type of the file.
    package var kind: Kind
    /// The length in bytes.
    package var byteCount: UInt64
    /// The size of the blocks that the file occupies, in bytes, as `du` counts them.
    package var allocatedByteCount: UInt64
    /// The inode number. A file that replaces another one under the same name has a different number.
    package var identity: UInt64
    /// The device number of the file system, valid while it is mounted.
    package var device: UInt64
    /// The modification time in nanoseconds since 1970.
    package var modificationTime: Int64
    package var access: FileAccess
}

/// An open file. Closing or releasing it also releases its lock.
package final class OpenFile: Sendable {
    /// The path by which it was opened; the file may have been renamed or removed since.
    package let path: String
    let descriptor: Int32
    private let wasClosed = Atomic(false)
    /// Set when the lock is acquired, and never reset: releasing a lock that is not held is harmless.
    private let wasLocked = Atomic(false)

    init(path: String, descriptor: Int32) { (self.path, self.descriptor) = (path, descriptor) }

    deinit { close() }

    var isClosed: Bool { wasClosed.load(ordering: .acquiring) }

    /// Records that the lock was acquired.
    func noteLock() { wasLocked.store(true, ordering: .releasing) }

    /// Closes the file. It must not be used after that, because its descriptor number is reused for other files.
    package func close() {
        guard !wasClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        // Closing alone may not release the lock: a child process that is just starting has a copy of the descriptor.
        if wasLocked.load(ordering: .acquiring) { _ = flock(descriptor, LOCK_UN) }
        _ = Glibc.close(descriptor)
    }
}
