/// How far a transfer has come: a state, not an event.
public struct TransferProgress: Hashable, Sendable {
    /// Bytes of the body moved so far; for downloads before content coding is undone.
    public var completedByteCount: UInt64

    /// Bytes of the body in all; `nil` while that is not known.
    public var totalByteCount: UInt64?

    /// Whether the transfer is over: complete, failed or cancelled. No other value follows.
    public var isFinished: Bool

    /// A state.
    public init(completedByteCount: UInt64 = 0, totalByteCount: UInt64? = nil, isFinished: Bool = false) {
        self.completedByteCount = completedByteCount
        self.totalByteCount = totalByteCount
        self.isFinished = isFinished
    }

    /// The part that is done, 0 to 1; `nil` while the whole is not known. An empty body is done from the start.
    public var fractionCompleted: Double? {
        guard let totalByteCount else { return nil }
        return totalByteCount == 0 ? 1 : min(1, Double(completedByteCount) / Double(totalByteCount))
    }
}
