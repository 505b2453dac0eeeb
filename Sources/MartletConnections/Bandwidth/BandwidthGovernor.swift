package import MartletTransport
import Synchronization

/// Holds transfers to their limits: asked before each read and each write how much may move now.
///
/// While there is no limit, asking whether there is one costs a look at a flag and nothing else.
package final class BandwidthGovernor: TimerTarget {
    /// What a transfer waits for: the bytes it was granted. Whoever cancels the transfer interrupts it.
    package typealias Wait = OneShot<Int>

    private struct State {
        var machines: [TransferDirection: BandwidthMachine] = [
            .up: BandwidthMachine(), .down: BandwidthMachine(),
        ]
        var waits: [UInt64: Wait] = [:]
        var lastNumber: UInt64 = 0
        /// For when the timer is set; it may come earlier than needed, never later.
        var alarm: MonotonicTime?
        /// Which timer counts: one that was set for later than the next is of no account any more.
        var alarmNumber: UInt64 = 0
    }

    private let loop: EventLoop
    /// Guards the above: transfers, the timer, and whoever changes limits.
    private let state = Mutex(State())
    private let isUpActive = Atomic(false)
    private let isDownActive = Atomic(false)
    /// How many transfers have limits of their own.
    private let transferCount = Atomic(0)

    /// A governor.
    /// - Parameters:
    ///   - limits: What holds at first.
    ///   - loop: Whose timer wakes those that wait.
    package init(limits: BandwidthLimits = .none, loop: EventLoop) {
        self.loop = loop
        if limits != .none { setLimits(limits) }
    }

    /// Whether anything may be held back in a direction.
    package func isActive(_ direction: TransferDirection) -> Bool {
        switch direction {
        case .up: isUpActive.load(ordering: .relaxed)
        case .down: isDownActive.load(ordering: .relaxed)
        }
    }

    /// Whether any transfer has a limit of its own.
    package var hasTransfers: Bool { transferCount.load(ordering: .relaxed) > 0 }

    // MARK: Limits

    /// Changes the limits for all and for each host; those that wait are judged anew at once.
    package func setLimits(_ limits: BandwidthLimits) {
        for direction in TransferDirection.allCases {
            change(direction) { machine, now in
                machine.setRates(
                    total: limits.total.rate(direction), perHost: limits.perHost.rate(direction), now: now)
            }
        }
    }

    /// Makes a number for a transfer with a limit of its own; it ends with ``leave(_:)``.
    package func enter(_ limit: BandwidthLimit) -> UInt64 {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        transferCount.add(1, ordering: .relaxed)
        setLimit(limit, ofTransfer: number)
        return number
    }

    /// Changes the limit of one transfer.
    package func setLimit(_ limit: BandwidthLimit, ofTransfer number: UInt64) {
        for direction in TransferDirection.allCases {
            change(direction) { machine, now in
                machine.setRate(limit.rate(direction), ofTransfer: number, now: now)
            }
        }
    }

    /// What the limits did to a transfer with a number since the last look.
    package func hold(transfer number: UInt64, _ direction: TransferDirection) -> BandwidthHold {
        guard isActive(direction) else { return .unlimited }
        return state.withLock { $0.machines[direction]?.hold(transfer: number) ?? .unlimited }
    }

    /// A transfer with a limit of its own has ended.
    package func leave(_ number: UInt64) {
        transferCount.subtract(1, ordering: .relaxed)
        setLimit(.none, ofTransfer: number)
    }

    // MARK: Transfers

    /// Waits until bytes may move.
    /// - Parameters:
    ///   - wanted: How many would be welcome; at least 1.
    ///   - wait: What the caller waits by, new; interrupting it ends the waiting.
    /// - Returns: How many of them may move, at least 1; or how the waiting ended.
    package func take(
        _ wanted: Int, _ direction: TransferDirection, in lane: BandwidthLane, by wait: Wait,
        until deadline: MonotonicTime
    ) async -> Wait.Outcome {
        let number = change(direction, wait: wait) { machine, now, number in
            machine.request(number, wanted, in: lane, now: now)
        }
        let outcome = await wait.wait(until: deadline, on: loop)
        if case .value = outcome { return outcome }
        state.withLock { state in
            if state.waits.removeValue(forKey: number) != nil { state.machines[direction]?.cancel(number) }
        }
        return outcome
    }

    /// Gives back bytes that were granted and did not move.
    package func giveBack(_ count: Int, _ direction: TransferDirection, in lane: BandwidthLane) {
        guard count > 0 else { return }
        state.withLock { $0.machines[direction]?.giveBack(count, in: lane) }
    }

    /// How many transfers wait.
    package var waitingCount: Int { state.withLock { $0.waits.count } }

    // MARK: Effects

    private func change(
        _ direction: TransferDirection,
        _ event: (inout BandwidthMachine, MonotonicTime) -> BandwidthMachine.Effects
    ) { _ = change(direction, wait: nil) { machine, now, _ in event(&machine, now) } }

    /// Tells a machine of an event and does what follows.
    private func change(
        _ direction: TransferDirection, wait: Wait?,
        _ event: (inout BandwidthMachine, MonotonicTime, UInt64) -> BandwidthMachine.Effects
    ) -> UInt64 {
        let (number, granted, alarm) = state.withLock { state -> (UInt64, [Granted], Alarm?) in
            var number: UInt64 = 0
            if let wait {
                state.lastNumber += 1
                number = state.lastNumber
                state.waits[number] = wait
            }
            var machine = state.machines[direction] ?? BandwidthMachine()
            state.machines[direction] = nil
            let effects = event(&machine, MonotonicTime.now(), number)
            switch direction {
            case .up: isUpActive.store(machine.isActive, ordering: .relaxed)
            case .down: isDownActive.store(machine.isActive, ordering: .relaxed)
            }
            state.machines[direction] = machine
            return (number, settle(effects, &state), arm(effects.wake, &state))
        }
        deliver(granted)
        if let alarm { loop.schedule(self, token: alarm.number, at: alarm.time) }
        return number
    }

    private struct Granted {
        var wait: Wait
        var byteCount: Int
    }

    private func settle(_ effects: BandwidthMachine.Effects, _ state: inout State) -> [Granted] {
        effects.grants.compactMap { grant in
            state.waits.removeValue(forKey: grant.request).map {
                Granted(wait: $0, byteCount: grant.byteCount)
            }
        }
    }

    /// Hands out what was granted, outside of the lock. What comes too late for one that was interrupted is lost to all,
    /// which holds the others back by a moment and lets nobody exceed a limit.
    private func deliver(_ granted: [Granted]) { for grant in granted { grant.wait.fulfil(grant.byteCount) } }

    private struct Alarm {
        var time: MonotonicTime
        var number: UInt64
    }

    /// For when a timer has to be set; `nil` where the one that is comes soon enough.
    private func arm(_ wake: MonotonicTime?, _ state: inout State) -> Alarm? {
        guard let wake, wake < (state.alarm ?? .distantFuture) else { return nil }
        state.alarm = wake
        state.alarmNumber += 1
        return Alarm(time: wake, number: state.alarmNumber)
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let (granted, next) = state.withLock { state -> ([Granted], MonotonicTime?) in
            guard token == state.alarmNumber else { return ([], nil) }
            state.alarm = nil
            var granted: [Granted] = []
            var next: MonotonicTime?
            for direction in TransferDirection.allCases {
                guard let effects = state.machines[direction]?.advance(to: now) else { continue }
                granted += settle(effects, &state)
                if let wake = effects.wake { next = min(next ?? wake, wake) }
            }
            // The same timer goes on, and counts.
            state.alarm = next
            return (granted, next)
        }
        deliver(granted)
        return next
    }
}

