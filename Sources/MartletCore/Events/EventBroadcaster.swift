public import Synchronization

/// A broadcaster of events, such as those of a session, to its subscribers.
package final class EventBroadcaster<Event: Sendable>: Sendable {
    private struct State {
        var queues: [UInt64: EventQueue<Event>] = [:]
        var last: UInt64 = 0
        var isEnded = false
    }

    /// The number of subscribers, readable without a lock.
    private let subscriberCount = Atomic<Int>(0)
    /// The lock on the state, used by emitters of events, and by subscribers that are added and removed.
    private let state = Mutex(State())

    package init() {}

    /// Whether there is a subscriber. Calls that start without one emit no events.
    var isWatched: Bool { count > 0 }
    var count: Int { subscriberCount.load(ordering: .relaxed) }

    /// Passes an event to each subscriber.
    package func emit(_ event: Event) {
        guard isWatched else { return }
        let queues = state.withLock { $0.queues }
        for queue in queues.values { queue.append(event) }
    }

    /// Adds a subscriber's queue, and returns its number. A queue that is added after the end is ended immediately.
    fileprivate func add(_ queue: EventQueue<Event>) -> UInt64 {
        let number = state.withLock { state -> UInt64? in
            guard !state.isEnded else { return nil }
            state.last += 1
            state.queues[state.last] = queue
            subscriberCount.store(state.queues.count, ordering: .relaxed)
            return state.last
        }
        if number == nil { queue.end() }
        return number ?? 0
    }

    fileprivate func remove(_ number: UInt64) {
        state.withLock { state in
            state.queues[number] = nil
            subscriberCount.store(state.queues.count, ordering: .relaxed)
        }
    }

    /// Ends the sequences of all subscribers, also of later ones.
    /// - Parameter last: The last event that they receive.
    package func end(with last: Event? = nil) {
        let queues = state.withLock { state in
            state.isEnded = true
            defer { state.queues = [:] }
            subscriberCount.store(0, ordering: .relaxed)
            return state.queues
        }
        for queue in queues.values {
            if let last { queue.append(last) }
            queue.end()
        }
    }
}

/// The events that a subscriber has not received. The oldest event is dropped when the queue is full.
package final class EventQueue<Event: Sendable>: Sendable {
    private struct State {
        var events = FIFOQueue<Event>()
        var droppedCount = 0
        var isEnded = false
    }

    private let limit: Int
    /// The function that creates the event for the number of dropped events.
    private let dropped: @Sendable (Int) -> Event
    private let state = GuardedState(State())

    /// Creates a queue.
    /// - Parameters:
    ///   - limit: The maximum number of events; at least 1.
    ///   - dropped: Creates the event that reports the number of dropped events.
    package init(limit: Int, dropped: @escaping @Sendable (Int) -> Event) {
        self.limit = max(1, limit)
        self.dropped = dropped
    }

    package func append(_ event: Event) {
        state.change { state in
            guard !state.isEnded else { return }
            if state.events.count == limit {
                state.events.popFirst()
                state.droppedCount += 1
            }
            state.events.append(event)
        }
    }

    /// Ends the queue after its last event.
    func end() { state.change { $0.isEnded = true } }

    /// Returns the oldest event, or waits for one; `nil` at the end, or if none is buffered and the task is cancelled.
    package func next() async -> Event? {
        let event = await state.next { state -> Event?? in
            if state.droppedCount > 0 {
                defer { state.droppedCount = 0 }
                return dropped(state.droppedCount)
            }
            if let event = state.events.popFirst() { return event }
            return state.isEnded ? .some(nil) : nil
        }
        return event ?? nil
    }
}

/// A subscriber's reference to its queue. When the last reference is released, the broadcaster removes the queue.
package final class EventSubscription<Event: Sendable>: Sendable {
    package let queue: EventQueue<Event>
    private let hub: EventBroadcaster<Event>
    private let number: UInt64

    package init(hub: EventBroadcaster<Event>, limit: Int, dropped: @escaping @Sendable (Int) -> Event) {
        queue = EventQueue(limit: limit, dropped: dropped)
        self.hub = hub
        number = hub.add(queue)
    }

    deinit { hub.remove(number) }
}

/// Events in order as an `AsyncSequence`, which is one subscription. Releasing its last copy and iterator ends it.
///
/// The subscription starts with the creation of the sequence. The sequence ends when no more events can follow; in a
/// cancelled task as soon as no event is buffered. Tasks that iterate one sequence share its events.
public struct EventSequence<Event: Sendable>: AsyncSequence, Sendable {
    /// The type of the events.
    public typealias Element = Event
    /// Iteration does not fail.
    public typealias Failure = Never

    private let take: @Sendable () async -> Event?

    /// Creates a sequence.
    /// - Parameter take: Returns the next event; `nil` at the end. The closure retains the subscription.
    @usableFromInline package init(_ take: @escaping @Sendable () async -> Event?) { self.take = take }

