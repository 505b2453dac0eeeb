package import MartletTransport

/// The state machine that decides when each transfer may move how many bytes, in one direction. There is a token bucket
/// for all transfers, one for each host, and one for each transfer with its own limit.
///
/// Requests are queued. Each pass serves, in order, the requests whose buckets all contain enough bytes for a portion.
/// A bucket with too few bytes for one request serves no later one, so that small requests do not overtake. A transfer
/// that needs more bytes makes another request, at the end of the queue. Time is passed in; the owner does the waiting.
package struct BandwidthMachine: Sendable {
    package struct Effects: Sendable {
        /// The requests that were granted, and the numbers of bytes.
        package var grants: [(request: UInt64, byteCount: Int)] = []
        /// The time at which to call ``BandwidthMachine/advance(to:)``; `nil` if no request waits.
        package var wake: MonotonicTime?
    }

    private enum BucketKey: Hashable {
        case total
        case host(String)
        case transfer(UInt64)

        var isHost: Bool { if case .host = self { true } else { false } }
    }

    private typealias Request = (number: UInt64, scope: BandwidthScope, wanted: Int)

    /// The minimum time between two passes. It limits the work if many buckets become ready one after the other.
    private static let leastInterval = Duration.milliseconds(5)
    /// The minimum number of buckets at which the full buckets of hosts are removed.
    private static let sweepCount = 64

    private var buckets: [BucketKey: TokenBucket] = [:]
    private var perHost: BandwidthRate?
    private var nextSweep = BandwidthMachine.sweepCount
    private var queue: [Request] = []
    /// Whether a request of a numbered transfer had to wait since ``takeThrottling(transfer:)`` was called;
    /// `nil` if it made none.
    private var hasWaited: [UInt64: Bool] = [:]
    /// The buckets that had too few bytes for a queued request.
    private var closed: Set<BucketKey> = []
    private var wake: MonotonicTime?

    package init() {}

    /// Whether there is a limit.
    package var isActive: Bool { perHost != nil || !buckets.isEmpty }

    package var waitingCount: Int { queue.count }

    // MARK: Events

    package mutating func setRates(total: BandwidthRate?, perHost: BandwidthRate?, now: MonotonicTime) -> Effects {
        self.perHost = perHost
        set(.total, total, now)
        for key in buckets.keys.filter(\.isHost) { set(key, perHost, now) }
        return advance(to: now)
    }

    /// Changes the limit of one transfer; `nil` removes it.
    package mutating func setRate(_ rate: BandwidthRate?, ofTransfer number: UInt64, now: MonotonicTime) -> Effects {
        set(.transfer(number), rate, now)
        if rate == nil { hasWaited[number] = nil }
        return advance(to: now)
    }

    private mutating func set(_ key: BucketKey, _ rate: BandwidthRate?, _ now: MonotonicTime) {
        if let rate {
            buckets[key, default: TokenBucket(rate, now: now)].change(to: rate, now: now)
        } else {
            buckets[key] = nil
        }
    }

    /// Returns the effect of the limits on a transfer since the last call of this function.
    package mutating func takeThrottling(transfer number: UInt64) -> BandwidthThrottling {
        guard isActive else { return .unlimited }
        guard let hasWaited = hasWaited.removeValue(forKey: number) else {
            return queue.contains { $0.scope.transfer == number } ? .held : .idle
        }
        return hasWaited ? .held : .free
    }

    /// Requests bytes for a transfer.
    /// - Parameter number: The identifier of the request, which must not be in use.
    package mutating func request(_ number: UInt64, _ wanted: Int, in scope: BandwidthScope, now: MonotonicTime)
        -> Effects
    {
        let request = (number: number, scope: scope, wanted: max(1, wanted))
        let granted = serve(request, now, isAlone: queue.isEmpty)
        if granted == nil { queue.append(request) }
        if let transfer = scope.transfer { hasWaited[transfer] = granted == nil || hasWaited[transfer] == true }
        return Effects(grants: granted.map { [(number, $0)] } ?? [], wake: wake)
    }

    /// Removes a request. Does nothing if it was granted.
    package mutating func cancel(_ number: UInt64) {
        queue.removeAll { $0.number == number }
        if queue.isEmpty { (closed, wake) = ([], nil) }
    }

    /// Takes back granted bytes that were not transferred.
    package mutating func refund(_ count: Int, in scope: BandwidthScope) {
        for key in keys(for: scope) { buckets[key]?.refund(count) }
    }

    /// Serves the queued requests for which there are enough bytes now.
    package mutating func advance(to now: MonotonicTime) -> Effects {
        (closed, wake) = ([], nil)
        var effects = Effects()
        guard !queue.isEmpty else { return effects }
        let waiting = queue
        queue = []
        for request in waiting {
            if let granted = serve(request, now, isAlone: waiting.count == 1) {
                effects.grants.append((request.number, granted))
            } else {
                queue.append(request)
            }
        }
        effects.wake = wake
        return effects
    }

    // MARK: Serving

    /// Returns the number of bytes that a request gets; `nil` if it has to wait. Its buckets with too few bytes are
    /// then closed for later requests.
    /// - Parameter isAlone: Whether no other request waits, so that it may get all available bytes.
    private mutating func serve(_ request: Request, _ now: MonotonicTime, isAlone: Bool) -> Int? {
        if let perHost, let host = request.scope.host, buckets[.host(host)] == nil {
            sweepHosts(now)
            set(.host(host), perHost, now)
        }
        let keys = keys(for: request.scope)
        if keys.isEmpty { return request.wanted }
        if !closed.isEmpty, keys.contains(where: closed.contains) { return nil }
        var portion = request.wanted
        var largest = 0
        var available = Int.max
        for key in keys {
            guard let rate = buckets[key]?.rate else { continue }
            portion = min(portion, rate.portion)
            largest = max(largest, rate.portion)
            available = min(available, buckets[key]?.available(at: now) ?? .max)
        }
        guard available >= portion else {
            for key in keys {
                guard var bucket = buckets[key], bucket.available(at: now) < portion else { continue }
                closed.insert(key)
                let ready = max(bucket.ready(portion), now.advanced(by: BandwidthMachine.leastInterval))
                wake = min(wake ?? ready, ready)
            }
            return nil
        }
        // The bucket of a slow rate may spend the bytes that it saved while the request waited for another bucket.
        let granted = min(request.wanted, available, isAlone ? .max : max(portion, largest))
        for key in keys { buckets[key]?.take(granted) }
        return granted
    }

    /// The buckets that apply to a scope.
    private func keys(for scope: BandwidthScope) -> [BucketKey] {
        let keys: [BucketKey?] = [.total, scope.host.map(BucketKey.host), scope.transfer.map(BucketKey.transfer)]
        return keys.compactMap(\.self).filter { buckets[$0] != nil }
    }

    /// Removes the buckets of idle hosts: a full bucket is equivalent to a new one.
    private mutating func sweepHosts(_ now: MonotonicTime) {
        guard buckets.count >= nextSweep else { return }
        for (key, bucket) in buckets where key.isHost {
            var bucket = bucket
            if bucket.isFull(at: now) { buckets[key] = nil }
        }
        nextSweep = max(BandwidthMachine.sweepCount, 2 * buckets.count)
    }
}

