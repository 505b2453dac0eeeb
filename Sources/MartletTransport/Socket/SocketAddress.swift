import CMartletLinux
import Glibc

/// An address that a socket can connect or bind to: IPv4 or IPv6 with a port, or the path of a unix domain socket.
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    /// The family of an address.
    public enum Family: Hashable, Sendable, Codable {
        /// An IPv4 address with a port.
        case ipv4
        /// An IPv6 address with a port.
        case ipv6
        /// A unix domain socket.
        case unix
    }

    /// The kernel's form: a `sockaddr_in`, `sockaddr_in6` or `sockaddr_un`.
    let bytes: [UInt8]
    /// The family of the address.
    public let family: Family

    /// Parses an address literal.
    /// - Parameters:
    ///   - literal: Four decimal numbers with dots, or an IPv6 literal without brackets and without a zone.
    ///   - port: 0–65535; 0 lets the kernel choose when binding.
    /// - Returns: `nil` if the text is not an address.
    public init?(literal: String, port: Int) {
        guard let port = UInt16(exactly: port), !literal.utf8.contains(0) else { return nil }
        var v4 = sockaddr_in()
        var v6 = sockaddr_in6()
        if unsafe inet_pton(AF_INET, literal, &v4.sin_addr) == 1 {
            v4.sin_family = sa_family_t(AF_INET)
            v4.sin_port = port.bigEndian
            bytes = unsafe withUnsafeBytes(of: v4) { unsafe [UInt8]($0) }
            family = .ipv4
        } else if unsafe inet_pton(AF_INET6, literal, &v6.sin6_addr) == 1 {
            v6.sin6_family = sa_family_t(AF_INET6)
            v6.sin6_port = port.bigEndian
            bytes = unsafe withUnsafeBytes(of: v6) { unsafe [UInt8]($0) }
            family = .ipv6
        } else {
            return nil
        }
    }

    /// The address of a unix domain socket.
    /// - Parameter path: 1 to 107 bytes; a leading `@` means a socket in Linux's abstract namespace.
    /// - Returns: `nil` if the path is empty, too long, or contains a NUL.
    public init?(unixPath path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let capacity = MemoryLayout.size(ofValue: address.sun_path)
        var name = Array(path.utf8)
        guard !name.isEmpty, name.count < capacity, !name.contains(0) else { return nil }
        let isAbstract = name[0] == UInt8(ascii: "@")
        if isAbstract { name[0] = 0 } else { name.append(0) }
        let offset = MemoryLayout<sockaddr_un>.size - capacity
        bytes = unsafe withUnsafeBytes(of: address) { unsafe [UInt8]($0.prefix(offset)) } + name
        family = .unix
    }

    /// Creates an address from the kernel's form; `nil` for other families, and for too few bytes.
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
    public var port: Int? { family == .unix ? nil : Int(bytes[2]) << 8 | Int(bytes[3]) }

    /// The same address with another port; unchanged for a unix domain socket.
    package func withPort(_ port: UInt16) -> SocketAddress {
        guard family != .unix else { return self }
        var copy = bytes
        copy[2] = UInt8(port >> 8)
        copy[3] = UInt8(truncatingIfNeeded: port)
        return SocketAddress(kernelForm: copy) ?? self
    }

    /// The four or sixteen bytes of an IP address; empty for a unix domain socket.
    package var addressBytes: [UInt8] {
        switch family {
        case .ipv4: Array(bytes[4..<8])
        case .ipv6: Array(bytes[8..<24])
        case .unix: []
        }
    }

    /// The address without its port: `127.0.0.1`, `::1`, or the socket's path.
    public var host: String {
        guard family == .unix else { return SocketAddress.literal(of: addressBytes) }
        var name = Array(bytes.dropFirst(MemoryLayout<sa_family_t>.size))
        if name.first == 0, name.count > 1 { name[0] = UInt8(ascii: "@") }
        return String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// The text of the four or sixteen bytes of an IP address.
    fileprivate static func literal(of bytes: [UInt8]) -> String {
        if bytes.count == 4 { return bytes.map { String($0) }.joined(separator: ".") }
        return unsafe withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(INET6_ADDRSTRLEN)) { buffer in
            let text = unsafe inet_ntop(AF_INET6, bytes, buffer.baseAddress, socklen_t(INET6_ADDRSTRLEN))
            return unsafe text.map { unsafe String(cString: $0) } ?? ""
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

    /// Calls a closure with the address in the kernel's form, for a system call.
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

    /// Returns the address that a system call stores; `nil` if the call fails.
    static func filled(by body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32)
        -> SocketAddress?
    {
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

/// An IPv4 or IPv6 address without port and zone.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    package enum Family: Hashable, Sendable, CaseIterable {
        case ipv4
        case ipv6

        package var number: UInt8 { self == .ipv4 ? UInt8(AF_INET) : UInt8(AF_INET6) }

        package init?(number: UInt8) {
            guard let family = Family.allCases.first(where: { $0.number == number }) else { return nil }
            self = family
        }
    }

    /// The four or sixteen bytes.
    package let bytes: [UInt8]

    package var family: Family { bytes.count == 4 ? .ipv4 : .ipv6 }

    /// Creates an address; `nil` unless there are four or sixteen bytes.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = Array(bytes)
    }

    /// The address of a socket; `nil` for a unix domain socket.
    package init?(_ address: SocketAddress) { self.init(bytes: address.addressBytes) }

    /// Parses a literal; `nil` if the text is not an address.
    package init?(_ literal: String) {
        guard let address = SocketAddress(literal: literal, port: 0) else { return nil }
        self.init(address)
    }

    /// Parses the description of a socket's address: `192.0.2.1:80`, `[2001:db8::1]:80`; `nil` for other text.
    package init?(socket text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        self.init(String(host))
    }

    /// Whether the address is a loopback address: `127.0.0.0/8` or `::1`.
    package var isLoopback: Bool {
        family == .ipv4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    }

    /// Whether the address is valid only on one link (RFC 3927, RFC 4291 §2.5.6).
    package var isLinkLocal: Bool {
        family == .ipv4 ? bytes[0] == 169 && bytes[1] == 254 : bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
    }

    package var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }

    package var description: String { SocketAddress.literal(of: bytes) }
}

/// The bytes of an IPv6 address as groups of digits, without compression.
package enum IPv6Groups {
    /// The text for bytes in network order, such as `2001:db8:0:0:0:0:0:1`.
    package static func text(of bytes: [UInt8]) -> String {
        stride(from: 0, to: bytes.count - 1, by: 2).map {
            String(UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1]), radix: 16)
        }.joined(separator: ":")
    }
}
