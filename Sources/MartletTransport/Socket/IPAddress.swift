import CLinux
import Glibc

/// An IPv4 or IPv6 address without port and zone.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The version of the protocol.
    package enum Family: Hashable, Sendable, CaseIterable {
        /// IPv4.
        case ipv4
        /// IPv6.
        case ipv6

        /// The kernel's number.
        package var number: UInt8 { self == .ipv4 ? UInt8(AF_INET) : UInt8(AF_INET6) }

        /// The family of a number.
        package init?(number: UInt8) {
            switch Int32(number) {
            case AF_INET: self = .ipv4
            case AF_INET6: self = .ipv6
            default: return nil
            }
        }
    }

    /// Its four or sixteen bytes.
    package let bytes: [UInt8]

    /// The family, by the number of bytes.
    package var family: Family { bytes.count == 4 ? .ipv4 : .ipv6 }

    /// An address; `nil` where it has neither four nor sixteen bytes.
    package init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 4 || bytes.count == 16 else { return nil }
        self.bytes = Array(bytes)
    }

    /// The address of a socket; `nil` for one that is not of the internet.
    package init?(_ address: SocketAddress) {
        switch address.family {
        case .ipv4: self.init(bytes: address.bytes.dropFirst(4).prefix(4))
        case .ipv6: self.init(bytes: address.bytes.dropFirst(8).prefix(16))
        case .unix: return nil
        }
    }

    /// An address as people write it; `nil` for what is none.
    package init?(_ literal: String) {
        guard let address = SocketAddress(literal: literal, port: 0) else { return nil }
        self.init(address)
    }

    /// The address of a socket as it is described: `192.0.2.1:80`, `[2001:db8::1]:80`; `nil` for what is none.
    package init?(socket text: String) {
        guard let colon = text.lastIndex(of: ":") else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        self.init(String(host))
    }

    /// Whether it stands for this machine alone.
    package var isLoopback: Bool {
        family == .ipv4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
    }

    /// Whether it reaches no farther than the link it is on (RFC 3927, RFC 4291 §2.5.6).
    package var isLinkLocal: Bool {
        family == .ipv4 ? bytes[0] == 169 && bytes[1] == 254 : bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
    }

    /// Whether it is no address of any machine.
    package var isUnspecified: Bool { bytes.allSatisfy { $0 == 0 } }

    /// The address as people write it.
    package var description: String {
        let form =
            family == .ipv4
            ? [UInt8(AF_INET), 0, 0, 0] + bytes + [UInt8](repeating: 0, count: 8)
            : [UInt8(AF_INET6), 0, 0, 0, 0, 0, 0, 0] + bytes + [0, 0, 0, 0]
        return SocketAddress(kernelForm: form)?.host ?? ""
    }
}

/// The bytes of an IPv6 address as groups of digits, none left out.
package enum IPv6Groups {
    /// Such as `2001:db8:0:0:0:0:0:1`, of bytes in the network's order.
    package static func text(of bytes: [UInt8]) -> String {
        var groups: [String] = []
        for index in stride(from: 0, to: bytes.count - 1, by: 2) {
            let group = UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
            groups.append(String(group, radix: 16))
        }
        return groups.joined(separator: ":")
    }
}
