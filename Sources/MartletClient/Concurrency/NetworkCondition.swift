/// What the network is like, as far as it matters to how much is asked of it at once.
public enum NetworkCondition: String, Hashable, Codable, Sendable, CaseIterable {
    /// A cable, or whatever else costs nothing by the byte and has room to spare.
    case unmetered
    /// A wireless network that costs nothing by the byte.
    case wifi
    /// A mobile network, or any other that is expensive: little room, and each connection takes a share of it.
    case mobile
    /// Nobody has said; a session's condition until somebody does.
    case unknown
}
