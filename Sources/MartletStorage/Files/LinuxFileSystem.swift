import CMartletLinux
import Glibc

/// The file system of the host.
package struct LinuxFileSystem: FileSystem {
    package init() {}

    package func open(_ path: String, for opening: FileOpening) throws(StorageError) -> OpenFile {
        let flags =
            switch opening {
            case .reading: O_RDONLY | O_NONBLOCK
            case .creating, .creatingShared: O_RDWR | O_CREAT | O_EXCL
            case .updating, .sharing: O_RDWR | O_CREAT
            }
        let mode: mode_t = opening == .sharing || opening == .creatingShared ? 0o666 : 0o600
        return try open(path, flags: flags | O_NOFOLLOW, mode)
    }

    func open(_ path: String, flags: Int32, _ mode: mode_t = 0) throws(StorageError) -> OpenFile {
        let descriptor = try result("open", path) { unsafe Glibc.open(path, flags | O_CLOEXEC, mode) }
        return OpenFile(path: path, descriptor: descriptor)
    }

    package func status(of file: OpenFile) throws(StorageError) -> FileStatus {
        var status = stat()
        _ = try result("fstat", file.path) { unsafe fstat(file.descriptor, &status) }
        return FileStatus(status)
    }

    package func status(at path: String) throws(StorageError) -> FileStatus {
        var status = stat()
        _ = try result("lstat", path) { unsafe lstat(path, &status) }
        return FileStatus(status)
    }

    package func readSome(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        guard limit > 0, let offset = off_t(exactly: offset) else { return [] }
        while true {
            let (bytes, code) = unsafe LinuxFileSystem.bytes(limit) { buffer in
                unsafe pread(file.descriptor, buffer, limit, offset)
            }
            if code == 0 { return bytes }
            if code != EINTR { throw StorageError(operation: "pread", path: file.path, code: code) }
        }
    }

    /// The bytes that a call reads, and its errno; 0 for success.
    private static func bytes(_ limit: Int, _ read: (UnsafeMutablePointer<UInt8>?) -> Int) -> (
        bytes: [UInt8], code: Int32
    ) {
        var code: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            let result = unsafe read(buffer.baseAddress)
            if result < 0 { code = errno }
            count = max(0, result)
        }
        return (bytes, code)
    }

    /// The local file systems, on which the status of an open file is in memory: the kernel's numbers (`linux/magic.h`)
    /// of ext2 to ext4, XFS, Btrfs, F2FS, ZFS, overlay, tmpfs and ramfs.
    private static let local: Set<Int> = [
        0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x2FC1_2FC1, 0x794C_7630, 0x0102_1994, 0x8584_58F6,
    ]
    private static let inMemory: Set<Int> = [0x0102_1994, 0x8584_58F6]

    /// The free bytes of a file's file system if that is in memory; `nil` if it is on a disk.
    package static func memory(of file: OpenFile) -> UInt64? {
        var information = statfs()
        guard unsafe fstatfs(file.descriptor, &information) == 0, inMemory.contains(Int(information.f_type)) else {
            return nil
        }
        // A file system without a limit has no size.
        guard information.f_blocks > 0 else { return .max }
        return UInt64(clamping: information.f_bavail) &* UInt64(clamping: information.f_bsize)
    }

    package func supportsNonBlockingReads(inDirectory path: String) -> Bool {
        var information = statfs()
        return unsafe statfs(path, &information) == 0 && LinuxFileSystem.local.contains(Int(information.f_type))
    }

    package func openNonBlocking(_ path: String) throws(StorageError) -> OpenFile {
        let flags = UInt64(O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC)
        do throws(StorageError) {
            let descriptor = try result("openat2", path) { unsafe martlet_open_cached(path, flags) }
            return OpenFile(path: path, descriptor: descriptor)
        } catch {
            // Kernels without the call or the flag, and seccomp filters that reject it.
            guard [ENOSYS, EINVAL, EPERM].contains(error.code) else { throw error }
            throw StorageError(operation: "openat2", path: path, code: EAGAIN)
        }
    }

    package func readSomeNonBlocking(_ file: OpenFile, limit: Int, at offset: UInt64) throws(StorageError) -> [UInt8] {
        guard limit > 0, let offset = Int(exactly: offset) else { return [] }
        let (bytes, code) = unsafe LinuxFileSystem.bytes(limit) { buffer in
            unsafe martlet_read_cached(file.descriptor, buffer, UInt(limit), offset)
        }
        if code == 0 { return bytes }
        let isUnsupported = code == EOPNOTSUPP || code == ENOSYS
        // File systems in memory do not support the flag, and never block.
        if isUnsupported, LinuxFileSystem.memory(of: file) != nil {
            return try readSome(file, limit: limit, at: UInt64(offset))
        }
        throw StorageError(operation: "preadv2", path: file.path, code: isUnsupported || code == EINTR ? EAGAIN : code)
    }

    package func writeSome(_ bytes: RawSpan, to file: OpenFile, at offset: UInt64) throws(StorageError) -> Int {
        guard let offset = off_t(exactly: offset) else {
            throw StorageError(operation: "pwrite", path: file.path, code: EFBIG)
        }
        return try result("pwrite", file.path) {
            unsafe bytes.withUnsafeBytes { bytes in
                unsafe pwrite(file.descriptor, bytes.baseAddress, bytes.count, offset)
            }
        }
    }

    package func allocate(_ byteCount: UInt64, for file: OpenFile) throws(StorageError) {
        guard let length = Int64(exactly: byteCount), length > 0 else { return }
        // In memory the space would be filled with zeros, which takes about a second for some gigabytes.
        if let room = LinuxFileSystem.memory(of: file) {
            let present = try status(of: file).allocatedByteCount
            guard byteCount > present, byteCount - present > room else { return }
            throw StorageError(operation: "fallocate", path: file.path, code: ENOSPC)
        }
        do throws(StorageError) {
            _ = try result("fallocate", file.path) { martlet_fallocate(file.descriptor, 1, 0, length) }
        } catch  where error.code == EOPNOTSUPP || error.code == ENOSYS {}
    }

    package func truncate(_ file: OpenFile, to byteCount: UInt64) throws(StorageError) {
        guard let length = off_t(exactly: byteCount) else {
            throw StorageError(operation: "ftruncate", path: file.path, code: EFBIG)
        }
        _ = try result("ftruncate", file.path) { ftruncate(file.descriptor, length) }
    }

    package func rename(_ path: String, to target: String) throws(StorageError) {
        _ = try result("rename", path) { unsafe Glibc.rename(path, target) }
    }

    package func renameWithoutReplacing(_ path: String, to target: String) throws(StorageError) {
        do throws(StorageError) { _ = try result("rename", path) { unsafe martlet_renameat2(path, target, 1) } } catch
            where error.code == EINVAL || error.code == ENOSYS
        {
            // If the file system cannot rename without replacing, a link is used, which fails if the name exists.
            _ = try result("link", path) { unsafe link(path, target) }
            _ = try result("unlink", path) { unsafe unlink(path) }
        }
    }

    package func sync(_ file: OpenFile) throws(StorageError) {
        _ = try result("fdatasync", file.path) { fdatasync(file.descriptor) }
    }

    package func syncDirectory(_ path: String) throws(StorageError) {
        let directory = try open(path, flags: O_RDONLY | O_DIRECTORY)
        do throws(StorageError) { _ = try result("fsync", path) { fsync(directory.descriptor) } } catch
            where error.code == EINVAL || error.code == ENOSYS || error.code == EROFS
        {
            // Some file systems cannot sync a directory.
        }
    }

    package func setModificationTime(_ seconds: Int64, of file: OpenFile) throws(StorageError) {
        // UTIME_OMIT preserves the access time.
        let omitted = timespec(tv_sec: 0, tv_nsec: 0x3FFF_FFFE)
        let times = [omitted, timespec(tv_sec: time_t(clamping: seconds), tv_nsec: 0)]
        _ = try result("futimens", file.path) { unsafe futimens(file.descriptor, times) }
    }

    package func remove(_ path: String) throws(StorageError) { _ = try result("unlink", path) { unsafe unlink(path) } }

    package func makeDirectory(_ path: String) throws(StorageError) {
        _ = try result("mkdir", path) { unsafe mkdir(path, 0o700) }
    }

    package func names(inDirectory path: String) throws(StorageError) -> [String] {
        guard let directory = unsafe opendir(path) else {
            throw StorageError(operation: "opendir", path: path, code: errno)
        }
        defer { unsafe closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = unsafe readdir(directory) else {
                guard errno == 0 else { throw StorageError(operation: "readdir", path: path, code: errno) }
                return names
            }
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { name in
                unsafe name.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
    }

    package func tryLock(_ file: OpenFile) throws(StorageError) -> Bool {
        do throws(StorageError) {
            _ = try result("flock", file.path) { flock(file.descriptor, LOCK_EX | LOCK_NB) }
            file.noteLock()
            return true
        } catch  where error.code == EWOULDBLOCK { return false }
    }

    package func unlock(_ file: OpenFile) { _ = flock(file.descriptor, LOCK_UN) }

    /// Makes a call, and repeats it if a signal interrupted it.
    func result<Number: SignedInteger>(_ operation: String, _ path: String, _ call: () -> Number) throws(StorageError)
        -> Number
    {
        while true {
            let result = call()
            if result >= 0 { return result }
            let code = errno
            if code != EINTR { throw StorageError(operation: operation, path: path, code: code) }
        }
    }
}

extension FileStatus {
    fileprivate init(_ status: stat) {
        let kind: Kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .file
            case S_IFDIR: .directory
            default: .other
            }
        self.init(
            kind: kind, byteCount: UInt64(clamping: status.st_size),
            allocatedByteCount: UInt64(clamping: status.st_blocks) &* 512, identity: UInt64(status.st_ino),
            device: UInt64(status.st_dev),
            modificationTime: Int64(status.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(status.st_mtim.tv_nsec),
            access: FileAccess(mode: status.st_mode, owner: status.st_uid))
    }
}

/// The working directory of this process, the base of relative paths.
package enum WorkingDirectory {
    /// Its absolute path.
    package static func path() throws(StorageError) -> String {
        guard let path = unsafe getcwd(nil, 0) else { throw StorageError(operation: "getcwd", path: ".", code: errno) }
        defer { unsafe free(path) }
        return unsafe String(cString: path)
    }

    /// The absolute path of a path, which stays valid when the working directory changes.
    package static func absolute(_ path: String) throws(StorageError) -> String {
        guard !path.hasPrefix("/") else { return path }
        // A leading `./` is removed.
        var rest = path[...]
        while rest.hasPrefix("./") { rest = rest.dropFirst(2) }
        let directory = try WorkingDirectory.path()
        return rest.isEmpty || rest == "." ? directory : "\(directory)/\(rest)"
    }

    /// The absolute path of an existing file without symbolic links, `.` and `..`. Blocks.
    package static func resolved(_ path: String) throws(StorageError) -> String {
        guard let resolved = unsafe realpath(path, nil) else {
            throw StorageError(operation: "realpath", path: path, code: errno)
        }
        defer { unsafe free(resolved) }
        return unsafe String(cString: resolved)
    }
}
