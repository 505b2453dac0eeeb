import MartletTransport
import CLinux
import Glibc

/// Calls on a socket of the kernel's routing family (`NETLINK_ROUTE`).
enum NetlinkSocket {
    /// How a try to receive ended.
    enum Reception {
        /// A datagram of the kernel's.
        case datagram([UInt8])
        /// One of somebody else's, or one that did not fit; or datagrams were lost.
        case lost
        /// There is none, or none came in time.
        case nothing
        /// The call failed.
        case failed(SystemError)
    }

    /// More than any datagram of the kernel's: its parts of an answer have 32 KiB at most.
    private static let receiveCount = 65_536

    /// Opens a socket.
    /// - Parameters:
    ///   - groups: The news to be told, as bits.
    ///   - isBlocking: Whether receiving waits, for a while.
    static func open(groups: UInt32 = 0, isBlocking: Bool) throws(SystemError) -> Int32 {
        let flags = UInt32(SOCK_RAW.rawValue) | UInt32(SOCK_CLOEXEC.rawValue)
        let type = Int32(isBlocking ? flags : flags | UInt32(SOCK_NONBLOCK.rawValue))
        let descriptor = try Descriptor(opening: { socket(AF_NETLINK, type, NETLINK_ROUTE) })
        if isBlocking {
            // The kernel puts its answer together while it is asked: this is for kernels that are broken.
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

    /// Sends a request to the kernel.
    static func send(_ bytes: [UInt8], on descriptor: Int32) throws(SystemError) {
        let (_, code) = Socket.retrying {
            unsafe bytes.withUnsafeBytes { buffer in
                unsafe Glibc.send(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL))
            }
        }
        guard code == 0 else { throw SystemError(operation: "send(AF_NETLINK)", code: code) }
    }

    /// Tries to receive a datagram.
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
            // Other processes can write to such sockets too.
            guard count <= buffer.count, sender.nl_pid == 0 else { return .lost }
            return .datagram(unsafe Array(buffer.prefix(count)))
        }
    }
}

/// The files in which the kernel tells what interfaces are: `/sys`, or a folder that looks like it.
package struct InterfaceFiles: Hashable, Sendable {
    /// The folder, `/sys` by default.
    package let root: String

    /// A folder, which need not exist.
    package init(root: String = "/sys") { self.root = root }

    /// What they say of an interface.
    ///
    /// The folder may show another network namespace than the process is in, whose interfaces may have the same names: what
    /// has another number there says nothing.
    /// - Parameter name: The kernel's names hold no slash; others have no traits.
    package func traits(of name: String, index: UInt32) -> InterfaceTraits {
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(where: { $0 == 0x2F || $0 == 0 })
        else { return InterfaceTraits() }
        let folder = "\(root)/class/net/\(name)"
        if let number = InterfaceFiles.bytes(of: "\(folder)/ifindex") {
            let text = String(decoding: number.prefix { $0 != 0x0A }, as: UTF8.self)
            guard UInt32(text) == index else { return InterfaceTraits() }
        }
        let event = InterfaceFiles.bytes(of: "\(folder)/uevent") ?? []
        return InterfaceTraits(
            isWireless: InterfaceFiles.exists("\(folder)/phy80211")
                || InterfaceFiles.exists("\(folder)/wireless"),
            deviceType: InterfaceTraits.deviceType(inEvent: event))
    }

    private static func exists(_ path: String) -> Bool { unsafe access(path, F_OK) == 0 }

    /// The first 4 KiB of a file: such files have some dozen bytes, and others are none of ours.
    private static func bytes(of path: String) -> [UInt8]? {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        let (_, code) = Socket.retrying {
            unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
                let count = unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                if count > 0 { bytes = unsafe Array(buffer.prefix(count)) }
                return count
            }
        }
        return code == 0 ? bytes : nil
    }
}
