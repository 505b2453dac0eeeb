package import MartletTransport
import Synchronization

/// A limiter of the bandwidth of transfers: each read and each write requests the number of bytes that it may move now.
/// Without limits, this check only loads one flag.
package final class BandwidthLimiter: TimerTarget {
    /// The wait of a transfer for a number of bytes. Cancelling the transfer interrupts the wait.
    package typealias Wait = OneShot<Int>

    private struct State {
        /// The machines by direction.
        var machines = InlineArray<2, BandwidthMachine>(repeating: BandwidthMachine())
        var waits: [UInt64: Wait] = [:]
        var lastNumber: UInt64 = 0
        /// The time of the timer, which may be earlier than needed, but never later.
        var alarm: MonotonicTime?
        /// The number of the current timer; older timers are ignored.
        var alarmNumber: UInt64 = 0

        mutating func nextNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }

        mutating func takeGrants(_ effects: BandwidthMachine.Effects) -> [(wait: Wait, byteCount: Int)] {
            effects.grants.compactMap { grant in waits.removeValue(forKey: grant.request).map { ($0, grant.byteCount) }
            }
        }
    }

    private let loop: EventLoop
    /// Shared by transfers, the timer, and changes of limits.
    private let state = Mutex(State())
    /// The directions with a limit, as bits.
    private let active = Atomic(0)
    /// The number of transfers with their own limits.
    private let transferCount = Atomic(0)

    /// Creates a limiter.
    /// - Parameters:
    ///   - limits: The initial limits.
    ///   - loop: The event loop whose timer wakes waiting transfers.
    package init(limits: BandwidthLimits = .none, loop: EventLoop) {
        self.loop = loop
        if limits != .none { setLimits(limits) }
    }

    /// Whether a direction has a limit.
    package func isActive(_ direction: TransferDirection) -> Bool {
        active.load(ordering: .relaxed) & 1 << direction.rawValue != 0
    }

    package var hasTransfers: Bool { transferCount.load(ordering: .relaxed) > 0 }

    // MARK: Limits

    /// Changes the limits for all transfers together and for each host. They also apply to waiting transfers.
    package func setLimits(_ limits: BandwidthLimits) {
        for direction in TransferDirection.allCases {
            change { state, now in
                state.machines[direction.rawValue].setRates(
                    total: limits.total.rate(direction), perHost: limits.perHost.rate(direction), now: now)
            }
        }
    }

    /// Registers a transfer with its own limit, and returns its number. ``leave(_:)`` removes the transfer.
    package func enter(_ limit: BandwidthLimit) -> UInt64 {
        let number = state.withLock { $0.nextNumber() }
        transferCount.add(1, ordering: .relaxed)
        setLimit(limit, ofTransfer: number)
        return number
    }

    package func setLimit(_ limit: BandwidthLimit, ofTransfer number: UInt64) {
        for direction in TransferDirection.allCases {
            change { state, now in
                state.machines[direction.rawValue].setRate(limit.rate(direction), ofTransfer: number, now: now)
            }
        }
    }

    /// Returns the effect of the limits on a numbered transfer since the last call of this function.
    package func takeThrottling(transfer number: UInt64, _ direction: TransferDirection) -> BandwidthThrottling {
        guard isActive(direction) else { return .unlimited }
        return state.withLock { $0.machines[direction.rawValue].takeThrottling(transfer: number) }
    }

    /// Removes a transfer with its own limit.
    package func leave(_ number: UInt64) {
        transferCount.subtract(1, ordering: .relaxed)
        setLimit(.none, ofTransfer: number)
    }

    // MARK: Transfers

    /// Waits until bytes may be transferred.
    /// - Parameters:
    ///   - wanted: The number of bytes that the caller could move; at least 1.
    ///   - wait: A new wait of the caller; interrupting it ends this call.
    /// - Returns: The number of bytes that may be transferred, at least 1; or the reason that the wait ended.
    package func acquire(
        _ wanted: Int, _ direction: TransferDirection, in scope: BandwidthScope, by wait: Wait,
        until deadline: MonotonicTime
    ) async -> Wait.Outcome {
        var number: UInt64 = 0
        change { state, now in
            number = state.nextNumber()
            state.waits[number] = wait
            return state.machines[direction.rawValue].request(number, wanted, in: scope, now: now)
        }
        let outcome = await wait.wait(until: deadline, on: loop)
        if case .value = outcome { return outcome }
        state.withLock { [number] state in
            if state.waits.removeValue(forKey: number) != nil { state.machines[direction.rawValue].cancel(number) }
        }
        return outcome
    }

    /// Returns granted bytes that were not transferred.
    package func refund(_ count: Int, _ direction: TransferDirection, in scope: BandwidthScope) {
        guard count > 0 else { return }
        state.withLock { $0.machines[direction.rawValue].refund(count, in: scope) }
    }

    /// The number of transfers that wait.
    package var waitingCount: Int { state.withLock { $0.waits.count } }

    // MARK: Effects

    /// Passes an event to a machine, and performs the effects.
    private func change(_ event: (inout State, MonotonicTime) -> BandwidthMachine.Effects) {
        let (grants, alarm) = state.withLock { state in
            let effects = event(&state, MonotonicTime.now())
            var bits = 0
            for index in state.machines.indices where state.machines[index].isActive { bits |= 1 << index }
            active.store(bits, ordering: .relaxed)
            var alarm: (time: MonotonicTime, number: UInt64)?
            // The timer that is already set may be early enough.
            if let wake = effects.wake, wake < (state.alarm ?? .distantFuture) {
                state.alarm = wake
                state.alarmNumber += 1
                alarm = (wake, state.alarmNumber)
            }
            return (state.takeGrants(effects), alarm)
        }
        // A grant for an interrupted wait is lost, which exceeds no limit.
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
                // The same timer continues, and stays valid.
                if let wake = effects.wake { state.alarm = min(state.alarm ?? wake, wake) }
            }
            return (grants, state.alarm)
        }
        for grant in grants { grant.wait.fulfill(grant.byteCount) }
        return next
    }
}

