import CLinux
import Glibc

/// A file that appears under its name only when it is complete.
///
/// Bytes go to a temporary file of its own beside the target, which is renamed when all is written and
/// synced; until then, and whatever fails, the target is what it was. Its calls block: they belong on a
/// worker, one at a time.
package final class FilePublisher: Sendable {
    /// What to do about a file that has the name already.
    package enum Collision: Sendable {
        /// Fail with `EEXIST`, even when it appears at the last moment.
        case fail
        /// Put the new file in its place.
        case replace
    }

    /// The name the file gets.
    package let path: String
    private let temporaryPath: String
    private let file: OpenFile

    /// Creates the temporary file.
    ///
    /// - Parameters:
    ///   - path: the name that the file gets.
    ///   - collision: what to do about a file that has the name already.
    ///   - mode: the permission bits, from which the process's mask takes those it forbids; secrets are for
    ///     their owner alone, 0600.
    package init(path: String, collision: Collision, mode: UInt32 = 0o666) throws(StorageError) {
        if collision == .fail {
            guard (try? LinuxFileSystem().status(at: path)) == nil else {
                throw StorageError(operation: "create", path: path, code: EEXIST)
            }
        }
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let folder = slash.map { String(path[...$0]) } ?? ""
        let name = slash.map { String(path[path.utf8.index(after: $0)...]) } ?? path
        guard !name.isEmpty, name != ".", name != ".." else {
            throw StorageError(operation: "create", path: path, code: EISDIR)
        }
        var generator = SystemRandomNumberGenerator()
        let suffix = String(generator.next(), radix: 36)
        // The name may be as long as names can be, so it is cut to leave room.
        let stem = String(decoding: name.utf8.prefix(200), as: UTF8.self)
        temporaryPath = "\(folder).\(stem).\(suffix).part"
        let descriptor = unsafe open(
            temporaryPath, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
        guard descriptor >= 0 else {
            throw StorageError(operation: "create", path: temporaryPath, code: errno)
        }
        file = OpenFile(path: temporaryPath, descriptor: descriptor)
        self.path = path
    }

    deinit { discard() }

    /// Appends bytes.
    package func write(_ bytes: [UInt8]) throws(StorageError) {
        try unsafe bytes.span.withUnsafeBytes { all throws(StorageError) in unsafe try write(all) }
    }

    /// Appends bytes.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(StorageError) {
        var offset = 0
        while offset < bytes.count {
            let result = unsafe Glibc.write(
                file.descriptor, bytes.baseAddress.map { unsafe $0 + offset }, bytes.count - offset)
            if result >= 0 {
                offset += result
            } else if errno != EINTR {
                throw StorageError(operation: "write", path: temporaryPath, code: errno)
            }
        }
    }

    /// Syncs the file, gives it its name, and syncs the folder.
    package func publish(collision: Collision) throws(StorageError) {
        guard fdatasync(file.descriptor) == 0 else {
            throw StorageError(operation: "fdatasync", path: path, code: errno)
        }
        let flags: UInt32 = collision == .fail ? 1 : 0
        if unsafe martlet_renameat2(temporaryPath, path, flags) != 0 {
            guard errno == EINVAL || errno == ENOSYS, collision == .fail else {
                throw StorageError(operation: "rename", path: path, code: errno)
            }
            // A file system that cannot rename without replacing: a link fails where the name exists.
            guard unsafe link(temporaryPath, path) == 0 else {
                throw StorageError(operation: "link", path: path, code: errno)
            }
            unsafe unlink(temporaryPath)
        }
        file.close()
        // Some file systems refuse to sync a folder; the file is complete all the same.
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        try? LinuxFileSystem().syncFolder(slash.map { String(path[...$0]) } ?? ".")
    }

    /// Removes the temporary file; nothing where the file was published.
    package func discard() {
        guard !file.isClosed else { return }
        unsafe unlink(temporaryPath)
        file.close()
    }

    /// Leaves the temporary file where it is, for whoever wants its bytes though it could not get its name.
    /// - Returns: Its path.
    package func keep() -> String {
        file.close()
        return temporaryPath
    }
}

/// Who may do what with a file, as far as its mode says.
package struct FileAccess: Hashable, Sendable {
    /// Whether others than the owner, the group among them, may read it.
    package let isReadableByOthers: Bool
    /// Whether others than the owner, the group among them, may write it.
    package let isWritableByOthers: Bool
    /// The bits of its mode that let others write it.
    private let writers: mode_t
    /// Whose it is.
    private let owner: uid_t
    /// Whether it belongs to the user that this process acts for; it asks the kernel, which most who look at a file need not.
    package var isOwnedByThisUser: Bool { owner == geteuid() }

    /// Whether it belongs to this user, and nobody else may write it but those whom this process's own mask lets write its new
    /// files.
    package var isOfThisUserAlone: Bool {
        isOwnedByThisUser && (writers == 0 || writers & FileAccess.mask == 0)
    }

    /// The mask of this process, as the kernel tells it (Linux 4.7 and later): `umask` itself can only be asked by changing it.
    private static var mask: mode_t {
        let files = LinuxFileSystem()
        guard let file = try? files.open("/proc/self/status", for: .reading),
            let bytes = try? files.readSome(file, limit: 4_096, at: 0)
        else { return S_IWOTH }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let digits = lines.first { $0.hasPrefix("Umask:") }?.split { $0 == "\t" || $0 == " " }.last
        return digits.flatMap { mode_t($0, radix: 8) } ?? S_IWOTH
    }

    /// What a file's status says.
    init(mode: mode_t, owner: uid_t) {
        isReadableByOthers = mode & (S_IRGRP | S_IROTH) != 0
        isWritableByOthers = mode & (S_IWGRP | S_IWOTH) != 0
        writers = mode & (S_IWGRP | S_IWOTH)
        self.owner = owner
    }
}
