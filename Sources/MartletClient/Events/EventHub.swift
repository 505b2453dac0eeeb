import Synchronization

/// Where events of one kind, such as a session's, come together, and from where they go to its subscribers.
final class EventHub<Event: Sendable>: Sendable {
    private struct State {
        var queues: [UInt64: EventQueue<Event>] = [:]
        var last: UInt64 = 0
        var isEnded = false
    }

    /// How many subscribers there are, for a look without a lock.
    private let subscriberCount = Atomic<Int>(0)
    /// Guards the above: those to whom something happens, and subscribers that come and go.
    private let state = Mutex(State())

    /// Whether anybody listens. Calls that begin while nobody does make no events.
    var isWatched: Bool { count > 0 }

    /// How many subscribers there are.
    var count: Int { subscriberCount.load(ordering: .relaxed) }

    /// Hands an event to each subscriber.
    func tell(_ event: Event) {
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
    func end(with last: Event? = nil) {
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
