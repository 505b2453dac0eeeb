public import MartletTransport

/// Whether a host can be reached from this machine, as far as was looked.
public struct HostReachability: Hashable, Codable, Sendable, CustomStringConvertible {
    /// Whether it can be reached.
    public enum Status: String, Hashable, Codable, Sendable, CaseIterable {
        /// There is a route to it, and where it was asked for, a connection was accepted.
        case reachable
        /// There is no route to any of its addresses, no address, or no connection.
        case unreachable
        /// It is not known: the kernel does not say, or the look was ended before it was over.
        case unknown
    }

    /// Whether it can be reached.
    public var status: Status

    /// The interface by which it is reached; `nil` where it is not, or the kernel does not say.
    public var interface: NetworkInterface?

    /// The address that was found to be reachable; `nil` for none.
    public var address: String?

    /// Whether a connection was made, and not the route alone looked at.
    public var isProbed: Bool

    /// Whether it can be reached, as far as is known.
    public var isReachable: Bool { status == .reachable }

    /// What was found.
    public init(
        _ status: Status, interface: NetworkInterface? = nil, address: String? = nil, isProbed: Bool = false
    ) {
        self.status = status
        self.interface = interface
        self.address = address
        self.isProbed = isProbed
    }

    /// Such as `reachable at 192.0.2.1 by wlan0 (wifi)`.
    public var description: String {
        var text = status.rawValue
        if let address { text += " at \(address)" }
        if let interface { text += " by \(interface.name) (\(interface.kind.rawValue))" }
        return text
    }
}
