import CLinux
import Glibc

/// A file opened for reading by position. Its calls block: they belong on a worker.
package final class FileReader: Sendable {
    /// The path it was opened by.
    package let path: String
    /// The length in bytes when it was opened.
    package let byteCount: UInt64
    /// Who might do what with it when it was opened.
    package let access: FileAccess
    private let descriptor: Int32

    /// Opens a regular file.
    /// - Throws: What the system said; `EISDIR` for a directory, `EINVAL` for another thing that has no length.
    package init(path: String) throws(StorageError) {
        // Without waiting: a pipe that nobody writes to would hold the worker until somebody does.
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw StorageError(operation: "open", path: path, code: errno) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else {
            let code = errno
            close(descriptor)
            throw StorageError(operation: "fstat", path: path, code: code)
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw StorageError(
                operation: "open", path: path, code: status.st_mode & S_IFMT == S_IFDIR ? EISDIR : EINVAL)
        }
        self.path = path
        byteCount = UInt64(clamping: status.st_size)
        access = FileAccess(mode: status.st_mode, owner: status.st_uid)
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Reads up to so many bytes from an offset; fewer only at the file's end.
    package func read(at offset: UInt64, limit: Int) throws(StorageError) -> [UInt8] {
        var code: Int32 = 0
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            while count < limit {
                let rest = unsafe UnsafeMutableRawBufferPointer(
                    rebasing: UnsafeMutableRawBufferPointer(buffer)[count...])
                let result = unsafe pread(
                    descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(count))
                if result > 0 {
                    count += result
                } else if result == 0 {
                    return
                } else if errno != EINTR {
                    code = errno
                    return
                }
            }
        }
        guard code == 0 else { throw StorageError(operation: "pread", path: path, code: code) }
        return bytes
    }
}

extension FileReader {
    /// Reads the whole file, as long as it was when it was opened.
    ///
    /// - Throws: `EFBIG` when it is longer than so many bytes.
    package func contents(limit: UInt64) throws(StorageError) -> [UInt8] {
        guard byteCount <= limit else { throw StorageError(operation: "read", path: path, code: EFBIG) }
        return try read(at: 0, limit: Int(byteCount))
    }
}
