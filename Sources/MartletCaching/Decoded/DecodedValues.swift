import MartletFeatureSettings
import MartletConditions
import MartletAuthentication
import MartletCore
import MartletDigests
import MartletCache

/// Decoded values, bounded by their cost and number; the least recently used is evicted first.
///
/// Removed values are returned: releasing them may run user code, which must not happen under a lock.
struct DecodedValues<Value: Sendable>: Sendable {
    private struct Slot: Sendable {
        let key: DecodedValueKey
        let value: Value
        let cost: Int
    }

    private var slots: [Slot?] = []
    private var free: [Int] = []
    /// The positions of the values of each body; usually one.
    private var places: [UInt64: [Int]] = [:]
    private var order = EvictionPolicy(.leastRecentlyUsed)
    private let limit: Int
    private let countLimit: Int
    private var pressure = MemoryPressure.normal

    /// The cost of all values; never above the limit.
    private(set) var cost = 0
    var count: Int { slots.count - free.count }

    /// Creates an empty store. Limits below 0 count as 0; with a limit of 0 nothing is stored.
    init(limit: Int, countLimit: Int) {
        self.limit = max(0, limit)
        self.countLimit = max(0, countLimit)
    }

    /// The current limits: halved at a memory warning, 0 at the critical level.
    private var room: (cost: Int, count: Int) {
        switch pressure {
        case .normal: (limit, countLimit)
        case .warning: (limit / 2, countLimit / 2)
        case .critical: (0, 0)
        }
    }

    /// Returns the value of a key, which then is the most recently used.
    mutating func value(of key: DecodedValueKey) -> Value? {
        guard let place = place(of: key) else { return nil }
        order.touch(place)
        return slots[place]?.value
    }

    private func place(of key: DecodedValueKey) -> Int? { places[key.representation]?.first { slots[$0]?.key == key } }

    /// Stores a value as the most recently used. It replaces a value with its key. A value that costs more than the
    /// limit is not stored, and evicts nothing; a cost below 0 counts as 0.
    /// - Returns: The removed values.
    mutating func keep(_ value: Value, cost: Int, for key: DecodedValueKey) -> [Value] {
        var dropped = place(of: key).map { remove([$0]) } ?? []
        let cost = max(0, cost)
        let room = room
        guard room.cost > 0, room.count > 0, cost <= room.cost else { return dropped }
        dropped += shrink(to: room.cost - cost, count: room.count - 1)
        let place = free.popLast() ?? slots.count
        if place == slots.count { slots.append(nil) }
        slots[place] = Slot(key: key, value: value, cost: cost)
        places[key.representation, default: []].append(place)
        order.insert(place)
        // No overflow: the sum was reduced to at most the limit minus this cost.
        self.cost += cost
        return dropped
    }

    /// Removes the values of a body.
    /// - Returns: The removed values.
    mutating func removeAll(of representation: UInt64) -> [Value] { remove(places[representation] ?? []) }

    /// Removes the values of resources that pass a test, by a search of all values.
    /// - Returns: The removed values.
    mutating func removeAll(where predicate: (DecodedResource) -> Bool) -> [Value] {
        remove(slots.indices.filter { slots[$0].map { predicate($0.key.resource) } ?? false })
    }

    /// Sets the pressure on memory, and evicts the values that exceed the new limits.
    /// - Returns: The removed values.
    mutating func pressureChanged(to level: MemoryPressure) -> [Value] {
        pressure = level
        return shrink(to: room.cost, count: room.count)
    }

    private mutating func shrink(to cost: Int, count: Int) -> [Value] {
        var dropped: [Value] = []
        while self.cost > cost || self.count > count, let place = order.victim() { dropped += remove([place]) }
        return dropped
    }

    private mutating func remove(_ gone: [Int]) -> [Value] {
        var dropped: [Value] = []
        for place in gone {
            guard let slot = slots[place] else { continue }
            slots[place] = nil
            free.append(place)
            let representation = slot.key.representation
            places[representation]?.removeAll { $0 == place }
            if places[representation]?.isEmpty == true { places[representation] = nil }
            order.remove(place)
            cost -= slot.cost
            dropped.append(slot.value)
        }
        return dropped
    }
}

/// The key of a stored value: the resource, and the body that the response cache stores for it.
struct DecodedValueKey: Hashable, Sendable {
    let resource: DecodedResource
    /// The number of the stored body (``HTTPExchange/representation``).
    let representation: UInt64
}

/// The key by which identical requests share a response: all that may affect the response, its time, or who may see it.
struct DecodedSharingKey: Hashable, Sendable {
    private let values: HashableValues

    /// Creates the key of a request; `nil` for one that is not shared: its method is not GET or HEAD (RFC 9110 §9.2.1),
    /// or its options contain a closure or other values that cannot be compared.
    init?(_ resource: DecodedResource, options: RequestOptions) {
        guard resource.request.method == .get || resource.request.method == .head, options.validator == nil,
            options.onInterimResponse == nil, options.proxy == nil
        else { return nil }
        let authentication = options.authentication
        if let authentication {
            guard authentication.handler == nil, authentication.tokens == nil, authentication.netrc == nil,
                authentication.credentialsByOrigin.isEmpty
            else { return nil }
        }
        values = HashableValues([
            resource, options.timeouts, options.priority, options.queueOrder, options.bodyLimit, options.version,
            options.serviceClass, options.meteredNetworks, options.trailers, options.redirects, options.retry,
            authentication?.credentials,
            // Distinguishes empty settings, which override the session's, from none.
            authentication?.attemptLimit, options.usesCookies, options.idempotencyKey, options.bandwidth,
            options.bandwidthGroup?.number, options.cacheMode, options.cachePartition,
            options.allowsResendingNonIdempotentMethods, options.usesHSTS, options.digestVerification,
        ])
    }
}
