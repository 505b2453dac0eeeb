import MartletTransport
import Synchronization

/// The events that a subscriber has not taken yet: a ring that drops the oldest when it is full.
final class EventQueue<Event: Sendable>: Sendable {
    private struct State {
        var ring: [Event] = []
        /// The oldest, once the ring has its full size.
        var first = 0
        var count = 0
        var droppedCount = 0
        var isEnded = false
        var waiters: [UInt64: Waiter<Void>] = [:]
        var lastWaiter: UInt64 = 0

        mutating func append(_ event: Event, limit: Int) {
            if count == limit {
                ring[first] = event
                first = (first + 1) % limit
                droppedCount += 1
                return
            }
            let place = (first + count) % limit
            if place < ring.count { ring[place] = event } else { ring.append(event) }
            count += 1
        }

        mutating func take(limit: Int, dropped: (Int) -> Event) -> Event? {
            if droppedCount > 0 {
                defer { droppedCount = 0 }
                return dropped(droppedCount)
            }
            guard count > 0 else { return nil }
            let event = ring[first]
            first = (first + 1) % limit
            count -= 1
            return event
        }
    }

    private let limit: Int
    /// Makes the event that says how many were dropped.
    private let dropped: @Sendable (Int) -> Event
    /// Guards the above: those to whom something happens, and the subscriber's tasks.
    private let state = Mutex(State())

    /// - Parameters:
    ///   - limit: How many events are kept; at least 1.
    ///   - dropped: Makes the event that says how many were dropped.
    init(limit: Int, dropped: @escaping @Sendable (Int) -> Event) {
        self.limit = max(1, limit)
        self.dropped = dropped
    }

    func append(_ event: Event) {
        wake { state in
            if !state.isEnded { state.append(event, limit: limit) }
        }
    }

    /// Ends it behind what is in it.
    func end() {
        wake { $0.isEnded = true }
    }

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
    func next() async -> Event? {
        while true {
            let (event, isOver) = state.withLock { state -> (Event?, Bool) in
                let event = state.take(limit: limit, dropped: dropped)
                return (event, state.isEnded)
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
                        if state.count > 0 || state.isEnded || Task.isCancelled { return true }
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
