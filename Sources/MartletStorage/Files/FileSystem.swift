import Glibc
import Synchronization

/// The calls by which files are read and written, one system call each, so that tests can make any of them fail.
///
/// All of them block: they belong on a worker, never on the pool of Swift's tasks. `EINTR` is dealt with behind this
/// seam; short reads and writes are dealt with before it, by ``read(_:count:at:)`` and ``write(all:to:at:)``.
package protocol FileSystem: Sendable {
    /// Opens a file, close-on-exec.
    func open(_ path: String, for opening: FileOpening) throws(StorageError) -> OpenFile
    /// What is known of an open file.
    func status(of file: OpenFile) throws(StorageError) -> FileStatus
    /// What is known of a name, without following a symbolic link.
    func status(at path: String) throws(StorageError) -> FileStatus
    /// Reads at an offset: at most so many bytes, perhaps fewer, none at the end.
    func readSome(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8]
    /// Writes at an offset and returns how many of the bytes were taken.
    func writeSome(_ bytes: RawSpan, to file: OpenFile, at offset: UInt64) throws(StorageError) -> Int
    /// Sets room for so many bytes in all aside, the length staying as it is; nothing on file systems that cannot. In memory
    /// it only sees whether there is room.
    func allocate(_ byteCount: UInt64, for file: OpenFile) throws(StorageError)
    /// Cuts a file to a length, giving back what was set aside behind it.
    func truncate(_ file: OpenFile, to byteCount: UInt64) throws(StorageError)
    /// Gives a file another name, in place of a file that has it.
    func rename(_ path: String, to target: String) throws(StorageError)
    /// Gives a file another name, and fails with `EEXIST` where a file has it.
    func renameWithoutReplacing(_ path: String, to target: String) throws(StorageError)
    /// Waits until what was written to a file is on the disk, and what is needed to find it there (`fdatasync`). Once that
    /// has failed, what was written since the last success may be lost, and a second try proves nothing.
    func sync(_ file: OpenFile) throws(StorageError)
    /// Waits until the names in a folder are on the disk.
    func syncFolder(_ path: String) throws(StorageError)
    /// Says when a file was written last, in seconds since 1970.
    func setModificationTime(_ seconds: Int64, of file: OpenFile) throws(StorageError)
    /// Takes a name away from a file, which is gone when nobody has it open.
    func remove(_ path: String) throws(StorageError)
    /// Makes a folder that is its owner's alone (0700).
    func makeFolder(_ path: String) throws(StorageError)
    /// The names in a folder but `.` and `..`, in no order.
    func names(inFolder path: String) throws(StorageError) -> [String]
    /// Takes the lock on an open file if nobody has it; it ends with the process that holds it, however that ends.
    func tryLock(_ file: OpenFile) throws(StorageError) -> Bool
    /// Lets go of the lock on an open file.
    func unlock(_ file: OpenFile)

    /// Whether files in a folder can be read where that waits for no disk: see ``FilesAtHand``.
    func readsAtHand(inFolder path: String) -> Bool
    /// Opens a file for reading, if that waits for nothing; `EAGAIN` where it might.
    func openAtHand(_ path: String) throws(StorageError) -> OpenFile
    /// Reads as ``readSome(_:limit:at:)`` does, if that waits for nothing; `EAGAIN` where it might.
    func readSomeAtHand(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8]
}

extension FileSystem {
    /// Reads at an offset: as many bytes as asked for, fewer only at the end of the file.
    package func read(_ file: OpenFile, count: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        var bytes = try readSome(file, limit: count, at: offset)
        while bytes.count < count {
            let more = try readSome(file, limit: count - bytes.count, at: offset &+ UInt64(bytes.count))
            if more.isEmpty { break }
            bytes += more
        }
        return bytes
    }

