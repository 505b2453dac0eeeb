public import MartletClient

/// How much an ``OfflineQueue`` holds and does at once. Numbers below 1 count as 1.
public struct OfflineLimits: Hashable, Sendable {
    /// How many requests it holds, dead letters and uncertain ones included; 100,000 by default. The one beyond is refused.
    public var requests: Int
    /// How many bytes their bodies and records have together; 2 GiB by default. Files that were not copied do not count.
    public var bytes: ByteCount
    /// How many requests are sent at once, each of another lane; 6 by default.
    public var lanes: Int
    /// How much of a body is written into the record of its request; 16 KiB by default. More is a file beside it.
    public var inlineBody: ByteCount

    /// Limits; see the properties for what they are by default.
    public init(
        requests: Int = 100_000, bytes: ByteCount = .gibibytes(2), lanes: Int = 6,
        inlineBody: ByteCount = .kibibytes(16)
    ) {
        self.requests = requests
        self.bytes = bytes
        self.lanes = lanes
        self.inlineBody = inlineBody
    }
}
