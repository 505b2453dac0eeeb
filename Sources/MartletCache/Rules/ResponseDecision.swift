/// What is done with the answer of the network: independent effects, all of which the caller carries out.
package struct ResponseDecision: Equatable, Sendable {
    /// What the caller gets.
    package enum Delivery: Equatable, Sendable {
        /// The network's own response.
        case network
        /// The stored response, which the network said is still good, with its new head.
        case stored(CachedAnswer)
        /// The stored response in place of an error (RFC 5861 §4). The error is an event.
        case staleOnError(CachedAnswer)
        /// Nothing yet: the request is sent again without what the cache added, as the 304 is about nothing that is
        /// stored. It may not be offered validators again.
        case repeatUnconditionally
    }

    /// What the caller gets.
    package let delivery: Delivery
    /// Whether the network's response is stored, once its body has come whole.
    package let storage: StorageDecision
    /// The stored responses whose heads are replaced.
    package let freshened: [Freshening]
    /// The stored responses that go now, by index: out of date, or no longer to be kept. A body that is being read is
    /// read to its end.
    package let removed: [Int]
    /// The stored responses that go, by index, where the one that is to be stored turns out to find no room: it says all the
    /// same that they are out of date.
    package let superseded: [Int]
    /// What to say of it; ``CacheStatus/isStored`` as far as is known by the head.
    package let status: CacheStatus

    init(
        delivery: Delivery, storage: StorageDecision, freshened: [Freshening], removed: [Int],
        superseded: [Int] = [], status: CacheStatus
    ) {
        self.delivery = delivery
        self.storage = storage
        self.freshened = freshened
        self.removed = removed
        self.superseded = superseded
        self.status = status
    }
}