    /// Writes all of the bytes at an offset.
    package func write(all bytes: [UInt8], to file: OpenFile, at offset: UInt64) throws(StorageError) {
        let bytes = unsafe bytes.span.bytes
        var written = 0
        while written < bytes.byteCount {
            written += try writeSome(
                bytes.extracting(droppingFirst: written), to: file, at: offset &+ UInt64(written))
        }
    }
}

extension FileSystem {
    /// What is known of a name as by ``status(at:)``; `nil` where nothing has it.
    package func statusIfPresent(at path: String) throws(StorageError) -> FileStatus? {
        do throws(StorageError) {
            return try status(at: path)
        } catch  where error.isMissingFile {
            return nil
        }
    }

    /// Makes a folder that is its owner's alone (0700), if nothing has its name.
    ///
    /// - Parameter withParents: whether folders above it may be made, too.
    package func makeFolder(_ path: String, withParents: Bool) throws(StorageError) {
        do throws(StorageError) {
            try makeFolder(path)
        } catch  where error.code == EEXIST {
            return
        } catch  where error.code == ENOENT && withParents {
            let parts = path.split(separator: "/").dropLast()
            guard !parts.isEmpty else { throw error }
            try makeFolder((path.hasPrefix("/") ? "/" : "") + parts.joined(separator: "/"), withParents: true)
            try makeFolder(path)
        }
    }
}

/// What a file is opened for. A symbolic link in the last place is followed by none of them.
package enum FileOpening: Sendable {
    /// For reading what is there. A pipe in its place is opened at once and does not hang.
    case reading
    /// For reading and writing a file that must not be there yet, and is its owner's alone (0600).
    case creating
    /// For reading and writing a file that is made, its owner's alone, where it is missing.
    case updating
    /// As ``updating``, but a file that is made is for whom the process's mask lets read it (0666).
    case sharing
    /// As ``creating``, but the file is for whom the process's mask lets read it (0666).
    case creatingShared
}

/// What the file system says of a file.
package struct FileStatus: Equatable, Sendable {
    /// What kind of thing has the name.
    package enum Kind: Sendable {
        /// A regular file.
        case file
        /// A folder.
        case folder
        /// A symbolic link, pipe, socket or device.
        case other
    }

    /// What it is.
    package var kind: Kind
    /// Its length in bytes.
    package var byteCount: UInt64
    /// The bytes it occupies: its blocks, as `du` counts them.
    package var allocatedByteCount: UInt64
    /// Its number in its file system: another file of the same name has another one.
    package var identity: UInt64
    /// The number of its file system, as long as that is mounted.
    package var device: UInt64
    /// When it was written last, in nanoseconds since 1970.
    package var modificationTime: Int64
    /// Who may do what with it.
    package var access: FileAccess
}

/// A file that is open, until it is closed, or nobody holds it any more.
///
/// Closing it lets go of the lock that was taken on it.
package final class OpenFile: Sendable {
    /// The path it was opened by; it may have another name since, or none.
    package let path: String
    let descriptor: Int32
    /// Set once, by whoever closes it.
    private let wasClosed = Atomic(false)
    /// Set by whoever takes its lock, and never reset: to let go of a lock that is none does no harm.
    private let wasLocked = Atomic(false)

    init(path: String, descriptor: Int32) {
        self.path = path
        self.descriptor = descriptor
    }

    deinit { close() }

    /// Whether it was closed.
    var isClosed: Bool { wasClosed.load(ordering: .acquiring) }

    /// Notes that its lock was taken.
    func noteLock() { wasLocked.store(true, ordering: .releasing) }

    /// Closes it at once. Nobody may use it any more: the number of its descriptor is another file's next.
    package func close() {
        guard !wasClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        // The lock ends with the last copy of the descriptor, and a process that is being started elsewhere in this one has
        // a copy until it is another program: whoever comes next would find a lock of nobody's.
        if wasLocked.load(ordering: .acquiring) { _ = flock(descriptor, LOCK_UN) }
        _ = Glibc.close(descriptor)
    }
}
