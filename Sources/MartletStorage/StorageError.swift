import CLinux
import Glibc

/// A file operation that failed: which one, on which file, and the errno it left.
public struct StorageError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The operation, such as `open` or `fdatasync`.
    public var operation: String

    /// The file's path.
    public var path: String

    /// The errno.
    public var code: Int32

    /// A failed operation.
    public init(operation: String, path: String, code: Int32) {
        self.operation = operation
        self.path = path
        self.code = code
    }

    /// Whether there was no room: a full disk, a quota, or a limit on the size of files.
    public var isOutOfSpace: Bool { code == ENOSPC || code == EDQUOT || code == EFBIG }

    /// Whether there is no such file, or no folder to hold it.
    public var isMissingFile: Bool { code == ENOENT }

    /// Whether there is a file of that name, where there must be none.
    public var isExistingFile: Bool { code == EEXIST }

    /// The file, the operation and what the system says of the number.
    public var description: String { "\(path): \(operation): \(StorageError.text(of: code)) (errno \(code))" }

    private static func text(of code: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress else { return "unknown error" }
            guard unsafe strerror_r(code, base, buffer.count) == 0 else { return "unknown error" }
            return unsafe String(cString: base)
        }
    }
}
