import Foundation
import Glibc

/// Files that another process reads.
///
/// `Data.write(to:)` waits until the bytes are on disk. With a busy disk it blocks one of the few threads of Swift's
/// pool for seconds, and so delays all other tests.
enum InputFile {
    /// Creates a file, or truncates one.
    ///
    /// - Throws: `ServerFailure` when the system call fails.
    static func make(_ path: String) throws -> FileHandle {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw ServerFailure(program: path, reason: "cannot be written: errno \(errno)")
        }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Creates a file with the given bytes.
    ///
    /// - Throws: `ServerFailure` when the system call fails, or the error of writing.
    static func write(_ bytes: Data, to path: String) throws {
        let handle = try make(path)
        try handle.write(contentsOf: bytes)
        try handle.close()
    }
}
