/// An address that can take part in a ``ConnectRaceMachine``: a resolved IPv4 or IPv6 address with its port.
package protocol RaceAddress: Hashable, Sendable {
    /// Whether the address is one of IPv6; else it is one of IPv4.
    var isIPv6: Bool { get }
}
