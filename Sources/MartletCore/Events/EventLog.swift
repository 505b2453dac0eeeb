public import MartletTransport
public import Synchronization

/// Events, for any number of subscribers, each of which gets all of them.
///
/// Who comes late gets the last 256 that happened before, or as many of them as weigh no more than a limit. What logs do for
/// each download is specialized where they are used.
@usableFromInline
package final class EventLog<Event: Sendable>: Sendable {
    @usableFromInline
    struct State {
        @usableFromInline var past: [Event]
        @usableFromInline var pastWeight: Int
        @usableFromInline var subscribers: [(number: UInt64, mailbox: Mailbox<Event>)]
        @usableFromInline var lastNumber: UInt64
        @usableFromInline var isEnded: Bool

        @inlinable init() { (past, pastWeight, subscribers, lastNumber, isEnded) = ([], 0, [], 0, false) }
    }

    /// A subscriber's hold on its mailbox: with the last reference to it the log forgets the mailbox.
    @usableFromInline
    final class Subscription: Sendable {
        @usableFromInline let mailbox: Mailbox<Event>
        @usableFromInline let end: @Sendable () -> Void

        @inlinable
        init(_ mailbox: Mailbox<Event>, end: @escaping @Sendable () -> Void) {
            self.mailbox = mailbox
            self.end = end
        }

        @inlinable deinit { end() }
    }

    /// How many past events late subscribers get.
    @inlinable package static var pastLimit: Int { 256 }

    /// Guards the above: those to whom something happens, and subscribers that come and go.
    @usableFromInline let state: Mutex<State>

    /// What an event weighs; nil where none weighs anything.
    @usableFromInline let weight: (@Sendable (Event) -> Int)?
    @usableFromInline let weightLimit: Int

    /// An empty log.
    /// - Parameters:
    ///   - weightLimit: What the past events weigh together at most; the newest is kept whatever it weighs.
    ///   - weight: What an event weighs, such as the bytes that it holds.
    @inlinable
    package init(weightLimit: Int = .max, weight: (@Sendable (Event) -> Int)? = nil) {
        self.weightLimit = weightLimit
        self.weight = weight
        state = Mutex(State())
    }

    @inlinable deinit { end() }

    /// The last events that have happened, as late subscribers get them.
    @inlinable package var pastEvents: [Event] { state.withLock { $0.past } }

    /// Adds an event.
    @inlinable
    package func add(_ event: Event) {
        let waiters = state.withLock { state -> [Waiter<Event?>] in
            guard !state.isEnded else { return [] }
            state.past.append(event)
            if let weight { state.pastWeight += weight(event) }
            while state.past.count > EventLog.pastLimit
                || (state.pastWeight > weightLimit && state.past.count > 1)
            {
                let oldest = state.past.removeFirst()
                if let weight { state.pastWeight -= weight(oldest) }
            }
            // Under the lock, so that all have the same order.
            return state.subscribers.compactMap { $0.mailbox.post(event) }
        }
        for waiter in waiters { waiter.resume(returning: event) }
    }

    /// Ends the sequences of all subscribers, behind what they were given.
    @inlinable
    package func end() {
        let subscribers = state.withLock { state in
            state.isEnded = true
            defer { state.subscribers = [] }
            return state.subscribers
        }
        for subscriber in subscribers { subscriber.mailbox.close() }
    }

    /// The events, the past ones first.
    @inlinable
    package func subscribe() -> EventSequence<Event> {
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
        // The log is not kept: without it nothing can happen any more.
        let subscription = Subscription(mailbox) { [weak self] in self?.forget(number) }
        return EventSequence { await subscription.mailbox.next() }
    }

    @inlinable
    func forget(_ number: UInt64) {
        // Outside of the lock it goes: its last reference may be this one.
        let gone = state.withLock { state in
            state.subscribers.firstIndex { $0.number == number }.map { state.subscribers.remove(at: $0) }
        }
        _ = gone
    }
}
