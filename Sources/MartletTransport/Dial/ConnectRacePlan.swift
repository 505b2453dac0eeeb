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
