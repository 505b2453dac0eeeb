@testable import MartletPool

/// A random owner of a pool that checks every result of the pool against its own records.
struct PoolModel {
    private struct Waiting {
        var key: Int
        var priority: RequestPriority
        var order: QueueOrder
        var arrival: UInt64
        var number: Int
    }

    private struct Leased {
        var key: Int
        var priority: RequestPriority
        var order: QueueOrder
        var arrival: UInt64
        var number: Int
        var waiter: PoolWaiterID?
    }

    private(set) var pool: PoolMachine<Int>
    /// The first violations that were found.
    private(set) var faults: [String] = []
    private var random: PoolGenerator
    private var limits: PoolLimits
    private var now: UInt64 = 1 << 40
    private var number = 0
    private var isDraining = false
    private var waiting: [PoolWaiterID: Waiting] = [:]
    private var leased: [PoolConnectionID: Leased] = [:]
    private var idle: [PoolConnectionID: Int] = [:]
    private var dialing: [PoolConnectionID: Int] = [:]
    private var gone: [PoolConnectionID] = []
    private var formerWaiters: [PoolWaiterID] = []

    /// The number of events per thousand that change the limits.
    private let limitChanges: Int

    init(seed: UInt64, limitChanges: Int = 5) {
        random = PoolGenerator(state: seed)
        self.limitChanges = limitChanges
        limits = PoolLimits(connectionsPerHost: 3, totalConnections: 8, idleConnections: 6)
        pool = PoolMachine(limits: limits) { key, limits in limits.connectionsToHosts["\(key)"] }
    }

    // MARK: Events

    /// Performs one random event of any kind.
    mutating func step() {
        now += UInt64.random(in: 0...50_000_000, using: &random)
        if Int.random(in: 0..<1000, using: &random) < limitChanges {
            changeLimits()
            check()
            return
        }
        switch Int.random(in: 0..<1000, using: &random) {
        case ..<290: request()
        case ..<300: changePriority()
        case ..<390: cancel()
        case ..<560: endDial(succeeds: true)
        case ..<630: endDial(succeeds: false)
        case ..<870: release()
        case ..<900: reject()
        case ..<930: die()
        case ..<960: stale()
        case ..<985:
            now += UInt64.random(in: 0...20_000_000_000, using: &random)
            let deadline = pool.nextDeadline
            let effects = pool.expire(now: now)
            if deadline ?? .max > now, !effects.closes.isEmpty { fault("expired before the deadline") }
            apply(effects)
        case ..<992: apply(pool.closeIdle(Int.random(in: 0..<6, using: &random)))
        default: now += 100_000_000_000
        }
        check()
    }

    /// Ends everything in flight in random order and checks that nothing is left.
    mutating func finish() {
        while !waiting.isEmpty || !leased.isEmpty || !dialing.isEmpty {
            switch Int.random(in: 0..<3, using: &random) {
            case 0: cancel()
            case 1: endDial(succeeds: Bool.random(using: &random))
            default: release()
            }
            check()
        }
        now += 1_000_000_000_000
        apply(pool.expire(now: now))
        check()
        if pool.counts != PoolCounts() { fault("left over: \(pool.counts)") }
        if !pool.hostCounts.isEmpty { fault("hosts left over") }
        if pool.nextDeadline != nil { fault("a deadline without a connection") }
        if !idle.isEmpty { fault("idle connections left over") }
    }

    /// Shuts the pool down between random events and checks that it drains.
    mutating func shutdown() {
        let effects = pool.shutdown()
        if effects.failures.count != waiting.count { fault("shutdown forgot a waiting request") }
        apply(effects)
        check()
        if !pool.request(0, now: now).isRejected { fault("accepted a request after shutdown") }
        while !leased.isEmpty || !dialing.isEmpty {
            if Bool.random(using: &random) {
                endDial(succeeds: Bool.random(using: &random))
            } else {
                release()
            }
            check()
        }
        if !pool.isDrained { fault("not drained: \(pool.counts)") }
    }

    private mutating func request() {
        let key = Int.random(in: 0..<6, using: &random)
        let priority = RequestPriority.allCases.randomElement(using: &random) ?? .normal
        let order = QueueOrder.allCases.randomElement(using: &random) ?? .firstComeFirstServed
        let hadIdle = idle.values.contains(key)
        // Half of the time the short form is used first, as by the pool's owner.
        let taken =
            Bool.random(using: &random)
            ? pool.takeIdle(key, priority: priority, order: order, now: now) : nil
        let admission =
            taken.map { PoolMachine<Int>.Admission(lease: $0) }
            ?? pool.request(key, priority: priority, order: order, now: now)
        number += 1
        let entry = Leased(key: key, priority: priority, order: order, arrival: now, number: number)
        if admission.lease != nil, !hadIdle { fault("lent what was not idle") }
        admit(admission, entry)
    }

