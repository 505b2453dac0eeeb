@testable import MartletTransport

/// An address without a network: `6a` and `6b` are IPv6, and all others are IPv4.
struct FakeAddress: RaceAddress, ExpressibleByStringLiteral, CustomStringConvertible {
    let name: String

    init(_ name: String) {
        self.name = name
    }

    init(stringLiteral name: String) {
        self.name = name
    }

    var isIPv4: Bool { !isIPv6 }
    var isIPv6: Bool { name.hasPrefix("6") }
    var description: String { name }
}
