/// How fast a response's body is sent.
public struct OriginPacing: Sendable, Hashable {
    /// Bytes sent at once, at least 1.
    public var pieceSize: Int
    /// The pause between two pieces.
    public var interval: Duration

    /// Pieces of so many bytes with a pause between them.
    public init(pieceSize: Int, every interval: Duration) {
        self.pieceSize = max(1, pieceSize)
        self.interval = interval
    }

    /// About so many bytes a second, in at most ten pieces a second.
    public static func bytesPerSecond(_ rate: Int) -> OriginPacing {
        let rate = max(1, rate)
        return rate < 10
            ? OriginPacing(pieceSize: 1, every: .milliseconds(1000 / rate))
            : OriginPacing(pieceSize: rate / 10, every: .milliseconds(100))
    }
}
