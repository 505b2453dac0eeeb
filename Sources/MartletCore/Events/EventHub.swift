import DequeModule
import MartletTransport
import Synchronization

/// Where events of one kind, such as a session's, come together, and from where they go to its subscribers.
package final class EventHub<Event: Sendable>: Sendable {
    private struct State {
        var queues: [UInt64: EventQueue<Event>] = [:]
        var last: UInt64 = 0
        var isEnded = false
    }

    package init() {}

    /// How many subscribers there are, for a look without a lock.
    private let subscriberCount = Atomic<Int>(0)
    /// Guards the above: those to whom something happens, and subscribers that come and go.
    private let state = Mutex(State())

    /// Whether anybody listens. Calls that begin while nobody does make no events.
    var isWatched: Bool { count > 0 }

    /// How many subscribers there are.
    var count: Int { subscriberCount.load(ordering: .relaxed) }

    /// Hands an event to each subscriber.
    package func tell(_ event: Event) {
        guard isWatched else { return }
        let queues = state.withLock { $0.queues }
        for queue in queues.values { queue.append(event) }
    }

    /// Adds a subscriber's queue, and returns its number; one that comes too late is at its end.
    func add(_ queue: EventQueue<Event>) -> UInt64 {
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

    /// Forgets a subscriber.
    func remove(_ number: UInt64) {
        state.withLock { state in
            state.queues[number] = nil
            subscriberCount.store(state.queues.count, ordering: .relaxed)
        }
    }

    /// Ends the sequences of all subscribers, those that come later too.
    /// - Parameter last: What they are told last.
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

/// The events that a subscriber has not taken yet; the oldest is dropped when there are too many.
package final class EventQueue<Event: Sendable>: Sendable {
    private struct State {
        var events: Deque<Event> = []
        var droppedCount = 0
        var isEnded = false
        var waiters: [UInt64: Waiter<Void>] = [:]
        var lastWaiter: UInt64 = 0
    }

    private let limit: Int
    /// Makes the event that says how many were dropped.
    private let dropped: @Sendable (Int) -> Event
    /// Guards the above: those to whom something happens, and the subscriber's tasks.
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: How many events are kept; at least 1.
    ///   - dropped: Makes the event that says how many were dropped.
    package init(limit: Int, dropped: @escaping @Sendable (Int) -> Event) {
        self.limit = max(1, limit)
        self.dropped = dropped
    }

    package func append(_ event: Event) {
        wake { state in
            guard !state.isEnded else { return }
            if state.events.count == limit {
                state.events.removeFirst()
                state.droppedCount += 1
            }
            state.events.append(event)
        }
    }

    /// Ends it behind what is in it.
    func end() { wake { $0.isEnded = true } }

    private func wake(_ change: (inout State) -> Void) {
        let waiters = state.withLock { state -> [UInt64: Waiter<Void>] in
            change(&state)
            guard !state.waiters.isEmpty else { return [:] }
            defer { state.waiters = [:] }
            return state.waiters
        }
        for waiter in waiters.values { waiter.resume(returning: ()) }
    }

    /// The oldest event; waits for one. `nil` at the end, or when the task is cancelled.
    package func next() async -> Event? {
        while true {
            let (event, isOver) = state.withLock { state -> (Event?, Bool) in
                guard state.droppedCount > 0 else { return (state.events.popFirst(), state.isEnded) }
                defer { state.droppedCount = 0 }
                return (dropped(state.droppedCount), state.isEnded)
            }
            if let event { return event }
            if isOver || Task.isCancelled { return nil }
            let number = state.withLock { state in
                state.lastWaiter += 1
                return state.lastWaiter
            }
            await withTaskCancellationHandler {
                await suspend { (waiter: Waiter<Void>) in
                    let isLate = state.withLock { state in
                        if !state.events.isEmpty || state.isEnded || Task.isCancelled { return true }
                        state.waiters[number] = waiter
                        return false
                    }
                    if isLate { waiter.resume(returning: ()) }
                }
            } onCancel: {
                let waiter = state.withLock { $0.waiters.removeValue(forKey: number) }
                waiter?.resume(returning: ())
            }
        }
    }
}

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
        public mutating func next() async -> Event? { await take() }

        /// The next event; `nil` behind the last one, or, where there is none, when the task is cancelled.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Event? { await take() }
    }

    /// A pass that goes on where the others are.
    public func makeAsyncIterator() -> Iterator { Iterator(take: take) }
}
