/// All that happens, in order, as an `AsyncSequence`: one subscription, whose events are kept until they are taken, or the
/// last copy of the sequence and the last of its iterators are gone.
///
/// It begins where the sequence is made, and ends behind the last event when no other can come. In a task that is cancelled
/// it ends as soon as there is no event to be taken. Tasks that iterate one sequence share its events: each goes to one of
/// them.
public struct EventSequence<Event: Sendable>: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = Event
    /// Iteration does not fail.
    public typealias Failure = Never

    private let take: @Sendable () async -> Event?

    /// - Parameter take: Returns the next event; nil at the end. It holds the subscription.
    @usableFromInline
    package init(_ take: @escaping @Sendable () async -> Event?) {
        self.take = take
    }

    /// One pass over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let take: @Sendable () async -> Event?

        /// The next event; `nil` behind the last one, or, where there is none, when the task is cancelled.
        public mutating func next() async -> Event? {
            await take()
        }

        /// The next event; `nil` behind the last one, or, where there is none, when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Event? {
            await take()
        }
    }

    /// A pass that goes on where the others are.
    public func makeAsyncIterator() -> Iterator {
        Iterator(take: take)
    }
}
