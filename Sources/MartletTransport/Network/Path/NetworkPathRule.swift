/// What path a table of links, addresses and routes amounts to.
package struct NetworkPathRule: Sendable {
    /// A default route that can be used, by one of its links.
    private struct Way {
        var link: UInt32
        var family: IPAddress.Family
        /// Whether the table is the one that is asked first.
        var isMain: Bool
        var metric: UInt32
    }

    /// Which of two interfaces is preferred: the lower rank is.
    private struct Rank: Comparable {
        var ipv4: UInt64 = .max
        var ipv6: UInt64 = .max
        var index: UInt32 = 0

        static func < (left: Rank, right: Rank) -> Bool {
            (left.ipv4, left.ipv6, left.index) < (right.ipv4, right.ipv6, right.index)
        }
    }

    private let links: [UInt32: LinkRecord]
    private let usable: [UInt32: [IPAddress]]
    private let allUsable: Set<IPAddress>
    private let ways: [Way]
    private let kinds: InterfaceKindRule

    /// A rule for a table.
    /// - Parameters:
    ///   - traits: What the files say of interfaces, by the links' numbers.
    ///   - overrides: What is said in place of that.
    package init(
        _ table: NetworkTable, traits: [UInt32: InterfaceTraits] = [:],
        overrides: InterfaceOverrides = InterfaceOverrides()
    ) {
        let links = Dictionary(table.links.map { ($0.index, $0) }) { _, later in later }
        let held = table.addresses.filter(\.isUsable)
        let usable = Dictionary(grouping: held, by: \.link).mapValues { $0.map(\.address) }
        // An address counts, wherever it is, as long as its link is up: machines that route have it on the loopback link.
        let allUsable = Set(
            held.filter { (links[$0.link]?.flags ?? 0) & 1 != 0 }.map(\.address))
        let ways = NetworkPathRule.ways(table.routes).filter { way, source in
            guard let link = links[way.link], link.isRunning, !link.isLoopback else { return false }
            if let source { return allUsable.contains(source) }
            return usable[way.link]?.contains { $0.family == way.family } ?? false
        }.map(\.way)
        let foundation = ways.filter { links[$0.link]?.isTunnel == false }
            .min { NetworkPathRule.rank($0) < NetworkPathRule.rank($1) }
        self.links = links
        self.usable = usable
        self.allUsable = allUsable
        self.ways = ways
        kinds = InterfaceKindRule(
            links: links, traits: traits, overrides: overrides, foundation: foundation?.link)
    }

    /// The default routes that lead somewhere, link by link. Two halves of everywhere, by the same link, are one: virtual
    /// private networks take the place of a default route so.
    private static func ways(_ routes: [RouteRecord]) -> [(way: Way, source: IPAddress?)] {
        struct Half: Hashable {
            var link: UInt32
            var table: UInt32
            var family: IPAddress.Family
        }
        var ways: [(way: Way, source: IPAddress?)] = []
        var halves: [Half: Set<Bool>] = [:]
        for route in routes where route.isWay && route.prefixLength <= 1 {
            for hop in route.hops where hop.isAlive {
                if route.prefixLength == 1 {
                    let isUpper = (route.destination?.bytes.first ?? 0) & 0x80 != 0
                    let half = Half(link: hop.link, table: route.table, family: route.family)
                    halves[half, default: []].insert(isUpper)
                    guard halves[half]?.count == 2 else { continue }
                }
                let way = Way(
                    link: hop.link, family: route.family, isMain: route.table == RouteRecord.mainTable,
                    metric: route.prefixLength == 1 ? 0 : route.metric)
                ways.append((way: way, source: route.source))
            }
        }
        return ways
    }

    private static func rank(_ way: Way) -> UInt64 {
        UInt64(way.metric) | (way.isMain ? 0 : 1 << 32)
    }

    /// The path.
    package var path: NetworkPath {
        var ranks: [UInt32: Rank] = [:]
        for way in ways {
            var rank = ranks[way.link] ?? Rank(index: way.link)
            let own = NetworkPathRule.rank(way)
            switch way.family {
            case .ipv4: rank.ipv4 = min(rank.ipv4, own)
            case .ipv6: rank.ipv6 = min(rank.ipv6, own)
            }
            ranks[way.link] = rank
        }
        let interfaces = ranks.sorted { $0.value < $1.value }.compactMap { interface(of: $0.key) }
        return NetworkPath(
            interfaces, supportsIPv4: ways.contains { $0.family == .ipv4 },
            supportsIPv6: ways.contains { $0.family == .ipv6 })
    }

    /// The interface that a route leads over; `nil` where it is not up and running.
    package func interface(of index: UInt32) -> NetworkInterface? {
        guard let link = links[index], link.isRunning else { return nil }
        return kinds.interface(link, addresses: usable[index] ?? [])
    }
}
