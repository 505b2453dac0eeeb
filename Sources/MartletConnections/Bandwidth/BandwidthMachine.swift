package import MartletTransport

/// Who may move how many bytes when, in one direction: a bucket for all, one for each host, and one for each transfer that
/// has a limit of its own.
///
/// Requests stand in a line. Each pass serves, from the first on, those whose buckets all hold a portion; a bucket that
/// did not suffice for one serves nobody behind it, so that small requests do not overtake. Whoever was served and wants
/// more stands at the end again. Time is passed in; the waiting is done by whoever runs this.
package struct BandwidthMachine: Sendable {
    /// What an event leads to.
    package struct Effects: Sendable {
        /// Requests that were granted, and how many bytes.
        package var grants: [(request: UInt64, byteCount: Int)] = []
        /// When to call ``BandwidthMachine/advance(to:)``; `nil` where nobody waits for a bucket.
        package var wake: MonotonicTime?
    }

    private enum Scope: Hashable {
        case total
        case host(String)
        case transfer(UInt64)
    }

    private struct Request {
        var number: UInt64
        var lane: BandwidthLane
        var wanted: Int
    }

    /// The least time between two passes: it bounds the work where many buckets become ready one after the other.
    static let leastInterval = Duration.milliseconds(5)
    /// How many hosts' buckets are kept before those that are full, and so say nothing, are let go.
    static let hostSweepCount = 64

    private var total: TokenBucket?
    private var perHost: BandwidthRate?
    private var hosts: [String: TokenBucket] = [:]
    private var transfers: [UInt64: TokenBucket] = [:]
    private var hostSweep = BandwidthMachine.hostSweepCount
    private var line: [Request] = []
    /// Whether anything had to wait of what a transfer with a number of its own asked since it was last looked at; `nil` where
    /// it asked nothing.
    private var hasWaited: [UInt64: Bool] = [:]
    /// The buckets that did not suffice for somebody in the line.
    private var closed: Set<Scope> = []
    private var wake: MonotonicTime?

    /// A machine without limits.
    package init() {}

    /// Whether anything is held back at all.
    package var isActive: Bool { total != nil || perHost != nil || !transfers.isEmpty }

    /// How many requests wait.
    package var waitingCount: Int { line.count }

    // MARK: Events

    /// The limits are others.
    package mutating func setRates(
        total newTotal: BandwidthRate?, perHost newPerHost: BandwidthRate?, now: MonotonicTime
    ) -> Effects {
        if let newTotal {
            if total == nil { total = TokenBucket(newTotal, now: now) }
            total?.change(to: newTotal, now: now)
        } else {
            total = nil
        }
        if let newPerHost {
            for host in Array(hosts.keys) { hosts[host]?.change(to: newPerHost, now: now) }
        } else {
            hosts = [:]
        }
        perHost = newPerHost
        return advance(to: now)
    }

    /// A transfer has a limit of its own, or another one; `nil` for none any more.
    package mutating func setRate(
        _ rate: BandwidthRate?, ofTransfer number: UInt64, now: MonotonicTime
    ) -> Effects {
        if let rate {
            if transfers[number] == nil { transfers[number] = TokenBucket(rate, now: now) }
            transfers[number]?.change(to: rate, now: now)
        } else {
            transfers[number] = nil
            hasWaited[number] = nil
        }
        return advance(to: now)
    }

    /// What the limits did to a transfer since the last look.
    package mutating func hold(transfer number: UInt64) -> BandwidthHold {
        guard isActive else { return .unlimited }
        guard let hasWaited = hasWaited.removeValue(forKey: number) else {
            return line.contains { $0.lane.transfer == number } ? .held : .idle
        }
        return hasWaited ? .held : .free
    }

    /// A transfer wants to move bytes.
    /// - Parameter number: What the grant is known by; not in use.
    package mutating func request(
        _ number: UInt64, _ wanted: Int, in lane: BandwidthLane, now: MonotonicTime
    ) -> Effects {
        var effects = Effects(wake: wake)
        let request = Request(number: number, lane: lane, wanted: max(1, wanted))
        let granted = serve(request, now, isAlone: line.isEmpty)
        if let granted {
            effects.grants = [(number, granted)]
        } else {
            line.append(request)
            effects.wake = wake
        }
        if let transfer = lane.transfer {
            hasWaited[transfer] = granted == nil || hasWaited[transfer] == true
        }
        return effects
    }

    /// A request is given up; nothing where it was granted.
    package mutating func cancel(_ number: UInt64) {
        line.removeAll { $0.number == number }
        if line.isEmpty { (closed, wake) = ([], nil) }
    }

    /// Bytes that were granted did not move.
    package mutating func giveBack(_ count: Int, in lane: BandwidthLane) {
        total?.giveBack(count)
        if let host = lane.host { hosts[host]?.giveBack(count) }
        if let transfer = lane.transfer { transfers[transfer]?.giveBack(count) }
    }

    /// Time has passed.
    package mutating func advance(to now: MonotonicTime) -> Effects {
        (closed, wake) = ([], nil)
        var effects = Effects()
        guard !line.isEmpty else { return effects }
        let waiting = line
        line = []
        for request in waiting {
            if let granted = serve(request, now, isAlone: waiting.count == 1) {
                effects.grants.append((request.number, granted))
            } else {
                line.append(request)
            }
        }
        effects.wake = wake
        return effects
    }

    // MARK: Serving

    /// How many bytes a request gets; `nil` where it has to wait, and its buckets are closed to those behind it.
    /// - Parameter isAlone: Whether nobody else waits, so that it may have all there is.
    private mutating func serve(_ request: Request, _ now: MonotonicTime, isAlone: Bool) -> Int? {
        let scopes = scopes(of: request.lane, now)
        if scopes.isEmpty { return request.wanted }
        if !closed.isEmpty, scopes.contains(where: closed.contains) { return nil }
        var portion = request.wanted
        var largest = 0
        var available = Int.max
        for scope in scopes {
            guard let rate = self[scope]?.rate else { continue }
            portion = min(portion, rate.portion)
            largest = max(largest, rate.portion)
            available = min(available, self[scope]?.available(at: now) ?? .max)
        }
        guard available >= portion else {
            for scope in scopes {
                guard var bucket = self[scope], bucket.available(at: now) < portion else { continue }
                closed.insert(scope)
                let ready = max(bucket.ready(portion), now.advanced(by: BandwidthMachine.leastInterval))
                wake = wake.map { min($0, ready) } ?? ready
            }
            return nil
        }
        // What a narrow bucket saved up while its transfer waited for its turn at a wide one, it may catch up on.
        let granted = min(request.wanted, available, isAlone ? .max : max(portion, largest))
        for scope in scopes { self[scope]?.take(granted) }
        return granted
    }

    /// The buckets that count for a lane; a host's is made when it is first asked for.
    private mutating func scopes(of lane: BandwidthLane, _ now: MonotonicTime) -> [Scope] {
        var scopes: [Scope] = []
        if total != nil { scopes.append(.total) }
        if let perHost, let host = lane.host {
            if hosts[host] == nil {
                sweepHosts(now)
                hosts[host] = TokenBucket(perHost, now: now)
            }
            scopes.append(.host(host))
        }
        if let transfer = lane.transfer, transfers[transfer] != nil { scopes.append(.transfer(transfer)) }
        return scopes
    }

    /// Lets go of the buckets of hosts that have been at rest: a full one is as good as a new one.
    private mutating func sweepHosts(_ now: MonotonicTime) {
        guard hosts.count >= hostSweep else { return }
        for (host, bucket) in hosts {
            var bucket = bucket
            if bucket.isFull(at: now) { hosts[host] = nil }
        }
        hostSweep = max(BandwidthMachine.hostSweepCount, 2 * hosts.count)
    }

    private subscript(scope: Scope) -> TokenBucket? {
        get {
            switch scope {
            case .total: total
            case .host(let host): hosts[host]
            case .transfer(let number): transfers[number]
            }
        }
        set {
            switch scope {
            case .total: total = newValue
            case .host(let host): hosts[host] = newValue
            case .transfer(let number): transfers[number] = newValue
            }
        }
    }
}

