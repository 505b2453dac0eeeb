/// A network interface as a path leads over it.
public struct NetworkInterface: Hashable, Codable, Sendable {
    /// What an interface is, underneath whatever is built on it.
    public enum Kind: String, Hashable, Codable, Sendable, CaseIterable {
        /// A cable, a virtual one, or anything that is known to be none of the others.
        case wired
        /// A wireless network (IEEE 802.11).
        case wifi
        /// A mobile network.
        case mobile
        /// The machine's way to itself.
        case loopback
    }

    /// Its name, such as `eth0`.
    public var name: String

    /// The kernel's number for it.
    public var index: UInt32

    /// What it is; of a tunnel, what is underneath.
    public var kind: Kind

    /// Whether it is a tunnel, such as that of a virtual private network.
    public var isTunnel: Bool

    /// Whether bytes over it cost money or are few; mobile networks, unless told otherwise.
    public var isExpensive: Bool

    /// The addresses of this machine on it that reach beyond the link, in ascending order; those that are still being tried
    /// for doubles are not among them.
    public var addresses: [String]

    /// An interface.
    /// - Parameter isExpensive: By default, as its kind is.
    public init(
        name: String, index: UInt32 = 0, kind: Kind, isTunnel: Bool = false, isExpensive: Bool? = nil,
        addresses: [String] = []
    ) {
        self.name = name
        self.index = index
        self.kind = kind
        self.isTunnel = isTunnel
        self.isExpensive = isExpensive ?? (kind == .mobile)
        self.addresses = addresses
    }
}
