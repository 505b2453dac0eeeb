import Synchronization

/// Events, for any number of subscribers, each of which gets all of them.
///
/// Who comes late gets the last 256 that happened before, or as many of them as weigh no more than a limit.
package final class EventLog<Event: Sendable>: Sendable {
    private struct State {
        var past: [Event] = []
        var pastWeight = 0
        var subscribers: [UInt64: AsyncStream<Event>.Continuation] = [:]
        var lastNumber: UInt64 = 0
        var isEnded = false
    }

    /// How many past events late subscribers get.
    package static var pastLimit: Int { 256 }

    /// Guards the above: the download, and subscribers that come and go.
    private let state = Mutex(State())

    private let weight: @Sendable (Event) -> Int
    private let weightLimit: Int

    /// An empty log.
    /// - Parameters:
    ///   - weightLimit: What the past events weigh together at most; the newest is kept whatever it weighs.
    ///   - weight: What an event weighs, such as the bytes that it holds.
    package init(weightLimit: Int = .max, weight: @escaping @Sendable (Event) -> Int = { _ in 0 }) {
        self.weightLimit = weightLimit
        self.weight = weight
    }

    deinit {
        end()
    }

    /// The last events that have happened, as late subscribers get them.
    package var pastEvents: [Event] { state.withLock { $0.past } }

    /// Adds an event.
    package func add(_ event: Event) {
        state.withLock { state in
            guard !state.isEnded else { return }
            state.past.append(event)
            state.pastWeight += weight(event)
            while state.past.count > EventLog.pastLimit
                || (state.pastWeight > weightLimit && state.past.count > 1)
            {
                state.pastWeight -= weight(state.past.removeFirst())
            }
            // Under the lock, so that all have the same order; a stream's buffer takes it without waiting.
            for subscriber in state.subscribers.values { subscriber.yield(event) }
        }
    }

    /// Ends the streams of all subscribers, behind what they were given.
    package func end() {
        let subscribers = state.withLock { state in
            state.isEnded = true
            defer { state.subscribers = [:] }
            return state.subscribers
        }
        for subscriber in subscribers.values { subscriber.finish() }
    }

    /// A stream of the events, the past ones first.
    package func subscribe() -> AsyncStream<Event> {
        let (stream, continuation) = AsyncStream<Event>.makeStream(bufferingPolicy: .unbounded)
        let number = state.withLock { state -> UInt64? in
            for event in state.past { continuation.yield(event) }
            guard !state.isEnded else { return nil }
            state.lastNumber += 1
            state.subscribers[state.lastNumber] = continuation
            return state.lastNumber
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in self?.forget(number) }
        return stream
    }

    private func forget(_ number: UInt64) {
        // Outside of the lock it goes: its last reference may be this one.
        let gone = state.withLock { $0.subscribers.removeValue(forKey: number) }
        _ = gone
    }
}
