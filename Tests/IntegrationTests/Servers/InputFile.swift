import Foundation
import Glibc

/// Files that another process reads.
///
/// `Data.write(to:)` waits until the disk has them. With a busy disk that is seconds, during which one of the few
/// threads of Swift's pool does nothing for all other tests.
enum InputFile {
    /// Makes a file, or empties one.
    ///
    /// - Throws: `ServerFailure` when the system refuses.
    static func make(_ path: String) throws -> FileHandle {
        let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw ServerFailure(program: path, reason: "cannot be written: errno \(errno)")
        }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }

    /// Makes a file of bytes.
    ///
    /// - Throws: `ServerFailure` when the system refuses, or the error of writing.
    static func write(_ bytes: Data, to path: String) throws {
        let handle = try make(path)
        try handle.write(contentsOf: bytes)
        try handle.close()
    }
}
