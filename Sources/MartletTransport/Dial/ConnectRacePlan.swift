/// The order in which the addresses of a host are tried (RFC 8305 §4).
///
/// Addresses of both families take turns, so that one broken family delays a connection by one attempt only.
/// Addresses that failed recently come last, taking turns among themselves. An address that is named twice is
/// tried once.
package enum ConnectRacePlan {
    /// Orders addresses.
    ///
    /// - Parameters:
    ///   - addresses: What the resolver returned, best first.
    ///   - isAvoided: Whether an address failed recently.
    /// - Returns: At most `settings.addressLimit` addresses; none when the families allow none.
    package static func order<Address: RaceAddress>(
        _ addresses: [Address], settings: ConnectRaceSettings, avoiding isAvoided: (Address) -> Bool
    ) -> [Address] {
        var seen: Set<Address> = []
        let usable = addresses.filter { address in
            switch settings.families {
            case .any: seen.insert(address).inserted
            case .ipv4Only: !address.isIPv6 && seen.insert(address).inserted
            case .ipv6Only: address.isIPv6 && seen.insert(address).inserted
            }
        }
        guard let first = usable.first else { return [] }
        let startsWithIPv6 =
            switch settings.firstFamily {
            case .ipv6: true
            case .ipv4: false
            case .asResolved: first.isIPv6
            }
        var fresh: [Address] = []
        var avoided: [Address] = []
        for address in usable {
            if isAvoided(address) { avoided.append(address) } else { fresh.append(address) }
        }
        let count = max(1, settings.firstFamilyCount)
        let order =
            interleave(fresh, startsWithIPv6: startsWithIPv6, firstCount: count)
            + interleave(avoided, startsWithIPv6: startsWithIPv6, firstCount: count)
        return Array(order.prefix(max(1, settings.addressLimit)))
    }

    /// Puts `firstCount` addresses of the first family before all others, which take turns one by one.
    private static func interleave<Address: RaceAddress>(
        _ addresses: [Address], startsWithIPv6: Bool, firstCount: Int
    ) -> [Address] {
        let first = addresses.filter { $0.isIPv6 == startsWithIPv6 }
        let second = addresses.filter { $0.isIPv6 != startsWithIPv6 }
        var order = Array(first.prefix(firstCount))
        var rest = first.dropFirst(firstCount)
        var others = second[...]
        while !rest.isEmpty || !others.isEmpty {
            if let address = others.popFirst() { order.append(address) }
            if let address = rest.popFirst() { order.append(address) }
        }
        return order
    }
}

/// How the addresses of a host are tried (RFC 8305, Happy Eyeballs version 2).
public struct ConnectRaceSettings: Hashable, Codable, Sendable {
    /// Which addresses are used at all.
    public enum Families: String, Hashable, Codable, Sendable {
        /// IPv6 and IPv4.
        case any
        /// IPv4 alone (curl's `-4`).
        case ipv4Only
        /// IPv6 alone (curl's `-6`).
        case ipv6Only
    }

    /// Which family is tried first.
    public enum FirstFamily: String, Hashable, Codable, Sendable {
        /// IPv6, as RFC 8305 recommends.
        case ipv6
        /// IPv4, for networks whose IPv6 is known to be bad.
        case ipv4
        /// The family of the first address the resolver returned (RFC 6724 order).
        case asResolved
    }

    /// Which addresses are used at all; both families by default.
    public var families: Families

    /// Which family is tried first; IPv6 by default.
    public var firstFamily: FirstFamily

    /// How many addresses of the first family are tried before the first of the other; at least 1, the default
    /// (RFC 8305 §4, "First Address Family Count").
    public var firstFamilyCount: Int

    /// How long an attempt has for itself before the next one is started beside it; 250 ms by default, and never
    /// less than 10 ms (RFC 8305 §5). An attempt that fails starts the next one at once.
    public var attemptDelay: Duration

    /// The most addresses of a host that are tried; at least 1; 32 by default. It keeps a name with thousands of
    /// addresses from turning one request into a port scan.
    public var addressLimit: Int

    /// Creates settings; what is not given has its default.
    public init(
        families: Families = .any, firstFamily: FirstFamily = .ipv6, firstFamilyCount: Int = 1,
        attemptDelay: Duration = .milliseconds(250), addressLimit: Int = 32
    ) {
        self.families = families
        self.firstFamily = firstFamily
        self.firstFamilyCount = firstFamilyCount
        self.attemptDelay = attemptDelay
        self.addressLimit = addressLimit
    }

    /// The delay in nanoseconds, within its range of 10 ms to an hour.
    var attemptDelayInNanoseconds: UInt64 {
        UInt64(min(max(attemptDelay, .milliseconds(10)), .seconds(3600)).wholeNanoseconds)
    }
}

/// An address that can take part in a ``ConnectRaceMachine``: a resolved IPv4 or IPv6 address with its port.
package protocol RaceAddress: Hashable, Sendable {
    /// Whether the address is one of IPv6; else it is one of IPv4.
    var isIPv6: Bool { get }
}