    /// An iterator over the events.
    public struct Iterator: AsyncIteratorProtocol {
        let take: @Sendable () async -> Event?

        /// Returns the next event; `nil` after the last one, or if none is buffered and the task is cancelled.
        public mutating func next() async -> Event? { await take() }

        /// Returns the next event; `nil` after the last one, or if none is buffered and the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Event? { await take() }
    }

    /// Returns an iterator that shares the events with all other iterators of the sequence.
    public func makeAsyncIterator() -> Iterator { Iterator(take: take) }
}

/// A broadcaster that also delivers past events to new subscribers.
///
/// New subscribers first receive the last 256 events, or fewer if these exceed a weight limit. The code is inlinable,
/// so that it is specialized in the modules that use it often, such as downloads.
@usableFromInline package final class ReplayingEventBroadcaster<Event: Sendable>: Sendable {
    @usableFromInline struct State {
        @usableFromInline var past: [Event]
        @usableFromInline var pastWeight: Int
        @usableFromInline var subscribers: [(number: UInt64, mailbox: Mailbox<Event>)]
        @usableFromInline var lastNumber: UInt64
        @usableFromInline var isEnded: Bool

        @inlinable init() { (past, pastWeight, subscribers, lastNumber, isEnded) = ([], 0, [], 0, false) }
    }

    /// A subscriber's reference to its mailbox. The broadcaster removes the mailbox when the last one is released.
    @usableFromInline final class Subscription: Sendable {
        @usableFromInline let mailbox: Mailbox<Event>
        @usableFromInline let end: @Sendable () -> Void

        @inlinable init(_ mailbox: Mailbox<Event>, end: @escaping @Sendable () -> Void) {
            (self.mailbox, self.end) = (mailbox, end)
        }

        @inlinable deinit { end() }
    }

    /// The maximum number of past events that new subscribers receive.
    @inlinable package static var pastLimit: Int { 256 }

    /// The lock on the state, used by emitters of events, and by subscribers that are added and removed.
    @usableFromInline let state: Mutex<State>
    /// The weight of an event; `nil` if events have no weight.
    @usableFromInline let weight: (@Sendable (Event) -> Int)?
    @usableFromInline let weightLimit: Int

    /// Creates a broadcaster without events.
    /// - Parameters:
    ///   - weightLimit: The maximum total weight of the past events; the latest event is always retained.
    ///   - weight: The weight of an event, such as the number of its bytes.
    @inlinable package init(weightLimit: Int = .max, weight: (@Sendable (Event) -> Int)? = nil) {
        (self.weightLimit, self.weight) = (weightLimit, weight)
        state = Mutex(State())
    }

    @inlinable deinit { end() }

    /// The past events that new subscribers receive.
    @inlinable package var pastEvents: [Event] { state.withLock { $0.past } }

    /// Adds an event.
    @inlinable package func add(_ event: Event) {
        let waiters = state.withLock { state -> [Waiter<Event?>] in
            guard !state.isEnded else { return [] }
            state.past.append(event)
            if let weight { state.pastWeight += weight(event) }
            while state.past.count > ReplayingEventBroadcaster.pastLimit
                || (state.pastWeight > weightLimit && state.past.count > 1)
            {
                let oldest = state.past.removeFirst()
                if let weight { state.pastWeight -= weight(oldest) }
            }
            // Under the lock, so that all subscribers receive the same order.
            return state.subscribers.compactMap { $0.mailbox.post(event) }
        }
        for waiter in waiters { waiter.resume(returning: event) }
    }

    /// Ends the sequences of all subscribers after their last events.
    @inlinable package func end() {
        let subscribers = state.withLock { state in
            state.isEnded = true
            defer { state.subscribers = [] }
            return state.subscribers
        }
        for subscriber in subscribers { subscriber.mailbox.close() }
    }

    /// Creates a subscription, which starts with the past events.
    @inlinable package func subscribe() -> EventSequence<Event> {
        let mailbox = Mailbox<Event>()
        let number = state.withLock { state -> UInt64 in
            for event in state.past { mailbox.send(event) }
            guard !state.isEnded else {
                mailbox.close()
                return 0
            }
            state.lastNumber += 1
            state.subscribers.append((state.lastNumber, mailbox))
            return state.lastNumber
        }
        // The broadcaster is not retained: its release ends the sequence.
        let subscription = Subscription(mailbox) { [weak self] in self?.forget(number) }
        return EventSequence { await subscription.mailbox.next() }
    }

    @inlinable func forget(_ number: UInt64) {
        // The mailbox is released outside of the lock: this may be its last reference.
        _ = state.withLock { state in
            state.subscribers.firstIndex { $0.number == number }.map { state.subscribers.remove(at: $0) }
        }
    }
}
