package import MartletTransport

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
        let allUsable = Set(held.filter { (links[$0.link]?.flags ?? 0) & 1 != 0 }.map(\.address))
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

    private static func rank(_ way: Way) -> UInt64 { UInt64(way.metric) | (way.isMain ? 0 : 1 << 32) }

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

/// What is known of the network at one moment.
package struct NetworkView: Hashable, Sendable {
    /// The path.
    package var path: NetworkPath
    /// All addresses of this machine, those of links that are down included; `nil` where they are not known.
    package var addresses: Set<IPAddress>?

    /// A view.
    package init(path: NetworkPath, addresses: Set<IPAddress>? = nil) {
        self.path = path
        self.addresses = addresses
    }

    /// Nothing is known.
    package static let unknown = NetworkView(path: .unknown)
}
