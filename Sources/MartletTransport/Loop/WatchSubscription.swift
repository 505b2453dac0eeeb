/// A subscription to something that is followed only as long as somebody wants to know: its end is the subscriber's.
package final class WatchSubscription<Value: Sendable & Equatable>: Sendable {
    private let newest: NewestValue<Value?>
    private let end: @Sendable () -> Void

    /// A subscription to a value that is `nil` until it is known, and calls a closure at its own end.
    package init(to newest: NewestValue<Value?>, end: @escaping @Sendable () -> Void) {
        self.newest = newest
        self.end = end
    }

    deinit { end() }

    /// The newest value, once there is another than the one seen last; `nil` when the task is cancelled.
    package func next(after seen: UInt64) async -> (version: UInt64, value: Value)? {
        guard let next = await newest.next(after: seen, where: { $0 != nil }), let value = next.value else {
            return nil
        }
        return (next.version, value)
    }
}

/// One pass over a value that changes: each value that is another than the one before.
package struct ValueReader<Value: Sendable & Equatable>: Sendable {
    private let take: @Sendable (UInt64) async -> (version: UInt64, value: Value)?
    private var seen: UInt64 = 0

    /// A pass over what a subscription gives. It keeps the subscription.
    package init(_ subscription: WatchSubscription<Value>) { take = { await subscription.next(after: $0) } }

    /// A pass over a value.
    package init(_ value: NewestValue<Value>) { take = { await value.next(after: $0) } }

    /// The newest value once it is another than the one before; `nil` at the end, or when the task is cancelled.
    package mutating func next() async -> Value? {
        guard let found = await take(seen) else { return nil }
        seen = found.version
        return found.value
    }
}

/// How many subscribers something has, and the run that is for them.
package struct SubscriberCount {
    private var count = 0
    /// Counts the times that a run began or ended, so that a timer or an answer of an earlier one comes to nothing.
    package private(set) var run: UInt64 = 0

    /// No subscriber.
    package init() {}

    /// Adds a subscriber.
    /// - Returns: The run that begins, where it is the only one.
    package mutating func add() -> UInt64? {
        count += 1
        guard count == 1 else { return nil }
        run += 1
        return run
    }

    /// Takes a subscriber away.
    /// - Returns: Whether it was the last, which ends the run.
    package mutating func remove() -> Bool {
        count -= 1
        guard count == 0 else { return false }
        run += 1
        return true
    }
}