/// How many bytes may pass now, by a rate: what was not used is saved up to a bound.
///
/// Time is passed in; one that goes back counts as standing still.
package struct TokenBucket: Sendable {
    /// The rate.
    package private(set) var rate: BandwidthRate
    /// Bytes that may pass, as of `last`; never below zero, nor above the burst.
    private var level: Double
    private var last: MonotonicTime

    /// A full bucket.
    package init(_ rate: BandwidthRate, now: MonotonicTime) {
        self.rate = rate
        level = rate.effectiveBurst
        last = now
    }

    /// How many bytes may pass at an instant.
    package mutating func available(at now: MonotonicTime) -> Int {
        refill(now)
        return Int(level)
    }

    /// Whether all that can be saved up has been.
    package mutating func isFull(at now: MonotonicTime) -> Bool {
        refill(now)
        return level >= rate.effectiveBurst
    }

    /// Counts bytes that pass.
    package mutating func take(_ count: Int) { level = max(0, level - Double(max(0, count))) }

    /// Takes back what did not pass after all.
    package mutating func giveBack(_ count: Int) {
        level = min(rate.effectiveBurst, level + Double(max(0, count)))
    }

    /// When so many bytes may pass; more than can be saved up count as that.
    package func ready(_ count: Int) -> MonotonicTime {
        let missing = min(Double(max(0, count)), rate.effectiveBurst) - level
        guard missing > 0 else { return last }
        // A little later rather than a little too early, whereupon another wait would follow.
        let nanoseconds = min(missing / rate.effectiveRate * 1e9, 9e18)
        return last.advanced(by: .nanoseconds(Int64(nanoseconds) + 1))
    }

    /// Goes on with another rate; what was saved up stays, within its bound.
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
