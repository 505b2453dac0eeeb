/// How this machine is connected to the rest of the world at one moment.
///
/// It says what the machine knows, which is less than whether a server can be reached: a router may have lost its own
/// connection. It is a hint for what to do without being asked (whether to try again, how much to fetch ahead), and no reason
/// to refuse what somebody asked for.
public struct NetworkPath: Hashable, Codable, Sendable, CustomStringConvertible {
    /// Whether there is a way out.
    public enum Status: String, Hashable, Codable, Sendable, CaseIterable {
        /// There is a way.
        case satisfied
        /// There is none.
        case unsatisfied
        /// The kernel does not say.
        case unknown
    }

    /// Whether there is a way out.
    ///
    /// It is satisfied where a default route of IPv4 or IPv6 leads over an interface that is up, running and has a carrier,
    /// with an address of the same family that reaches beyond the link.
    public var status: Status

    /// The interfaces by which there is a way, that which is preferred first; empty where the path is not satisfied.
    public var interfaces: [NetworkInterface]

    /// Whether a way leads by IPv4.
    public var supportsIPv4: Bool

    /// Whether a way leads by IPv6.
    public var supportsIPv6: Bool

    /// Whether the preferred interface is expensive.
    public var isExpensive: Bool { interfaces.first?.isExpensive ?? false }

    /// What the preferred interface is; `nil` where there is none.
    public var kind: NetworkInterface.Kind? { interfaces.first?.kind }

    /// Whether there is a way out, as far as the kernel says.
    public var isSatisfied: Bool { status == .satisfied }

    /// A path by interfaces, the preferred one first: satisfied where there is one, unless it is said otherwise.
    public init(
        _ interfaces: [NetworkInterface], status: Status? = nil, supportsIPv4: Bool = true,
        supportsIPv6: Bool = false
    ) {
        self.status = status ?? (interfaces.isEmpty ? .unsatisfied : .satisfied)
        self.interfaces = interfaces
        self.supportsIPv4 = supportsIPv4 && !interfaces.isEmpty
        self.supportsIPv6 = supportsIPv6 && !interfaces.isEmpty
    }

    /// No way out.
    public static let unsatisfied = NetworkPath([])

    /// A path of which the kernel says nothing.
    public static let unknown = NetworkPath([], status: .unknown)

    /// Such as `satisfied by wlan0 (wifi), eth0 (wired)`.
    public var description: String {
        guard !interfaces.isEmpty else { return status.rawValue }
        let names = interfaces.map { interface in
            let words =
                [interface.kind.rawValue] + (interface.isTunnel ? ["tunnel"] : [])
                + (interface.isExpensive ? ["expensive"] : [])
            return "\(interface.name) (\(words.joined(separator: ", ")))"
        }
        return "\(status.rawValue) by \(names.joined(separator: ", "))"
    }
}
