import MartletTransport

/// The states of a download: the present one first, then each newer one. Who is slow skips what it missed, and always gets
/// the last one. Cancelling the iterating task ends its iteration and touches nothing else.
public struct DownloadStates: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = DownloadState
    /// Iteration does not fail.
    public typealias Failure = Never

    let source: NewestValue<DownloadStatus.Stamped>

    /// One pass over the states.
    public struct Iterator: AsyncIteratorProtocol {
        let source: NewestValue<DownloadStatus.Stamped>
        var seen: UInt64 = 0

        /// The newest state that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next() async -> DownloadState? {
            await next(isolation: #isolation)
        }

        /// The newest state that this iterator has not given yet; `nil` after the last one, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> DownloadState? {
            guard let (version, value) = await source.next(after: seen) else { return nil }
            seen = version
            return value.state
        }
    }

    /// A pass that begins with the present state.
    public func makeAsyncIterator() -> Iterator {
        Iterator(source: source)
    }
}
