import MartletTransport

/// The rule that determines the path and its interfaces from a table of links, addresses and routes.
package struct NetworkPathRule: Sendable {
    /// A usable default route over a link of the table.
    private struct DefaultRoute {
        var link: UInt32
        var family: IPAddress.Family
        /// The preference among the routes of a family: the lowest number is preferred.
        var rank: UInt64
        /// The source address that the route prescribes; `nil` for none.
        var source: IPAddress?
    }

    /// The maximum number of lower interfaces that are followed from one interface.
    private static let depthLimit = 8

    private let links: [UInt32: LinkRecord]
    private let addresses: [UInt32: [IPAddress]]
    private let defaultRoutes: [DefaultRoute]
    private let traits: [UInt32: InterfaceTraits]
    private let overrides: [String: InterfaceOverride]
    /// The link of the best default route that is not over a tunnel.
    private let foundation: UInt32?

    /// Creates a rule for a table.
    /// - Parameters:
    ///   - traits: The properties in the kernel's files, by the links' numbers.
    ///   - overrides: The properties that override those of the machine, by the interfaces' names.
    package init(
        _ table: NetworkTable, traits: [UInt32: InterfaceTraits] = [:], overrides: [String: InterfaceOverride] = [:]
    ) {
        let links = Dictionary(table.links.map { ($0.index, $0) }) { _, later in later }
        let usable = table.addresses.filter(\.isUsable)
        let addresses = Dictionary(grouping: usable, by: \.link).mapValues { $0.map(\.address) }
        // An address counts on any link that is up: routers have it on the loopback link.
        let sources = Set(usable.filter { (links[$0.link]?.flags ?? 0) & 1 != 0 }.map(\.address))
        defaultRoutes = NetworkPathRule.defaultRoutes(table.routes).filter { route in
            guard let link = links[route.link], link.isRunning, !link.isLoopback else { return false }
            if let source = route.source { return sources.contains(source) }
            return addresses[route.link]?.contains { $0.family == route.family } ?? false
        }
        foundation = defaultRoutes.filter { links[$0.link]?.isTunnel == false }.min { $0.rank < $1.rank }?.link
        (self.links, self.addresses, self.traits, self.overrides) = (links, addresses, traits, overrides)
    }

    /// Returns the default routes, link by link. Two routes over the same link that each cover half of the address
    /// space count as one default route: virtual private networks replace a default route in this way.
    private static func defaultRoutes(_ routes: [RouteRecord]) -> [DefaultRoute] {
        struct Half: Hashable {
            var link: UInt32
            var table: UInt32
            var family: IPAddress.Family
        }
        var defaultRoutes: [DefaultRoute] = []
        var halves: [Half: Set<Bool>] = [:]
        for route in routes where route.isUsable && route.prefixLength <= 1 {
            for hop in route.hops where hop.isAlive {
                if route.prefixLength == 1 {
                    let isUpper = (route.destination?.bytes.first ?? 0) & 0x80 != 0
                    let half = Half(link: hop.link, table: route.table, family: route.family)
                    halves[half, default: []].insert(isUpper)
                    guard halves[half]?.count == 2 else { continue }
                }
                // Other tables have a lower preference than the main one.
                let metric = route.prefixLength == 1 ? 0 : UInt64(route.metric)
                let rank = metric | (route.table == RouteRecord.mainTable ? 0 : 1 << 32)
                defaultRoutes.append(
                    DefaultRoute(link: hop.link, family: route.family, rank: rank, source: route.source))
            }
        }
        return defaultRoutes
    }

    package var path: NetworkPath {
        var ranks: [UInt32: (ipv4: UInt64, ipv6: UInt64)] = [:]
        for route in defaultRoutes {
            var rank = ranks[route.link] ?? (.max, .max)
            switch route.family {
            case .ipv4: rank.ipv4 = min(rank.ipv4, route.rank)
            case .ipv6: rank.ipv6 = min(rank.ipv6, route.rank)
            }
            ranks[route.link] = rank
        }
        let sorted = ranks.sorted { ($0.value.ipv4, $0.value.ipv6, $0.key) < ($1.value.ipv4, $1.value.ipv6, $1.key) }
        return NetworkPath(
            sorted.compactMap { interface(of: $0.key) }, supportsIPv4: defaultRoutes.contains { $0.family == .ipv4 },
            supportsIPv6: defaultRoutes.contains { $0.family == .ipv6 })
    }

    /// Returns the interface of a link; `nil` if it is not up and running.
    func interface(of index: UInt32) -> NetworkInterface? {
        guard let link = links[index], link.isRunning else { return nil }
        let layers = layers(of: index)
        return NetworkInterface(
            name: link.name, index: link.index, kind: kind(of: layers), isTunnel: link.isTunnel,
            isExpensive: layers.lazy.compactMap { overrides.override(of: $0.name).isExpensive }.first,
            addresses: (addresses[index] ?? []).map(\.description).sorted())
    }

    /// Returns a link and the links below it, the uppermost first. The first layer that has them decides kind and cost.
    private func layers(of index: UInt32) -> [LinkRecord] {
        var layers: [LinkRecord] = []
        var current = index
        while layers.count < NetworkPathRule.depthLimit, let link = links[current] {
            layers.append(link)
            guard link.isTunnel || link.isLayer else { break }
            if let lower = link.lower, links[lower] != nil {
                current = lower
            } else if link.isTunnel, let foundation, foundation != current {
                current = foundation
            } else {
                break
            }
        }
        return layers
    }

    private func kind(of layers: [LinkRecord]) -> NetworkInterface.Kind {
        for link in layers {
            if let kind = overrides.override(of: link.name).kind { return kind }
            if link.isLoopback { return .loopback }
            let own = traits[link.index] ?? InterfaceTraits()
            if own.isWireless || own.deviceType == "wlan" { return .wifi }
            if own.deviceType == "wwan" || link.driver == "wwan" || link.driver == "rmnet" { return .mobile }
        }
        return .wired
    }
}
