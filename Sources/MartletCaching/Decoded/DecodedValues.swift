import MartletNetwork
import MartletCredentials
import MartletCookies
import MartletAuthentication
import MartletCore
import HTTPTypes
import MartletCache

/// Decoded values, bounded by what they cost and by their number; what was used longest ago is given up first.
///
/// Whatever gives values up returns them: their end may run code of their user's, which must not happen under a lock.
struct DecodedValues<Value: Sendable>: Sendable {
    private struct Slot: Sendable {
        let key: DecodedValueKey
        let value: Value
        let cost: Int
    }

    private var slots: [Slot?] = []
    private var free: [Int] = []
    private var places: [DecodedValueKey: Int] = [:]
    /// The places of what was made of a body: mostly one.
    private var placesByRepresentation: [UInt64: [Int]] = [:]
    private var order = LRUPolicy()
    private let limit: Int
    private let countLimit: Int
    private var pressure = MemoryPressure.normal

    /// What the values cost in all; never above the limit.
    private(set) var cost = 0
    /// How many there are.
    var count: Int { places.count }

    /// None yet. Limits below 0 count as 0, and with a limit of 0 nothing is kept.
    init(limit: Int, countLimit: Int) {
        self.limit = max(0, limit)
        self.countLimit = max(0, countLimit)
    }

    /// What values may cost just now: half of the limit while memory is short, nothing while it is very short.
    private var room: (cost: Int, count: Int) {
        switch pressure {
        case .normal: (limit, countLimit)
        case .warning: (limit / 2, countLimit / 2)
        case .critical: (0, 0)
        }
    }

    /// The value of a key, which is thereby the last one used.
    mutating func value(of key: DecodedValueKey) -> Value? {
        guard let place = places[key] else { return nil }
        order.touch(place)
        return slots[place]?.value
    }

    /// Keeps a value, as the last one used, in place of one that has its key.
    ///
    /// One that costs more than there may be in all is not kept, and nothing is given up for it.
    /// - Parameter cost: One below 0 counts as 0.
    /// - Returns: What was given up.
    mutating func keep(_ value: Value, cost: Int, for key: DecodedValueKey) -> [Value] {
        var dropped = places[key].map { remove([$0]) } ?? []
        let cost = max(0, cost)
        let room = room
        guard room.cost > 0, room.count > 0, cost <= room.cost else { return dropped }
        dropped += shrink(to: room.cost - cost, count: room.count - 1)
        let place = free.popLast() ?? slots.count
        if place == slots.count { slots.append(nil) }
        slots[place] = Slot(key: key, value: value, cost: cost)
        places[key] = place
        placesByRepresentation[key.representation, default: []].append(place)
        order.insert(place)
        // No overflow: the sum was brought below the limit less this.
        self.cost += cost
        return dropped
    }

    /// Gives up what was made of a body.
    /// - Returns: What was given up.
    mutating func removeAll(of representation: UInt64) -> [Value] {
        remove(placesByRepresentation[representation] ?? [])
    }

    /// Gives up what was asked for by certain requests; all of them are looked at.
    /// - Returns: What was given up.
    mutating func removeAll(where isMeant: (DecodedResource) -> Bool) -> [Value] {
        remove(places.compactMap { key, place in isMeant(key.resource) ? place : nil })
    }

    /// Gives up all.
    /// - Returns: What was given up.
    mutating func removeAll() -> [Value] { remove(Array(places.values)) }

    /// Notes how short memory is, and gives up what there is no room for any more.
    /// - Returns: What was given up.
    mutating func pressureChanged(to level: MemoryPressure) -> [Value] {
        pressure = level
        return shrink(to: room.cost, count: room.count)
    }

    private mutating func shrink(to cost: Int, count: Int) -> [Value] {
        var dropped: [Value] = []
        while self.cost > cost || self.count > count, let place = order.victim() {
            dropped += remove([place])
        }
        return dropped
    }

    private mutating func remove(_ gone: [Int]) -> [Value] {
        var dropped: [Value] = []
        for place in gone {
            guard let slot = slots[place] else { continue }
            slots[place] = nil
            free.append(place)
            places[slot.key] = nil
            let representation = slot.key.representation
            placesByRepresentation[representation]?.removeAll { $0 == place }
            if placesByRepresentation[representation]?.isEmpty == true {
                placesByRepresentation[representation] = nil
            }
            order.remove(place)
            cost -= slot.cost
            dropped.append(slot.value)
        }
        return dropped
    }
}

/// What a kept value was made of: a body that the response cache stores, as one kind of request gets it.
struct DecodedValueKey: Hashable, Sendable {
    /// The kind of request.
    let resource: DecodedResource
    /// The number of the stored body (``HTTPExchange/representation``).
    let representation: UInt64
}

/// By what two requests are known to be the same: those whose keys are equal may have one answer.
///
/// Whatever could make a difference is in it: to what comes, to when it comes, and to whom it is shown. Closures cannot be
/// compared: requests whose options have one are never the same as another.
struct DecodedSharingKey: Hashable, Sendable {
    private let resource: DecodedResource
    private let timeouts: Timeouts?
    private let priority: RequestPriority?
    private let order: WaitingOrder?
    private let bodyLimit: ByteCount?
    private let version: HTTPVersion
    private let trailers: HTTPFields
    private let redirects: RedirectPolicy?
    private let retry: RetryPolicy?
    private let credentials: Credentials?
    private let attemptLimit: Int?
    private let usesCookies: Bool
    private let idempotencyKey: IdempotencyKey?
    private let bandwidth: BandwidthLimit
    /// The number of the calls that are under one limit with it.
    private let bandwidthGroup: UInt64?
    private let cacheMode: CacheMode?
    private let cachePartition: String?
    private let allowsResendingUnsafeMethods: Bool

    /// The key of a request; `nil` for one that shares with none: its method is not one that only looks (RFC 9110 §9.2.1),
    /// or its options hold a closure, or what else cannot be compared.
    init?(_ resource: DecodedResource, options: RequestOptions) {
        guard resource.request.method == .get || resource.request.method == .head,
            options.validator == nil, options.proxy == nil
        else { return nil }
        if let settings = options.authentication {
            guard settings.handler == nil, settings.tokens == nil, settings.netrc == nil,
                settings.credentialsByOrigin.isEmpty
            else { return nil }
        }
        self.resource = resource
        timeouts = options.timeouts
        priority = options.priority
        order = options.order
        bodyLimit = options.bodyLimit
        version = options.version
        trailers = options.trailers
        redirects = options.redirects
        retry = options.retry
        credentials = options.authentication?.credentials
        // Also tells apart settings that are empty, which refuse the session's, and none.
        attemptLimit = options.authentication?.attemptLimit
        usesCookies = options.usesCookies
        idempotencyKey = options.idempotencyKey
        bandwidth = options.bandwidth
        bandwidthGroup = options.bandwidthGroup?.number
        cacheMode = options.cacheMode
        cachePartition = options.cachePartition
        allowsResendingUnsafeMethods = options.allowsResendingUnsafeMethods
    }
}
