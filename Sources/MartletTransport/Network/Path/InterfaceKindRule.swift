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
