import CMartletLinux
import Glibc
import MartletTransport

/// Calls on a socket of the kernel's routing family (`NETLINK_ROUTE`).
enum NetlinkSocket {
    /// The outcome of an attempt to receive.
    enum Reception {
        /// A datagram of the kernel.
        case datagram([UInt8])
        /// A datagram of another process, or one that did not fit; or datagrams were lost.
        case lost
        /// No datagram, or none in time.
        case nothing
        case failed(SystemError)
    }

    /// The size of the receive buffer, above the 32 KiB of the kernel's largest datagrams.
    private static let receiveCount = 65_536

    /// Opens a socket.
    /// - Parameters:
    ///   - groups: The notification groups to receive, as bits.
    ///   - isBlocking: Whether receiving blocks, with a timeout.
    static func open(groups: UInt32 = 0, isBlocking: Bool) throws(SystemError) -> Int32 {
        let flags = SOCK_RAW.rawValue | SOCK_CLOEXEC.rawValue | (isBlocking ? 0 : SOCK_NONBLOCK.rawValue)
        let descriptor = try Descriptor(opening: { socket(AF_NETLINK, Int32(flags), NETLINK_ROUTE) })
        if isBlocking {
            // The kernel creates its response during the request; this timeout is only a safeguard.
            var time = timeval(tv_sec: 10, tv_usec: 0)
            _ = unsafe setsockopt(
                descriptor.number, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        }
        var address = sockaddr_nl()
        address.nl_family = sa_family_t(AF_NETLINK)
        address.nl_groups = groups
        let bound = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor.number, $0, socklen_t(MemoryLayout<sockaddr_nl>.size))
            }
        }
        guard bound == 0 else { throw SystemError(operation: "bind(AF_NETLINK)", code: errno) }
        return descriptor.release()
    }

    static func send(_ bytes: [UInt8], on descriptor: Int32) throws(SystemError) {
        let (_, code) = Socket.retrying {
            unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
            }
        }
        guard code == 0 else { throw SystemError(operation: "send(AF_NETLINK)", code: code) }
    }

    static func receive(on descriptor: Int32) -> Reception {
        unsafe withUnsafeTemporaryAllocation(byteCount: receiveCount, alignment: 16) { buffer in
            var sender = sockaddr_nl()
            let (count, code) = Socket.retrying {
                unsafe withUnsafeMutablePointer(to: &sender) { pointer in
                    unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                        var length = socklen_t(MemoryLayout<sockaddr_nl>.size)
                        return unsafe recvfrom(
                            descriptor, buffer.baseAddress, buffer.count, Int32(MSG_TRUNC), $0, &length)
                    }
                }
            }
            switch code {
            case 0: break
            case EAGAIN: return .nothing
            case ENOBUFS: return .lost
            default: return .failed(SystemError(operation: "recv(AF_NETLINK)", code: code))
            }
            // Other processes can write to such sockets, too.
            guard count <= buffer.count, sender.nl_pid == 0 else { return .lost }
            return .datagram(unsafe Array(buffer.prefix(count)))
        }
    }
}
