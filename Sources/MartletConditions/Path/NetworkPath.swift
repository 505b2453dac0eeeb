/// The connectivity of this machine at one moment.
///
/// A path does not show whether a server can be reached: a router may have lost its own connection. It is a hint for
/// automatic actions (retries, prefetching), not a reason to reject a request.
public struct NetworkPath: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The status of a path.
    public enum Status: String, Hashable, Codable, Sendable, CaseIterable {
        /// There is a route to the internet.
        case satisfied
        /// There is no route to the internet.
        case unsatisfied
        /// The kernel gives no information.
        case unknown
    }

    /// The status. It is satisfied if a default route of IPv4 or IPv6 uses an interface that is up, running and has a
    /// carrier, and the machine has an address of the same family that is not link-local.
    public var status: Status
    /// The interfaces with such routes, the preferred one first; empty if the path is not satisfied.
    public var interfaces: [NetworkInterface]
    /// Whether there is a route by IPv4.
    public var supportsIPv4: Bool
    /// Whether there is a route by IPv6.
    public var supportsIPv6: Bool

    /// Whether the preferred interface is expensive.
    public var isExpensive: Bool { interfaces.first?.isExpensive ?? false }

    /// The kind of the preferred interface; `nil` without an interface.
    public var kind: NetworkInterface.Kind? { interfaces.first?.kind }

    /// Whether the kernel reports a route to the internet.
    public var isSatisfied: Bool { status == .satisfied }

    /// The network condition of the path: ``NetworkCondition/mobile`` for any expensive interface, and
    /// ``NetworkCondition/unknown`` without an interface.
    public var condition: NetworkCondition {
        guard let interface = interfaces.first else { return .unknown }
        if interface.isExpensive { return .mobile }
        return interface.kind == .wifi ? .wifi : .unmetered
    }

    /// Creates a path of interfaces, the preferred one first. By default it is satisfied if there is an interface.
    public init(
        _ interfaces: [NetworkInterface], status: Status? = nil, supportsIPv4: Bool = true, supportsIPv6: Bool = false
    ) {
        self.status = status ?? (interfaces.isEmpty ? .unsatisfied : .satisfied)
        self.interfaces = interfaces
        self.supportsIPv4 = supportsIPv4 && !interfaces.isEmpty
        self.supportsIPv6 = supportsIPv6 && !interfaces.isEmpty
    }

    /// A path without a route.
    public static let unsatisfied = NetworkPath([])
    /// A path for which the kernel gives no information.
    public static let unknown = NetworkPath([], status: .unknown)

    /// A text such as `satisfied by wlan0 (wifi), eth0 (wired)`.
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

/// The network's condition, for the limits on concurrency.
public enum NetworkCondition: String, Hashable, Codable, Sendable, CaseIterable {
    /// A cable, or another network with enough capacity whose traffic is free.
    case unmetered
    /// A wireless network whose traffic is free.
    case wifi
    /// A mobile or other expensive network: its capacity is low, and all connections share it.
    case mobile
    /// The condition is not known, which is the initial condition of a session.
    case unknown
}
