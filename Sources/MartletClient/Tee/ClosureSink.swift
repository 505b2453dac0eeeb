/// A sink that hands each piece to a closure.
public struct ClosureSink: BodySink {
    private let take: @Sendable ([UInt8]) async throws -> Void

    /// A sink.
    /// - Parameter take: Called with each piece; what it throws ends the sink.
    public init(_ take: @escaping @Sendable ([UInt8]) async throws -> Void) {
        self.take = take
    }

    /// Hands the piece to the closure.
    public func write(_ piece: [UInt8]) async throws {
        try await take(piece)
    }
}