/// What limits of our own did to a transfer, or a group of them, since it was last looked at.
package enum BandwidthHold: Hashable, Sendable {
    /// There are none.
    case unlimited
    /// Nothing was asked, and nothing waits: it stands still for other reasons.
    case idle
    /// All that was asked was granted at once.
    case free
    /// Something had to wait: it could be faster.
    case held
}

/// Which limits a transfer is under: the one for all, its host's, and its own.
package struct BandwidthLane: Hashable, Sendable {
    /// The host, where there are limits for hosts; `nil` where they do not concern the transfer.
    package var host: String?
    /// The number of the transfer's own limit; `nil` where it has none.
    package var transfer: UInt64?

    /// A lane.
    package init(host: String? = nil, transfer: UInt64? = nil) {
        self.host = host
        self.transfer = transfer
    }
}

/// What one transfer is held to: whom it asks, and as whom.
package struct TransferPace: Sendable {
    let governor: BandwidthGovernor
    let lane: BandwidthLane

    /// A pace.
    package init(_ governor: BandwidthGovernor, lane: BandwidthLane) {
        self.governor = governor
        self.lane = lane
    }

    /// Whether anything may be held back in a direction.
    package func isActive(_ direction: TransferDirection) -> Bool { governor.isActive(direction) }
}
