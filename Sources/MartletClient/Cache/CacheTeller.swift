import Synchronization

/// Hands the events of a cache to its subscribers, and those of its opening to the first of them: they happen before
/// anybody can subscribe.
final class CacheTeller: Sendable {
    /// How many events are kept for the first subscriber.
    private static let limit = 64

    private let hub = EventHub<CacheEvent>()
    /// What happened before the first subscriber came; `nil` once one has. Guards the order of both.
    private let early = Mutex<[CacheEvent]?>([])

    /// Tells what happened.
    func tell(_ event: CacheEvent) {
        early.withLock { early in
            guard early != nil else { return hub.tell(event) }
            if early?.count ?? 0 < CacheTeller.limit { early?.append(event) }
        }
    }

    /// A subscription.
    func subscribe(limit: Int) -> EventSubscription<CacheEvent> {
        early.withLock { early in
            let subscription = EventSubscription(hub: hub, limit: limit) { .dropped($0) }
            for event in early ?? [] { subscription.queue.append(event) }
            early = nil
            return subscription
        }
    }

    /// Ends all subscriptions.
    func end() {
        hub.end()
    }
}