    /// Changes the priority, usually of a queued request and otherwise of one with a connection.
    private mutating func changePriority() {
        let priority = RequestPriority.allCases.randomElement(using: &random) ?? .normal
        let before = pool.counts
        if let waiter = waiting.keys.sorted(by: order).randomElement(using: &random) {
            pool.setPriority(priority, of: waiter)
            waiting[waiter]?.priority = priority
        } else if let connection = leased.keys.sorted(by: order).randomElement(using: &random),
            let waiter = leased[connection]?.waiter
        {
            pool.setPriority(priority, of: waiter)
            leased[connection]?.priority = priority
        }
        if pool.counts != before { fault("a priority moved a connection") }
    }

    private mutating func cancel() {
        guard let waiter = waiting.keys.sorted(by: order).randomElement(using: &random) else { return }
        let answer = pool.cancel(waiter)
        if answer.outcome != .withdrawn { fault("a waiting request could not be cancelled") }
        waiting[waiter] = nil
        formerWaiters.append(waiter)
        apply(answer.effects)
    }

    private mutating func endDial(succeeds: Bool) {
        guard let connection = dialing.keys.sorted(by: order).randomElement(using: &random) else { return }
        let key = dialing[connection] ?? -1
        dialing[connection] = nil
        guard succeeds else {
            gone.append(connection)
            apply(pool.dialFailed(connection))
            return
        }
        idle[connection] = key
        apply(pool.dialSucceeded(connection, now: now))
    }

    private mutating func release() {
        guard let connection = leased.keys.sorted(by: order).randomElement(using: &random) else { return }
        let key = leased[connection]?.key ?? -1
        if let waiter = leased[connection]?.waiter {
            if pool.cancel(waiter).outcome != .alreadyGranted(connection) { fault("forgot a grant") }
            formerWaiters.append(waiter)
        }
        leased[connection] = nil
        idle[connection] = key
        let isReusable = Int.random(in: 0..<10, using: &random) != 0
        let timeout: UInt64? =
            Bool.random(using: &random) ? nil : .random(in: 0...9_000_000_000, using: &random)
        let effects = pool.released(connection, isReusable: isReusable, keepAliveTimeout: timeout, now: now)
        if !isReusable, !effects.closes.contains(connection) { fault("kept what is not reusable") }
        apply(effects)
    }

    private mutating func reject() {
        guard let connection = leased.keys.sorted(by: order).randomElement(using: &random),
            let entry = leased[connection]
        else { return }
        leased[connection] = nil
        idle[connection] = entry.key
        let admission = pool.checkoutRejected(connection, now: now)
        if !admission.effects.closes.contains(connection) { fault("kept a dead connection") }
        admit(admission, entry)
    }

    private mutating func die() {
        guard let connection = idle.keys.sorted(by: order).randomElement(using: &random) else { return }
        let effects = pool.connectionDied(connection)
        if effects.closes != [connection] { fault("kept a dead connection") }
        apply(effects)
    }

    /// Sends late or mismatched events, which must change nothing.
    private mutating func stale() {
        let before = pool.hostCounts
        let candidates = gone.suffix(50) + leased.keys.sorted(by: order)
        if let connection = candidates.randomElement(using: &random) {
            if !pool.connectionDied(connection).isEmpty { fault("believed a late death") }
            if !pool.dialFailed(connection).isEmpty { fault("believed a late failure") }
            if !pool.dialSucceeded(connection, now: now).isEmpty { fault("believed a late success") }
        }
        if let connection = gone.suffix(50).randomElement(using: &random) {
            let effects = pool.released(connection, isReusable: true, now: now)
            if !effects.isEmpty { fault("believed a late release") }
            if pool.checkoutRejected(connection, now: now) != .init() { fault("believed a late rejection") }
        }
        if let waiter = formerWaiters.suffix(50).randomElement(using: &random) {
            if pool.cancel(waiter) != .init(outcome: .unknown) { fault("believed a late cancellation") }
            pool.setPriority(.highest, of: waiter)
        }
        for dial in dialing.keys {
            if !pool.isDialing(dial) { fault("forgot a dial") }
            guard let waiter = pool.waiter(of: dial) else { continue }
            if waiting[waiter] == nil || !pool.isDialing(for: waiter) { fault("dials for nobody") }
        }
        if pool.hostCounts != before { fault("a late event changed the pool") }
    }

    private mutating func changeLimits() {
        limits = PoolLimits(
            connectionsPerHost: .random(in: 1...5, using: &random),
            totalConnections: .random(in: 1...12, using: &random),
            idleConnectionsPerHost: .random(in: 0...4, using: &random),
            idleConnections: .random(in: 0...8, using: &random),
            idleLifetime: .seconds(Int.random(in: 0...90, using: &random)),
            maximumAge: Bool.random(using: &random) ? nil : .seconds(Int.random(in: 0...200, using: &random)),
            maximumUses: Bool.random(using: &random) ? nil : .random(in: 1...20, using: &random),
            agingInterval: Bool.random(using: &random)
                ? nil : .milliseconds(Int.random(in: 0...2000, using: &random)))
        if Bool.random(using: &random) {
            limits.connectionsToHosts = [
                "0": .random(in: 0...6, using: &random), "1": .random(in: 0...6, using: &random),
            ]
        }
        let effects = pool.setLimits(limits, now: now)
        isDraining = true
        apply(effects)
    }

