import CMartletLinux
import Glibc

/// A file operation that failed: the operation, the file, and the errno.
public struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The operation, such as `open` or `fdatasync`.
    public var operation: String
    /// The path of the file.
    public var path: String
    /// The errno of the failed call.
    public var code: Int32

    /// Creates the error of a failed operation.
    public init(operation: String, path: String, code: Int32) {
        (self.operation, self.path, self.code) = (operation, path, code)
    }

    /// Whether there was no space: a full disk, a quota, or a limit on the size of files.
    public var isOutOfSpace: Bool { code == ENOSPC || code == EDQUOT || code == EFBIG }

    /// Whether the file or its directory does not exist.
    public var isMissingFile: Bool { code == ENOENT }

    /// Whether a file of that name exists and must not.
    public var isExistingFile: Bool { code == EEXIST }

    /// The path, the operation, and the system's text for the errno.
    public var description: String { "\(path): \(operation): \(StorageError.text(of: code)) (errno \(code))" }

    private static func text(of code: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress, unsafe strerror_r(code, base, buffer.count) == 0 else {
                return "unknown error"
            }
            return unsafe String(cString: base)
        }
    }
}
