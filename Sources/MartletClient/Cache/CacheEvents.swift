/// What happens in a cache, as an `AsyncSequence`: one subscription, with a buffer of its own.
///
/// It begins where the sequence is made, the first of a cache's with the cache itself, and ends when the last copy of it and
/// the last of its iterators are gone. A slow subscriber holds nobody up: when its buffer is full the oldest event is dropped,
/// and ``CacheEvent/dropped(_:)`` says how many were. The sequence ends when the cache is gone, which it does not keep.
public struct CacheEvents: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = CacheEvent
    /// Iteration does not fail.
    public typealias Failure = Never

    /// How many events are buffered: 256.
    public static let defaultBufferCount = 256

    private let subscription: EventSubscription<CacheEvent>

    init(_ teller: CacheTeller) {
        subscription = teller.subscribe(limit: CacheEvents.defaultBufferCount)
    }

    /// One pass over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: EventSubscription<CacheEvent>

        /// The next event; `nil` behind the last one, or when the task is cancelled.
        public mutating func next() async -> CacheEvent? {
            await subscription.queue.next()
        }

        /// The next event; `nil` behind the last one, or when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> CacheEvent? {
            await subscription.queue.next()
        }
    }

    /// A pass that goes on where the others are.
    public func makeAsyncIterator() -> Iterator {
        Iterator(subscription: subscription)
    }
}
