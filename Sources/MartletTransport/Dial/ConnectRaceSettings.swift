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
