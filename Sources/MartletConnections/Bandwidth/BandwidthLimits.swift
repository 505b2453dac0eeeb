/// How fast the bodies of a session may go, all together and for each host.
///
/// Counted are the bytes of bodies as they are on the wire, without heads and chunk framing. What is held back is not read,
/// or not written: the peer is held by the TCP window (RFC 9293 §3.8.6), and no idle clock runs meanwhile; the total clock
/// does. Transfers take turns, so that none is starved by another.
public struct BandwidthLimits: Hashable, Sendable, Codable {
    /// All transfers together.
    public var total: BandwidthLimit
    /// The transfers with one host, whatever its ports; each host by itself.
    public var perHost: BandwidthLimit

    /// Limits; none by default.
    public init(total: BandwidthLimit = .none, perHost: BandwidthLimit = .none) {
        self.total = total
        self.perHost = perHost
    }

    /// Nothing is held back.
    public static let none = BandwidthLimits()
}