/// A token bucket: the number of bytes that a rate allows now. Unused bytes are saved up to a maximum. Time is passed
/// in; an earlier time than before has no effect.
package struct TokenBucket: Sendable {
    package private(set) var rate: BandwidthRate
    /// Bytes that may pass, as of `last`; never below zero, nor above the burst.
    private var level: Double
    private var last: MonotonicTime

    package init(_ rate: BandwidthRate, now: MonotonicTime) {
        self.rate = rate
        level = rate.effectiveBurst
        last = now
    }

    package mutating func available(at now: MonotonicTime) -> Int {
        refill(now)
        return Int(level)
    }

    package mutating func isFull(at now: MonotonicTime) -> Bool {
        refill(now)
        return level >= rate.effectiveBurst
    }

    package mutating func take(_ count: Int) { level = max(0, level - Double(max(0, count))) }

    /// Takes back bytes that did not pass.
    package mutating func refund(_ count: Int) { level = min(rate.effectiveBurst, level + Double(max(0, count))) }

    /// The time at which a number of bytes may pass; more than the burst counts as the burst.
    package func ready(_ count: Int) -> MonotonicTime {
        let missing = min(Double(max(0, count)), rate.effectiveBurst) - level
        guard missing > 0 else { return last }
        // Rounded up: a time that is slightly too early would cause another wait.
        let nanoseconds = min(missing / rate.effectiveRate * 1e9, 9e18)
        return last.advanced(by: .nanoseconds(Int64(nanoseconds) + 1))
    }

    /// Changes the rate. Saved bytes above the new burst are lost.
    package mutating func change(to rate: BandwidthRate, now: MonotonicTime) {
        refill(now)
        self.rate = rate
        level = min(level, rate.effectiveBurst)
    }

    private mutating func refill(_ now: MonotonicTime) {
        guard now > last else { return }
        let nanoseconds = Double(now.nanoseconds - last.nanoseconds)
        level = min(rate.effectiveBurst, level + nanoseconds / 1e9 * rate.effectiveRate)
        last = now
    }
}
