import Glibc

/// A system call that failed: which one, and the errno it left.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call's name, such as `connect`.
    public var operation: String

    /// The errno, such as 111 (`ECONNREFUSED`).
    public var code: Int32

    /// An error of a call.
    public init(operation: String, code: Int32) {
        self.operation = operation
        self.code = code
    }

    /// Whether the peer has reset the connection.
    package var isReset: Bool { code == ECONNRESET }

    /// The call and what the system says of the number: `connect: Connection refused (errno 111)`.
    public var description: String {
        "\(operation): \(SystemError.text(of: code)) (errno \(code))"
    }

    /// What the C library says of an errno.
    static func text(of code: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress else { return "unknown error" }
            guard unsafe strerror_r(code, base, buffer.count) == 0 else { return "unknown error" }
            return unsafe String(cString: base)
        }
    }
}
