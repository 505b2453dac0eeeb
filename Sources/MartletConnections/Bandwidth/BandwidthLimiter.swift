package import MartletTransport
import Synchronization

/// Holds transfers to their limits: each read and each write asks for the number of bytes that may move now.
///
/// While there is no limit, the query whether there is one costs the load of a flag.
package final class BandwidthLimiter: TimerTarget {
    /// The wait of a transfer for the number of bytes that it is granted. Cancelling the transfer interrupts it.
    package typealias Wait = OneShot<Int>

    private struct State {
        /// The machines by direction.
        var machines = InlineArray<2, BandwidthMachine>(repeating: BandwidthMachine())
        var waits: [UInt64: Wait] = [:]
        var lastNumber: UInt64 = 0
        /// The time of the timer; it may come earlier than needed, never later.
        var alarm: MonotonicTime?
        /// The timer that counts: one that was set for later than the next is ignored.
        var alarmNumber: UInt64 = 0

        mutating func nextNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }

        mutating func takeGrants(_ effects: BandwidthMachine.Effects) -> [(wait: Wait, byteCount: Int)] {
            effects.grants.compactMap { grant in
                waits.removeValue(forKey: grant.request).map { ($0, grant.byteCount) }
            }
        }
    }

    private let loop: EventLoop
    /// Guards the state: transfers, the timer, and changes of limits.
    private let state = Mutex(State())
    /// The directions in which something may be held back, as bits.
    private let active = Atomic(0)
    /// The number of transfers with limits of their own.
    private let transferCount = Atomic(0)

    /// Creates a governor.
    /// - Parameters:
    ///   - limits: The first limits.
    ///   - loop: Its timer wakes the transfers that wait.
    package init(limits: BandwidthLimits = .none, loop: EventLoop) {
        self.loop = loop
        if limits != .none { setLimits(limits) }
    }

    /// Whether anything may be held back in a direction.
    package func isActive(_ direction: TransferDirection) -> Bool {
        active.load(ordering: .relaxed) & 1 << direction.rawValue != 0
    }

    /// Whether any transfer has a limit of its own.
    package var hasTransfers: Bool { transferCount.load(ordering: .relaxed) > 0 }

    // MARK: Limits

    /// Changes the limits for all and for each host, also for transfers that wait.
    package func setLimits(_ limits: BandwidthLimits) {
        for direction in TransferDirection.allCases {
            change { state, now in
                state.machines[direction.rawValue].setRates(
                    total: limits.total.rate(direction), perHost: limits.perHost.rate(direction), now: now)
            }
        }
    }

    /// Returns the number of a new transfer with a limit of its own; it ends with ``leave(_:)``.
    package func enter(_ limit: BandwidthLimit) -> UInt64 {
        let number = state.withLock { $0.nextNumber() }
        transferCount.add(1, ordering: .relaxed)
        setLimit(limit, ofTransfer: number)
        return number
    }

    /// Changes the limit of one transfer.
    package func setLimit(_ limit: BandwidthLimit, ofTransfer number: UInt64) {
        for direction in TransferDirection.allCases {
            change { state, now in
                state.machines[direction.rawValue].setRate(
                    limit.rate(direction), ofTransfer: number, now: now)
            }
        }
    }

    /// The effect of the limits on a transfer with a number since the last query.
    package func hold(transfer number: UInt64, _ direction: TransferDirection) -> BandwidthThrottling {
        guard isActive(direction) else { return .unlimited }
        return state.withLock { $0.machines[direction.rawValue].hold(transfer: number) }
    }

    /// Ends a transfer with a limit of its own.
    package func leave(_ number: UInt64) {
        transferCount.subtract(1, ordering: .relaxed)
        setLimit(.none, ofTransfer: number)
    }

    // MARK: Transfers

    /// Waits until bytes may move.
    /// - Parameters:
    ///   - wanted: The number of bytes that the caller could move; at least 1.
    ///   - wait: The caller's wait, new; interrupting it ends the waiting.
    /// - Returns: The number of bytes that may move, at least 1; or the way in which the waiting ended.
    package func take(
        _ wanted: Int, _ direction: TransferDirection, in lane: BandwidthScope, by wait: Wait,
        until deadline: MonotonicTime
    ) async -> Wait.Outcome {
        var number: UInt64 = 0
        change { state, now in
            number = state.nextNumber()
            state.waits[number] = wait
            return state.machines[direction.rawValue].request(number, wanted, in: lane, now: now)
        }
        let outcome = await wait.wait(until: deadline, on: loop)
        if case .value = outcome { return outcome }
        state.withLock { [number] state in
            if state.waits.removeValue(forKey: number) != nil {
                state.machines[direction.rawValue].cancel(number)
            }
        }
        return outcome
    }

    /// Gives back bytes that were granted and did not move.
    package func giveBack(_ count: Int, _ direction: TransferDirection, in lane: BandwidthScope) {
        guard count > 0 else { return }
        state.withLock { $0.machines[direction.rawValue].giveBack(count, in: lane) }
    }

    /// The number of transfers that wait.
    package var waitingCount: Int { state.withLock { $0.waits.count } }

    // MARK: Effects

    /// Passes an event to a machine, and runs its effects.
    private func change(_ event: (inout State, MonotonicTime) -> BandwidthMachine.Effects) {
        let (grants, alarm) = state.withLock { state in
            let effects = event(&state, MonotonicTime.now())
            var bits = 0
            for index in state.machines.indices where state.machines[index].isActive { bits |= 1 << index }
            active.store(bits, ordering: .relaxed)
            var alarm: (time: MonotonicTime, number: UInt64)?
            // The timer that is set may come soon enough.
            if let wake = effects.wake, wake < (state.alarm ?? .distantFuture) {
                state.alarm = wake
                state.alarmNumber += 1
                alarm = (wake, state.alarmNumber)
            }
            return (state.takeGrants(effects), alarm)
        }
        // A grant that comes too late for an interrupted wait is lost, which holds the others back by a moment and exceeds no
        // limit.
        for grant in grants { grant.wait.fulfill(grant.byteCount) }
        if let alarm { loop.schedule(self, token: alarm.number, at: alarm.time) }
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let (grants, next) = state.withLock { state -> ([(wait: Wait, byteCount: Int)], MonotonicTime?) in
            guard token == state.alarmNumber else { return ([], nil) }
            state.alarm = nil
            var grants: [(wait: Wait, byteCount: Int)] = []
            for index in state.machines.indices {
                let effects = state.machines[index].advance(to: now)
                grants += state.takeGrants(effects)
                // The same timer goes on, and counts.
                if let wake = effects.wake { state.alarm = min(state.alarm ?? wake, wake) }
            }
            return (grants, state.alarm)
        }
        for grant in grants { grant.wait.fulfill(grant.byteCount) }
        return next
    }
}

/// The effect of a transfer's own limit, or of a group's, since it was last queried.
package enum BandwidthThrottling: Hashable, Sendable {
    /// There is no limit.
    case unlimited
    /// Nothing was requested, and nothing waits: it stands still for other reasons.
    case idle
    /// All requests were granted immediately.
    case free
    /// A request had to wait: the transfer could be faster.
    case held
}

/// The limits of a transfer: the one for all, its host's, and its own.
package struct BandwidthScope: Hashable, Sendable {
    /// The host, if there are limits for hosts; `nil` if they do not concern the transfer.
    package var host: String?
    /// The number of the transfer's own limit; `nil` if it has none.
    package var transfer: UInt64?

    /// Creates a lane.
    package init(host: String? = nil, transfer: UInt64? = nil) {
        self.host = host
        self.transfer = transfer
    }
}

/// The governor of one transfer, and its lane there.
package struct TransferRateLimit: Sendable {
    let governor: BandwidthLimiter
    let lane: BandwidthScope

    /// Creates a pace.
    package init(_ governor: BandwidthLimiter, lane: BandwidthScope) {
        self.governor = governor
        self.lane = lane
    }
}
