/// What happens in a session, as an `AsyncSequence`: one subscription, with a buffer of its own.
///
/// It begins where the sequence is made, and ends when the last copy of it and the last of its iterators are gone, which
/// leaves nothing behind. A slow subscriber holds nobody up: when its buffer is full the oldest event is dropped, and an
/// event ``SessionEvent/Kind/dropped(_:)`` says how many were, before those that follow. The sequence ends behind
/// ``SessionEvent/Kind/sessionInvalidated``, or when the session is gone, which it does not keep; what is buffered then is
/// still given. Tasks that iterate one sequence share its events: each goes to one of them.
public struct SessionEvents: AsyncSequence, Sendable {
    /// What iteration gives.
    public typealias Element = SessionEvent
    /// Iteration does not fail.
    public typealias Failure = Never

    /// How many events are buffered unless said otherwise: 256.
    public static let defaultBufferCount = 256

    private let subscription: EventSubscription<SessionEvent>

    init(hub: EventHub<SessionEvent>, limit: Int) {
        subscription = EventSubscription(hub: hub, limit: limit) { SessionEvent(.dropped($0)) }
    }

    /// One pass over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let subscription: EventSubscription<SessionEvent>

        /// The next event; `nil` behind the last one, or when the task is cancelled.
        public mutating func next() async -> SessionEvent? {
            await subscription.queue.next()
        }

        /// The next event; `nil` behind the last one, or when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> SessionEvent? {
            await subscription.queue.next()
        }
    }

    /// A pass that goes on where the others are.
    public func makeAsyncIterator() -> Iterator {
        Iterator(subscription: subscription)
    }
}

/// A subscriber's hold on its queue: with the last reference to it the hub forgets the queue.
final class EventSubscription<Event: Sendable>: Sendable {
    let queue: EventQueue<Event>
    private let hub: EventHub<Event>
    private let number: UInt64

    init(hub: EventHub<Event>, limit: Int, dropped: @escaping @Sendable (Int) -> Event) {
        queue = EventQueue(limit: limit, dropped: dropped)
        self.hub = hub
        number = hub.add(queue)
    }

    deinit {
        hub.remove(number)
    }
}
