package import MartletWire
import Synchronization

/// A stored response that was found, in memory or on disk.
///
/// It stays readable to its end, even if the stored response is replaced, evicted or removed.
package final class StoredResponse: Sendable {
    /// The location of its body.
    package enum Body: Sendable {
        case bytes([UInt8])
        /// In a file, to be read by calls that block.
        case file(EntryReader)
    }

    /// The head, parsed, and the length of the body.
    package let variant: StoredVariant
    /// The unique number of the body, the same after a 304 that replaces the head, in both tiers and in later runs.
    package let representation: UInt64
    /// The body, as received.
    package let body: Body
    /// Its entry in memory; `nil` if it was found on disk.
    let entry: MemoryEntry?
    /// The position in memory where it was found; `nil` if that is not known.
    let place: Int?
    /// Its entry on disk; `nil` if it was found in memory.
    let reader: EntryReader?
    /// The epoch of ``ResponseStore/changes`` at the lookup on disk; `nil` for a response that is never promoted.
    let seen: InvalidationLog.Epoch?
    /// Whether the disk had no other variant of its key that memory did not have.
    let isLastOnDisk: Bool

    package var head: StoredHead { variant.head }

    /// Creates a response that was found in memory.
    init(_ entry: MemoryEntry, at place: Int? = nil) {
        (variant, representation, body) = (entry.variant, entry.representation, .bytes(entry.body))
        (self.entry, self.place, reader, seen, isLastOnDisk) = (entry, place, nil, nil, true)
    }

    /// Creates a response that was found on disk.
    init(_ reader: EntryReader, seen: InvalidationLog.Epoch?, isLastOnDisk: Bool = false) {
        variant = StoredVariant(head: reader.head, bodyLength: reader.byteCount)
        representation = reader.entry.generation
        body = reader.entry.inlineBody.map { .bytes($0) } ?? .file(reader)
        (entry, place, self.reader, self.seen, self.isLastOnDisk) = (nil, nil, reader, seen, isLastOnDisk)
    }
}

/// A stored response without its body: the basis of the decision whether it may be used.
package struct StoredHead: Equatable, Sendable {
    /// A request field that the response was selected by (RFC 9111 §4.1).
    package struct Selection: Hashable, Sendable {
        /// The name of the field, in lower case.
        package var name: String
        /// Its normalized value in the request; `nil` if the request had no such field.
        package var value: String?

        package init(name: String, value: String?) { (self.name, self.value) = (name, value) }
    }

    package var key: CacheKey
    package var status: Int
    /// The reason phrase, as received; empty if it was not UTF-8.
    package var reason: String
    /// The fields, in order, without those that are never stored (RFC 9111 §3.1).
    package var fields: FieldBlock
    /// The fields after the body; `nil` for none. They are never merged into the head.
    package var trailers: FieldBlock?
    /// The fields that `Vary` names, sorted by name; empty without `Vary`.
    package var selections: [Selection]
    /// The time of the request that fetched or last validated it.
    package var requestTime: WallTime
    /// The time when its head was received.
    package var responseTime: WallTime
    /// Whether the request had an `Authorization` field (RFC 9111 §3.5).
    package var wasAuthorized: Bool

    package init(
        key: CacheKey, status: Int, reason: String, fields: FieldBlock, trailers: FieldBlock? = nil,
        selections: [Selection] = [], requestTime: WallTime, responseTime: WallTime, wasAuthorized: Bool = false
    ) {
        (self.key, self.status, self.reason) = (key, status, reason)
        (self.fields, self.trailers, self.selections) = (fields, trailers, selections)
        (self.requestTime, self.responseTime, self.wasAuthorized) = (requestTime, responseTime, wasAuthorized)
    }
}

/// The listeners that are notified of bodies that are no longer stored under a key.
///
/// Both tiers report removed bodies. A body is not reported again as long as it is among the last 1024 reported ones.
final class RepresentationRemovalObservers: Sendable {
    /// Receives the key and the number of a body; returns whether it continues to listen.
    typealias Listener = @Sendable (CacheKey, UInt64) -> Bool

    private struct State {
        var listeners: [UInt64: Listener] = [:]
        var lastListener: UInt64 = 0
        var reported = RecentKeys<UInt64, Void>()
    }

    /// The lock on the state, used by any thread that uses a tier, for the time of a lookup.
    private let state = Mutex(State())

    func add(_ listener: @escaping Listener) {
        state.withLock { state in
            state.lastListener += 1
            state.listeners[state.lastListener] = listener
        }
    }

    /// Notifies all listeners that a body was removed, unless it was reported before.
    func note(_ key: CacheKey, _ representation: UInt64) {
        let listeners = state.withLock { state -> [UInt64: Listener] in
            guard !state.listeners.isEmpty, state.reported.update((), for: representation).isNew else { return [:] }
            return state.listeners
        }
        for (number, listener) in listeners where !listener(key, representation) {
            // Released outside of the lock, since the closure may hold the last reference to an object.
            let gone = state.withLock { $0.listeners.removeValue(forKey: number) }
            withExtendedLifetime(gone) {}
        }
    }
}

/// The content of both tiers of a store, and their use.
///
/// A request that is served from memory counts only there; the disk counts those that memory did not serve.
package struct TierStatistics: Equatable, Sendable {
    /// The statistics of memory. Its misses include the requests that the disk served.
    package var memory: MemoryCache.Statistics
    /// The statistics of the disk; `nil` without a disk.
    package var disk: DiskStatistics?
}
