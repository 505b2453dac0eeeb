import CLinux
import Glibc

/// An address a socket can be connected or bound to: IPv4 or IPv6 with a port, or a unix domain socket's path.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The family of an address.
    public enum Family: Hashable, Sendable, Codable {
        /// IPv4.
        case ipv4
        /// IPv6.
        case ipv6
        /// A unix domain socket.
        case unix
    }

    /// The kernel's own form: a `sockaddr_in`, `sockaddr_in6` or `sockaddr_un`.
    let bytes: [UInt8]

    /// The family.
    public let family: Family

    /// Parses an address literal.
    /// - Parameters:
    ///   - literal: Four decimal numbers with dots, or an IPv6 literal without brackets and without a zone.
    ///   - port: 0–65535; 0 lets the kernel choose when binding.
    /// - Returns: `nil` when the text is not an address.
    public init?(literal: String, port: Int) {
        guard let port = UInt16(exactly: port), !literal.utf8.contains(0) else { return nil }
        var v4 = sockaddr_in()
        if unsafe inet_pton(AF_INET, literal, &v4.sin_addr) == 1 {
            v4.sin_family = sa_family_t(AF_INET)
            v4.sin_port = port.bigEndian
            bytes = unsafe withUnsafeBytes(of: v4) { unsafe [UInt8]($0) }
            family = .ipv4
            return
        }
        var v6 = sockaddr_in6()
        if unsafe inet_pton(AF_INET6, literal, &v6.sin6_addr) == 1 {
            v6.sin6_family = sa_family_t(AF_INET6)
            v6.sin6_port = port.bigEndian
            bytes = unsafe withUnsafeBytes(of: v6) { unsafe [UInt8]($0) }
            family = .ipv6
            return
        }
        return nil
    }

    /// The address of a unix domain socket.
    /// - Parameter path: 1 to 107 bytes; a leading `@` names a socket in Linux's abstract space.
    /// - Returns: `nil` when the path is empty, too long, or holds a NUL.
    public init?(unixPath path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        var name = Array(path.utf8)
        guard !name.isEmpty, name.count < capacity, !name.contains(0) else { return nil }
        let isAbstract = name[0] == UInt8(ascii: "@")
        if isAbstract { name[0] = 0 }
        let offset = MemoryLayout<sockaddr_un>.size - capacity
        var bytes = unsafe withUnsafeBytes(of: address) { unsafe [UInt8]($0.prefix(offset)) }
        bytes += name
        if !isAbstract { bytes.append(0) }
        self.bytes = bytes
        family = .unix
    }

    /// From the kernel's form; `nil` for a family that is not spoken here.
    init?(kernelForm bytes: [UInt8]) {
        guard bytes.count >= MemoryLayout<sa_family_t>.size else { return nil }
        let number = UInt16(bytes[0]) | UInt16(bytes[1]) << 8
        switch Int32(number) {
        case AF_INET where bytes.count >= MemoryLayout<sockaddr_in>.size: family = .ipv4
        case AF_INET6 where bytes.count >= MemoryLayout<sockaddr_in6>.size: family = .ipv6
        case AF_UNIX: family = .unix
        default: return nil
        }
        self.bytes = bytes
    }

    /// The port; `nil` for a unix domain socket.
    public var port: Int? {
        guard family != .unix else { return nil }
        return Int(bytes[2]) << 8 | Int(bytes[3])
    }

    /// The same address with another port; itself for a unix domain socket.
    package func withPort(_ port: UInt16) -> SocketAddress {
        guard family != .unix else { return self }
        var copy = bytes
        copy[2] = UInt8(port >> 8)
        copy[3] = UInt8(truncatingIfNeeded: port)
        return SocketAddress(kernelForm: copy) ?? self
    }

    /// The address without its port: `127.0.0.1`, `::1`, or the socket's path.
    public var host: String {
        switch family {
        case .ipv4: return bytes[4..<8].map { String($0) }.joined(separator: ".")
        case .ipv6:
            return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) {
                buffer in
                let text = unsafe bytes.withUnsafeBytes { raw -> UnsafePointer<CChar>? in
                    guard let base = raw.baseAddress, let output = buffer.baseAddress else { return nil }
                    return unsafe inet_ntop(AF_INET6, base + 8, output, socklen_t(INET6_ADDRSTRLEN))
                }
                return unsafe text.map { unsafe String(cString: $0) } ?? ""
            }
        case .unix:
            var name = Array(bytes.dropFirst(MemoryLayout<sa_family_t>.size))
            if name.first == 0, name.count > 1 { name[0] = UInt8(ascii: "@") }
            if let end = name.firstIndex(of: 0) { name.removeSubrange(end...) }
            return String(decoding: name, as: UTF8.self)
        }
    }

    /// The address and its port: `127.0.0.1:80`, `[::1]:80`, or the socket's path.
    public var description: String {
        switch family {
        case .ipv4: "\(host):\(port ?? 0)"
        case .ipv6: "[\(host)]:\(port ?? 0)"
        case .unix: host
        }
    }

    /// Calls a closure with the form that system calls take.
    func withKernelForm<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        unsafe withUnsafeTemporaryAllocation(
            byteCount: max(bytes.count, 1), alignment: MemoryLayout<sockaddr_storage>.alignment
        ) { buffer in
            unsafe buffer.copyBytes(from: bytes)
            let address = unsafe buffer.bindMemory(to: sockaddr.self)
            // The allocation has room for at least one byte, so it has an address.
            return unsafe body(UnsafePointer(address.baseAddress.unsafelyUnwrapped), socklen_t(bytes.count))
        }
    }

    /// Reads an address that a system call fills in.
    static func filled(
        by body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let code = unsafe withUnsafeMutablePointer(to: &storage) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe body($0, &length) }
        }
        guard code == 0 else { return nil }
        let bytes = unsafe withUnsafeBytes(of: storage) { unsafe [UInt8]($0.prefix(Int(length))) }
        return SocketAddress(kernelForm: bytes)
    }
}

extension SocketAddress {
    /// The four or sixteen bytes of an IP address; empty for a unix domain socket.
    package var addressBytes: [UInt8] {
        switch family {
        case .ipv4: Array(bytes[4..<8])
        case .ipv6: Array(bytes[8..<24])
        case .unix: []
        }
    }
}
