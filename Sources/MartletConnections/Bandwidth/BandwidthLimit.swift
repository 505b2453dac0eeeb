/// How fast bodies may go either way; a direction without a rate is not held back.
public struct BandwidthLimit: Hashable, Sendable, Codable {
    /// Of bodies that are sent.
    public var up: BandwidthRate?
    /// Of bodies that are received.
    public var down: BandwidthRate?

    /// A limit; none by default.
    public init(up: BandwidthRate? = nil, down: BandwidthRate? = nil) {
        self.up = up
        self.down = down
    }

    /// Nothing is held back.
    public static let none = BandwidthLimit()

    /// The rate of a direction.
    package func rate(_ direction: TransferDirection) -> BandwidthRate? {
        switch direction {
        case .up: up
        case .down: down
        }
    }
}
