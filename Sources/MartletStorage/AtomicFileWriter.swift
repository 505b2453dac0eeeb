import CMartletLinux
import Glibc

/// The writer of a file that gets its name only when it is complete. The bytes are written to a temporary file next to
/// the target, which is synced and renamed at the end. Until then, and after a failure, the target does not change. The
/// calls block: make them on a worker, one at a time.
package final class AtomicFileWriter: Sendable {
    /// The action for a file that already has the name.
    package enum Collision: Sendable {
        /// Fail with `EEXIST`, even if the file appears at the last moment.
        case fail
        /// Replace the file.
        case replace
    }

    /// The name that the file gets.
    package let path: String
    /// The directory, with a slash at its end; empty for the current one.
    private let directory: String
    private let file: OpenFile
    private let files = LinuxFileSystem()

    /// Creates the temporary file for a target.
    /// - Parameter mode: The permission bits, reduced by the umask of the process; 0600 for secrets.
    package init(path: String, collision: Collision, mode: UInt32 = 0o666) throws(StorageError) {
        if collision == .fail, (try? files.status(at: path)) != nil {
            throw StorageError(operation: "create", path: path, code: EEXIST)
        }
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        directory = slash.map { String(path[...$0]) } ?? ""
        let name = slash.map { String(path[path.utf8.index(after: $0)...]) } ?? path
        guard !name.isEmpty, name != ".", name != ".." else {
            throw StorageError(operation: "create", path: path, code: EISDIR)
        }
        var generator = SystemRandomNumberGenerator()
        let suffix = String(generator.next(), radix: 36)
        // The name may have the maximum length, so it is shortened for the suffix.
        let stem = String(decoding: name.utf8.prefix(200), as: UTF8.self)
        let temporary = "\(directory).\(stem).\(suffix).part"
        let descriptor = try files.result("create", temporary) {
            unsafe open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
        }
        file = OpenFile(path: temporary, descriptor: descriptor)
        self.path = path
    }

    deinit { discard() }

    /// Appends bytes to the temporary file.
    package func write(_ bytes: [UInt8]) throws(StorageError) {
        try unsafe bytes.span.withUnsafeBytes { all throws(StorageError) in unsafe try write(all) }
    }

    /// Appends bytes to the temporary file.
    package func write(_ bytes: UnsafeRawBufferPointer) throws(StorageError) {
        var offset = 0
        while offset < bytes.count {
            offset += try files.result("write", file.path) {
                unsafe Glibc.write(file.descriptor, bytes.baseAddress.map { unsafe $0 + offset }, bytes.count - offset)
            }
        }
    }

    /// Syncs the file, gives it its name, and syncs the directory.
    package func publish(collision: Collision) throws(StorageError) {
        _ = try files.result("fdatasync", path) { fdatasync(file.descriptor) }
        do throws(StorageError) {
            switch collision {
            case .fail: try files.renameWithoutReplacing(file.path, to: path)
            case .replace: try files.rename(file.path, to: path)
            }
        } catch  where error.operation == "unlink" {
            // The file has its final name, and only the temporary name could not be removed.
        } catch { throw StorageError(operation: error.operation, path: path, code: error.code) }
        file.close()
        // Some file systems cannot sync a directory; the file is complete nevertheless.
        try? files.syncDirectory(directory.isEmpty ? "." : directory)
    }

    /// Removes the temporary file, unless the file was published.
    package func discard() {
        guard !file.isClosed else { return }
        unsafe unlink(file.path)
        file.close()
    }

    /// Keeps the temporary file, whose bytes the caller needs although it could not be renamed, and returns its path.
    package func keep() -> String {
        file.close()
        return file.path
    }
}

/// The access to a file that its mode and its owner grant.
package struct FileAccess: Hashable, Sendable {
    /// Whether users other than the owner, the group included, may read the file.
    package let isReadableByOthers: Bool
    /// Whether users other than the owner, the group included, may write the file.
    package var isWritableByOthers: Bool { writers != 0 }
    /// The mode bits that let others write the file.
    private let writers: mode_t
    private let owner: uid_t
    /// Whether the file belongs to the effective user of this process.
    package var isOwnedByThisUser: Bool { owner == geteuid() }

    /// Whether this user owns the file, and others may write it only if the umask also lets them write new files.
    package var isWritableOnlyByThisUser: Bool { isOwnedByThisUser && (writers == 0 || writers & FileAccess.mask == 0) }

    /// The umask of this process, from the kernel's report (Linux 4.7), because the call `umask` would also change it.
    private static var mask: mode_t {
        guard let bytes = try? FileReader(path: "/proc/self/status").read(at: 0, limit: 4_096) else { return S_IWOTH }
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        let digits = lines.first { $0.hasPrefix("Umask:") }?.split { $0 == "\t" || $0 == " " }.last
        return digits.flatMap { mode_t($0, radix: 8) } ?? S_IWOTH
    }

    init(mode: mode_t, owner: uid_t) {
        isReadableByOthers = mode & (S_IRGRP | S_IROTH) != 0
        writers = mode & (S_IWGRP | S_IWOTH)
        self.owner = owner
    }
}
