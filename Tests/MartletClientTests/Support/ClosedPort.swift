import Glibc

/// A loopback port that refuses connections while this object lives.
///
/// The port of a stopped server could be reused by another process at any moment.
final class ClosedPort: Sendable {
    /// The shared port of the process.
    static let shared = Result { try ClosedPort() }
    /// The port number.
    let number: Int
    private let descriptor: Int32

    /// No port is available.
    struct NoPort: Error {}

    /// Reserves a port.
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

    /// The URL of the port, such as `http://127.0.0.1:49152/`.
    var url: String { "http://127.0.0.1:\(number)/" }
}
