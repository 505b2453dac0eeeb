import MartletTransport

/// How far a download has come: the present value first, then newer ones. Who is slow skips what it missed, and always gets
/// the last one. Cancelling the iterating task ends its iteration and touches nothing else.
public struct DownloadProgressSequence: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = DownloadProgress
    /// Iteration does not fail.
    public typealias Failure = Never

    let source: NewestValue<DownloadProgress>

    /// One pass over the values.
    public struct Iterator: AsyncIteratorProtocol {
        let source: NewestValue<DownloadProgress>
        var seen: UInt64 = 0

        /// The newest value that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next() async -> DownloadProgress? {
            await next(isolation: #isolation)
        }

        /// The newest value that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> DownloadProgress? {
            guard let (version, value) = await source.next(after: seen) else { return nil }
            seen = version
            return value
        }
    }

    /// A pass that begins with the present value.
    public func makeAsyncIterator() -> Iterator {
        Iterator(source: source)
    }
}