/// The effect of the limits on a transfer, or on a group of transfers with one number, since the last query.
package enum BandwidthThrottling: Equatable, Sendable {
    case unlimited
    /// No bytes were requested, and no request waits.
    case idle
    /// All requests were granted immediately.
    case free
    /// A request had to wait: the transfer could be faster.
    case held
}

/// The limits that apply to a transfer, in addition to the limit for all transfers.
package struct BandwidthScope: Sendable {
    /// The host, if hosts have limits; `nil` if they do not apply to the transfer.
    package var host: String?
    /// The number of the transfer's own limit; `nil` if it has none.
    package var transfer: UInt64?

    package init(host: String? = nil, transfer: UInt64? = nil) { (self.host, self.transfer) = (host, transfer) }
}

/// The limiter of one transfer, and the transfer's scope.
package struct TransferRateLimit: Sendable {
    let limiter: BandwidthLimiter
    let scope: BandwidthScope

    package init(_ limiter: BandwidthLimiter, scope: BandwidthScope) { (self.limiter, self.scope) = (limiter, scope) }
}

/// The bandwidth limits for the bodies of a session, for all together and for each host.
///
/// They count the bytes of bodies on the wire, without heads and chunk framing. While a transfer is delayed, nothing is
/// read or written, so the TCP window slows the peer down (RFC 9293 §3.8.6). A delay suspends the idle timeout, but not
/// the total timeout. Transfers take turns, so that none is starved by another.
public struct BandwidthLimits: Hashable, Sendable, Codable {
    /// The limit of all transfers together.
    public var total: BandwidthLimit
    /// The limit of the transfers with each host, for all of its ports together.
    public var perHost: BandwidthLimit

    /// Creates limits; none by default.
    public init(total: BandwidthLimit = .none, perHost: BandwidthLimit = .none) {
        (self.total, self.perHost) = (total, perHost)
    }

    /// Decodes limits; none for a missing key.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            total: try container.value(.total, or: .none), perHost: try container.value(.perHost, or: .none))
    }

    /// No limits in either direction.
    public static let none = BandwidthLimits()
}

/// The rates of bodies in both directions; a direction without a rate is not limited.
public struct BandwidthLimit: Hashable, Sendable, Codable {
    /// The rate of bodies that are sent.
    public var upload: BandwidthRate?
    /// The rate of bodies that are received.
    public var download: BandwidthRate?

    /// Creates a limit; none by default.
    public init(upload: BandwidthRate? = nil, download: BandwidthRate? = nil) {
        (self.upload, self.download) = (upload, download)
    }

    /// No limits in either direction.
    public static let none = BandwidthLimit()

    package func rate(_ direction: TransferDirection) -> BandwidthRate? {
        switch direction {
        case .up: upload
        case .down: download
        }
    }
}

/// A rate in bytes per second, and the size of a burst.
public struct BandwidthRate: Hashable, Sendable, Codable {
    /// Bytes per second, clamped to the range from 1 byte to 1 TB. To stop a transfer, pause its task.
    public var bytesPerSecond: Int
    /// The number of bytes that may pass immediately after an idle time; `nil` (the default) for the bytes of 50 ms.
    ///
    /// The minimum is the smaller of 256 KiB and the bytes of 20 ms, so that transfers are not woken too often.
    public var burst: Int?

    /// Creates a rate.
    public init(bytesPerSecond: Int, burst: Int? = nil) { (self.bytesPerSecond, self.burst) = (bytesPerSecond, burst) }

    /// Returns a rate with the default burst.
    public static func bytesPerSecond(_ count: Int) -> BandwidthRate { BandwidthRate(bytesPerSecond: count) }

    /// Decodes a rate.
    /// - Throws: `DecodingError.dataCorrupted` for numbers below 1.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        bytesPerSecond = try container.decode(Int.self, forKey: .bytesPerSecond)
        burst = try container.decodeIfPresent(Int.self, forKey: .burst)
        guard bytesPerSecond >= 1, burst ?? 1 >= 1 else {
            throw DecodingError.dataCorruptedError(
                forKey: .bytesPerSecond, in: container, debugDescription: "a rate must be at least 1")
        }
    }

    /// The rate within its bounds.
    var effectiveRate: Double { Self.bounded(bytesPerSecond) }

    /// The number of bytes that are granted together: the bytes of 20 ms, at most 256 KiB.
    var portion: Int { min(max(1, Int(effectiveRate / 50)), 256 << 10) }

    /// The capacity of the bucket, in bytes.
    var effectiveBurst: Double { max(Double(portion), burst.map(Self.bounded) ?? (effectiveRate / 20).rounded(.up)) }

    private static func bounded(_ count: Int) -> Double { Double(min(max(1, count), 1_000_000_000_000)) }
}

package enum TransferDirection: Int, Sendable, CaseIterable {
    case up
    case down
}
