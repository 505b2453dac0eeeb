/// A network interface on a path.
public struct NetworkInterface: Hashable, Codable, Sendable {
    /// The kind of an interface; for virtual interfaces, the kind of the interface below.
    public enum Kind: String, Hashable, Codable, Sendable, CaseIterable {
        /// A wired or virtual interface, or any interface of no other known kind.
        case wired
        /// A wireless network (IEEE 802.11).
        case wifi
        /// A mobile network.
        case mobile
        /// The loopback interface.
        case loopback
    }

    /// The name, such as `eth0`.
    public var name: String
    /// The kernel's number of the interface.
    public var index: UInt32
    /// The kind; of a tunnel, that of the interface below.
    public var kind: Kind
    /// Whether the interface is a tunnel, such as that of a virtual private network.
    public var isTunnel: Bool
    /// Whether traffic costs money or is limited; by default only for mobile networks.
    public var isExpensive: Bool
    /// The usable addresses of the interface, sorted as text, without link-local ones.
    public var addresses: [String]

    /// Creates an interface.
    /// - Parameter isExpensive: Whether traffic is expensive; `nil` (the default) for the default of the kind.
    public init(
        name: String, index: UInt32 = 0, kind: Kind, isTunnel: Bool = false, isExpensive: Bool? = nil,
        addresses: [String] = []
    ) {
        (self.name, self.index, self.kind, self.isTunnel) = (name, index, kind, isTunnel)
        self.isExpensive = isExpensive ?? (kind == .mobile)
        self.addresses = addresses
    }
}

/// Properties of an interface that override those that the machine reports.
public struct InterfaceOverride: Hashable, Codable, Sendable {
    /// The kind; `nil` for the machine's.
    public var kind: NetworkInterface.Kind?
    /// Whether traffic is expensive; `nil` for the default of the kind.
    public var isExpensive: Bool?

    /// Creates an override.
    public init(kind: NetworkInterface.Kind? = nil, isExpensive: Bool? = nil) {
        (self.kind, self.isExpensive) = (kind, isExpensive)
    }
}

extension [String: InterfaceOverride] {
    /// Returns the override of an interface: by its name, else by the longest matching key with a star at the end.
    func override(of name: String) -> InterfaceOverride {
        if !name.hasSuffix("*"), let exact = self[name] { return exact }
        let pattern = keys.filter { $0.hasSuffix("*") && name.hasPrefix($0.dropLast()) }.max {
            ($0.utf8.count, $1) < ($1.utf8.count, $0)
        }
        return pattern.flatMap { self[$0] } ?? InterfaceOverride()
    }
}

/// The properties of an interface in the kernel's files (`/sys/class/net/NAME`).
package struct InterfaceTraits: Hashable, Sendable {
    /// Whether the interface is marked as IEEE 802.11.
    var isWireless = false
    /// The device type of the driver, such as `wwan`.
    var deviceType: String?

    /// Returns the device type in the contents of `uevent`, whose line is `DEVTYPE=wwan`.
    static func deviceType(inEvent bytes: [UInt8]) -> String? { KernelFile.text(after: "DEVTYPE=", in: bytes) }
}
