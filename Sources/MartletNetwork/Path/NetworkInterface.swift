package import MartletTransport

/// A network interface as a path leads over it.
public struct NetworkInterface: Hashable, Codable, Sendable {
    /// What an interface is, underneath whatever is built on it.
    public enum Kind: String, Hashable, Codable, Sendable, CaseIterable {
        /// A cable, a virtual one, or anything that is known to be none of the others.
        case wired
        /// A wireless network (IEEE 802.11).
        case wifi
        /// A mobile network.
        case mobile
        /// The machine's way to itself.
        case loopback
    }

    /// Its name, such as `eth0`.
    public var name: String

    /// The kernel's number for it.
    public var index: UInt32

    /// What it is; of a tunnel, what is underneath.
    public var kind: Kind

    /// Whether it is a tunnel, such as that of a virtual private network.
    public var isTunnel: Bool

    /// Whether bytes over it cost money or are few; mobile networks, unless told otherwise.
    public var isExpensive: Bool

    /// The addresses of this machine on it that reach beyond the link, in ascending order; those that are still being tried
    /// for doubles are not among them.
    public var addresses: [String]

    /// An interface.
    /// - Parameter isExpensive: By default, as its kind is.
    public init(
        name: String, index: UInt32 = 0, kind: Kind, isTunnel: Bool = false, isExpensive: Bool? = nil,
        addresses: [String] = []
    ) {
        self.name = name
        self.index = index
        self.kind = kind
        self.isTunnel = isTunnel
        self.isExpensive = isExpensive ?? (kind == .mobile)
        self.addresses = addresses
    }
}

/// What interfaces are.
package struct InterfaceKindRule: Sendable {
    /// How far down it is looked, one interface beneath the other.
    private static let depthLimit = 8

    private let links: [UInt32: LinkRecord]
    private let traits: [UInt32: InterfaceTraits]
    private let overrides: InterfaceOverrides
    /// The link of the best default route that is none of a tunnel.
    private let foundation: UInt32?

    /// A rule for the links of a table.
    /// - Parameters:
    ///   - traits: What the files say, by the links' numbers.
    ///   - foundation: The link of the default route below all tunnels, where there is one.
    package init(
        links: [UInt32: LinkRecord], traits: [UInt32: InterfaceTraits], overrides: InterfaceOverrides,
        foundation: UInt32?
    ) {
        self.links = links
        self.traits = traits
        self.overrides = overrides
        self.foundation = foundation
    }

    /// What a link is; what is on top of another one is what that is.
    package func kind(of index: UInt32) -> NetworkInterface.Kind {
        var current = index
        for _ in 0..<InterfaceKindRule.depthLimit {
            guard let link = links[current] else { return .wired }
            if let kind = overrides[link.name].kind { return kind }
            if link.isLoopback { return .loopback }
            let own = traits[current] ?? InterfaceTraits()
            if own.isWireless || own.deviceType == "wlan" { return .wifi }
            if own.deviceType == "wwan" || link.driver == "wwan" || link.driver == "rmnet" { return .mobile }
            guard link.isTunnel || link.isLayer else { return .wired }
            if let lower = link.lower, links[lower] != nil {
                current = lower
            } else if link.isTunnel, let foundation, foundation != current {
                current = foundation
            } else {
                return .wired
            }
        }
        return .wired
    }

    /// A link as paths tell of it.
    package func interface(_ link: LinkRecord, addresses: [IPAddress]) -> NetworkInterface {
        let kind = kind(of: link.index)
        let isExpensive = overrides[link.name].isExpensive ?? (kind == .mobile)
        return NetworkInterface(
            name: link.name, index: link.index, kind: kind, isTunnel: link.isTunnel, isExpensive: isExpensive,
            addresses: addresses.map(\.description).sorted())
    }
}

/// What is said of an interface in place of what the machine says of it.
public struct InterfaceOverride: Hashable, Codable, Sendable {
    /// What it is; `nil` for what the machine says.
    public var kind: NetworkInterface.Kind?

    /// Whether it is expensive; `nil` for what its kind says.
    public var isExpensive: Bool?

    /// What is said; the rest stays as it is.
    public init(kind: NetworkInterface.Kind? = nil, isExpensive: Bool? = nil) {
        self.kind = kind
        self.isExpensive = isExpensive
    }
}

/// Which interfaces are other than the machine says, by their names.
package struct InterfaceOverrides: Hashable, Sendable {
    private let exact: [String: InterfaceOverride]
    /// Those whose names ended in a star, the longest first.
    private let prefixes: [(prefix: String, override: InterfaceOverride)]

    /// Overrides by names; a star at the end of one stands for any characters.
    package init(_ overrides: [String: InterfaceOverride] = [:]) {
        exact = overrides.filter { !$0.key.hasSuffix("*") }
        prefixes = overrides.filter { $0.key.hasSuffix("*") }
            .map { (prefix: String($0.key.dropLast()), override: $0.value) }
            .sorted { ($0.prefix.utf8.count, $1.prefix) > ($1.prefix.utf8.count, $0.prefix) }
    }

    /// What is said of an interface: by its own name, else by the longest beginning of it.
    package subscript(name: String) -> InterfaceOverride {
        exact[name] ?? prefixes.first { name.hasPrefix($0.prefix) }?.override ?? InterfaceOverride()
    }

    package static func == (left: Self, right: Self) -> Bool {
        left.exact == right.exact && left.prefixes.elementsEqual(right.prefixes, by: ==)
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(exact) }
}

/// What the files of an interface say of it (`/sys/class/net/NAME`).
package struct InterfaceTraits: Hashable, Sendable {
    /// Whether it has the marks of IEEE 802.11.
    package var isWireless = false
    /// The kind of device that its driver says, such as `wwan`.
    package var deviceType: String?

    /// Traits.
    package init(isWireless: Bool = false, deviceType: String? = nil) {
        self.isWireless = isWireless
        self.deviceType = deviceType
    }

    /// The kind that `uevent` names: its line is `DEVTYPE=wwan`.
    package static func deviceType(inEvent bytes: [UInt8]) -> String? {
        for line in bytes.split(separator: UInt8(ascii: "\n")) where line.starts(with: "DEVTYPE=".utf8) {
            return String(decoding: line.dropFirst(8), as: UTF8.self)
        }
        return nil
    }
}