    // MARK: Records

    private mutating func admit(_ admission: PoolMachine<Int>.Admission, _ entry: Leased) {
        if let connection = admission.lease {
            if admission.waiter != nil { fault("lent and made wait") }
            take(connection, entry, waiter: nil)
        } else if let waiter = admission.waiter {
            if idle.contains(where: { $0.value == entry.key && !admission.effects.closes.contains($0.key) }) {
                fault("made wait beside an idle connection")
            }
            if waiting[waiter] != nil { fault("one name for two requests") }
            waiting[waiter] = Waiting(
                key: entry.key, priority: entry.priority, order: entry.order, arrival: entry.arrival,
                number: entry.number)
        } else {
            fault("refused a request")
        }
        apply(admission.effects)
    }

    private mutating func apply(_ effects: PoolMachine<Int>.Effects) {
        if let grant = effects.grant {
            if let waiter = waiting[grant.waiter] {
                if let first = firstWaiter(of: waiter.key), first != waiter.number {
                    fault("granted \(waiter.number) before \(first)")
                }
                waiting[grant.waiter] = nil
                let entry = Leased(
                    key: waiter.key, priority: waiter.priority, order: waiter.order, arrival: waiter.arrival,
                    number: waiter.number)
                take(grant.connection, entry, waiter: grant.waiter)
            } else {
                fault("granted to nobody")
            }
        }
        for waiter in effects.failures {
            if waiting.removeValue(forKey: waiter) == nil { fault("failed nobody") }
            formerWaiters.append(waiter)
        }
        for connection in effects.closes {
            if idle.removeValue(forKey: connection) == nil { fault("closed what was not free") }
            gone.append(connection)
        }
        for dial in effects.dials {
            if dialing.updateValue(dial.key, forKey: dial.connection) != nil { fault("dialed twice") }
            if !waiting.values.contains(where: { $0.key == dial.key }) { fault("dialed without a waiter") }
            let open = dialing.count + idle.count + leased.count
            if open > limits.totalConnections { fault("dialed above the total limit") }
            let own =
                dialing.values.count { $0 == dial.key } + idle.values.count { $0 == dial.key }
                + leased.values.count { $0.key == dial.key }
            if own > limit(of: dial.key) { fault("dialed above the host's limit") }
        }
        for connection in effects.abandons where dialing[connection] == nil { fault("abandoned an unknown dial") }
    }

    private mutating func take(_ connection: PoolConnectionID, _ entry: Leased, waiter: PoolWaiterID?) {
        if idle.removeValue(forKey: connection) != entry.key { fault("lent what was not free") }
        var entry = entry
        entry.waiter = waiter
        leased[connection] = entry
    }

    private func limit(of key: Int) -> Int {
        max(1, limits.connectionsToHosts["\(key)"] ?? limits.connectionsPerHost)
    }

    /// Returns the number of the next request to serve, found by comparing all levels after aging.
    private func firstWaiter(of key: Int) -> Int? {
        // An interval that outlasts the test disables aging.
        let aging = limits.agingInterval.map { Int64($0 / .nanoseconds(1)) } ?? 1 << 58
        let candidates = waiting.values.filter { $0.key == key }
        func isLastFirst(_ request: Waiting) -> Bool { request.order == .lastComeFirstServed && aging > 0 }
        func level(_ request: Waiting) -> Int64 {
            let arrival = Int64(request.arrival)
            let begin = isLastFirst(request) ? arrival / aging * aging : arrival
            return Int64(request.priority.rawValue) * aging + Int64(now) - begin
        }
        return candidates.max { left, right in
            if level(left) != level(right) { return level(left) < level(right) }
            if left.priority != right.priority { return left.priority < right.priority }
            if isLastFirst(left) != isLastFirst(right) { return isLastFirst(left) }
            return isLastFirst(left) ? left.number < right.number : left.number > right.number
        }?.number
    }

    private mutating func check() {
        if isDraining {
            let hosts = pool.hostCounts
            let isOver =
                pool.counts.connections > limits.totalConnections
                || hosts.contains { $0.value.connections > limit(of: $0.key) }
            if !isOver { isDraining = false }
        }
        for text in pool.checkInvariants(isDraining: isDraining) { fault(text) }
        let counts = PoolCounts(
            leased: leased.count, idle: idle.count, dialing: dialing.count, waiting: waiting.count)
        if counts != pool.counts { fault("the books say \(counts), the pool \(pool.counts)") }
    }

    private mutating func fault(_ text: String) {
        if faults.count < 5 { faults.append("request \(number): \(text)") }
    }

    private func order(_ left: PoolConnectionID, _ right: PoolConnectionID) -> Bool {
        (left.index, left.generation) < (right.index, right.generation)
    }

    private func order(_ left: PoolWaiterID, _ right: PoolWaiterID) -> Bool {
        (left.index, left.generation) < (right.index, right.generation)
    }
}
