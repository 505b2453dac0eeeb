import Glibc
import SystemPackage

/// A port of 127.0.0.1 on which nobody listens, and which nobody is given by chance: who connects is refused, and an origin
/// of this process may take it.
final class HeldPort: Sendable {
    /// The port.
    let number: Int
    private let descriptor: FileDescriptor

    /// Binds a socket that does not listen.
    init() throws {
        let opened = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard opened >= 0 else { throw Errno(rawValue: errno) }
        descriptor = FileDescriptor(rawValue: opened)
        // As the origin's: of two that say so, the second may have what the first does not listen on.
        var isOn: Int32 = 1
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let optionLength = socklen_t(MemoryLayout<Int32>.size)
        let failed = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &isOn, optionLength) != 0
                    || bind(opened, generic, length) != 0
                    || getsockname(opened, generic, &length) != 0
            }
        }
        let code = errno
        number = Int(UInt16(bigEndian: address.sin_port))
        guard !failed else {
            try? descriptor.close()
            throw Errno(rawValue: code)
        }
    }

    /// Lets go of it, once an origin listens there.
    func release() {
        try? descriptor.close()
    }
}
