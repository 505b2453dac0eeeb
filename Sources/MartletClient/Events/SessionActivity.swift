/// How many calls of a session run, as an `AsyncSequence` of newest values: what an activity indicator shows.
///
/// The first value comes at once; a slow consumer skips what it missed and is never queued for. It ends when the session
/// was invalidated and its last call has ended, or when the session is gone, which it does not keep. Any number of tasks
/// may iterate.
public struct SessionActivity: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = Int
    /// Iteration does not fail.
    public typealias Failure = Never

    let registry: CallRegistry

    /// One pass over the values.
    public struct Iterator: AsyncIteratorProtocol {
        let registry: CallRegistry
        var seen: Int?

        /// The newest number, once it is another than the one before; `nil` at the end, or when cancelled.
        public mutating func next() async -> Int? {
            guard let count = await registry.runningCount(otherThan: seen) else { return nil }
            seen = count
            return count
        }

        /// The newest number, once it is another than the one before; `nil` at the end, or when cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Int? {
            await next()
        }
    }

    /// A pass that begins with the present number.
    public func makeAsyncIterator() -> Iterator {
        Iterator(registry: registry)
    }
}
