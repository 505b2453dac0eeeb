import CLinux
import Glibc

/// A socket's descriptor before it is registered with a loop; closes it unless it is handed on.
///
/// Epoll reports a socket that is neither connected nor listening as hung up, so registering comes last.
struct Descriptor: ~Copyable {
    /// The number.
    let number: Int32

    /// Opens a non-blocking, close-on-exec stream socket.
    init(_ family: SocketAddress.Family) throws(SystemError) {
        let domain =
            switch family {
            case .ipv4: AF_INET
            case .ipv6: AF_INET6
            case .unix: AF_UNIX
            }
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        number = socket(domain, type, 0)
        guard number >= 0 else { throw SystemError(operation: "socket", code: errno) }
    }

    deinit {
        close(number)
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
