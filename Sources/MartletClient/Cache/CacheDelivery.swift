/// An answer of a call that may have two: what is stored, and what the network says of it.
public struct CacheDelivery: Sendable {
    /// The answer.
    public let exchange: HTTPExchange
    /// Whether it is what was stored, as it was.
    public var isFromCache: Bool { exchange.source == .cache || exchange.source == .staleCache }
    /// Whether another may follow: this is a preview of what the network is being asked about.
    public let isPreview: Bool
}
