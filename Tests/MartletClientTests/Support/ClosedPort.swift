import Glibc

/// A port of loopback where nobody listens, and nobody else can while this lives: connecting to it is refused.
///
/// The port of a server that has stopped may be given to another one at any moment.
final class ClosedPort: Sendable {
    /// One for the whole process.
    static let shared = Result { try ClosedPort() }
    /// The port.
    let number: Int
    private let descriptor: Int32

    /// The kernel has no port left.
    struct NoPort: Error {}

    /// Takes a port.
    init() throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                guard unsafe bind(descriptor, pointer, length) == 0 else { return false }
                return unsafe getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else {
            close(descriptor)
            throw NoPort()
        }
        self.descriptor = descriptor
        number = Int(UInt16(bigEndian: address.sin_port))
    }

    deinit {
        close(descriptor)
    }

    /// Where it is: `http://127.0.0.1:49152/`.
    var url: String { "http://127.0.0.1:\(number)/" }
}
