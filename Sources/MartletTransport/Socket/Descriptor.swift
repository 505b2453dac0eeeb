import CLinux
import Glibc

/// A socket's descriptor before it is registered with a loop; closes it unless it is handed on.
///
/// Epoll reports a socket that is neither connected nor listening as hung up, so registering comes last.
package struct Descriptor: ~Copyable {
    /// The number.
    package let number: Int32

    /// Opens a non-blocking, close-on-exec stream socket.
    init(_ family: SocketAddress.Family) throws(SystemError) {
        let domain =
            switch family {
            case .ipv4: AF_INET
            case .ipv6: AF_INET6
            case .unix: AF_UNIX
            }
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        try self.init(opening: { socket(domain, type, 0) })
    }

    /// Takes over what a call opens, as long as there are descriptors to spare.
    package init(opening open: () -> Int32) throws(SystemError) {
        let opened = open()
        guard opened >= 0 else { throw SystemError(operation: "socket", code: errno) }
        // Descriptors have the lowest number that is free, so a high one says how few are left.
        guard opened < Descriptor.numberLimit else {
            close(opened)
            throw SystemError(operation: "socket", code: EMFILE)
        }
        number = opened
    }

    /// Below which the numbers of sockets stay: the last eight descriptors of the process, or the last eighth of few,
    /// are left to files, name resolution and the runtime. Swift's (libdispatch) looks once a second into a file of each
    /// of its threads, and ends the process where it cannot open one.
    private static var numberLimit: Int32 {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return .max }
        return Int32(clamping: limit.rlim_cur - min(8, limit.rlim_cur / 8))
    }

    deinit { close(number) }

    /// Hands the number on, and with it the closing.
    package consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }

    /// Registers the socket, which owns the descriptor from now on, and closes it where that fails.
    consuming func register(with loop: EventLoop) throws(SystemError) -> Socket {
        let number = number
        discard self
        return try Socket(adopting: number, loop: loop)
    }

    /// Sets an option that takes a number.
    func setOption(_ level: Int32, _ name: Int32, _ value: Int32) throws(SystemError) {
        var value = value
        guard unsafe setsockopt(number, level, name, &value, socklen_t(MemoryLayout<Int32>.size)) == 0 else {
            throw SystemError(operation: "setsockopt", code: errno)
        }
    }

    /// Binds to an address.
    func bind(to address: SocketAddress) throws(SystemError) {
        guard unsafe address.withKernelForm({ unsafe Glibc.bind(number, $0, $1) }) == 0 else {
            throw SystemError(operation: "bind(\(address))", code: errno)
        }
    }

    /// Starts to connect.
    func connect(to address: SocketAddress) throws(SystemError) {
        let (_, code) = Socket.retrying {
            Int(unsafe address.withKernelForm { unsafe Glibc.connect(number, $0, $1) })
        }
        guard code == 0 || code == EINPROGRESS || code == EALREADY else {
            throw SystemError(operation: "connect", code: code)
        }
    }
}

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
    public var description: String { "\(operation): \(SystemError.text(of: code)) (errno \(code))" }

    /// What the C library says of an errno.
    static func text(of code: Int32) -> String {
        unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            guard let base = buffer.baseAddress else { return "unknown error" }
            guard unsafe strerror_r(code, base, buffer.count) == 0 else { return "unknown error" }
            return unsafe String(cString: base)
        }
    }
}

/// Who is told when something happens on a stream that nobody uses.
package protocol IdleWatcher: AnyObject, Sendable {
    /// Something has come, or the peer has left. Called on the loop's thread, or by whoever sets the watch.
    func idleStreamStirred()
}

/// A watcher that calls a closure.
final class IdleClosure: IdleWatcher {
    private let closure: @Sendable () -> Void

    init(_ closure: @escaping @Sendable () -> Void) { self.closure = closure }

    func idleStreamStirred() { closure() }
}
