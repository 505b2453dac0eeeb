/// The state machine that decides which addresses of a host are tried, when, and which attempt wins (RFC 8305 §5).
///
/// The machine never sees a socket or a clock; times are nanoseconds of any monotonic clock. Each event is one
/// `mutating` function that returns the actions that it requires (``Effects``).
///
/// The first TCP connection wins, and TLS is tried only on this connection. If TLS fails, the race continues: first
/// with the addresses whose attempts were cancelled without a result, then with the addresses that were not tried yet.
package struct ConnectRaceMachine<Address: RaceAddress, Failure: Sendable>: Sendable {
    /// One attempt to connect to an address. A second attempt for the same address has another number.
    package struct Attempt: Hashable, Sendable {
        /// The number of the attempt in the order of starting, from 0.
        package let number: Int
        package let address: Address
    }

    package struct FailedAttempt: Sendable {
        package let attempt: Attempt
        package let failure: Failure
    }

    /// The actions that an event requires. They do not depend on each other.
    package struct Effects: Sendable {
        /// An attempt to start. Report its result with `connected` or `attemptFailed`.
        package var start: Attempt?
        /// Attempts to cancel and close. Their results need not be reported.
        package var cancels: [Attempt] = []
        /// The time at which to call `timerFired`; it replaces an earlier value. `nil` changes nothing.
        package var timer: UInt64?
        /// The attempt that won. Report its TLS result with `winnerSucceeded` or `winnerFailed`; without TLS, success.
        package var winner: Attempt?
        /// All failures in chronological order, if the race is lost. Empty if there was no address to try.
        package var failures: [FailedAttempt]?
    }

    private enum State: Sendable {
        /// The race has not started.
        case ready
        /// At least one attempt is running.
        case racing
        /// An attempt has connected, and its TLS handshake is running. No other attempt is running.
        case proving(Attempt)
        /// The race is over, and nothing is running. Contains the winner, if there is one.
        case over(Attempt?)
    }

    private var state = State.ready
    /// Addresses still to be tried, the next first.
    private var waiting: ArraySlice<Address>
    /// Attempts without an outcome, in the order of starting; at most `addressLimit`.
    private var running: [Attempt] = []
    private var failures: [FailedAttempt] = []
    private var nextNumber = 0
    private let delay: UInt64

    /// The time at which the timer fires; `nil` if no address waits to be tried.
    package private(set) var deadline: UInt64?

    /// Creates a race that has not started.
    /// - Parameters:
    ///   - addresses: The addresses from the resolver, best first.
    ///   - memory: Addresses that failed recently; they are tried last.
    package init(
        addresses: [Address], settings: HappyEyeballsOptions = HappyEyeballsOptions(),
        memory: AddressMemory<Address> = AddressMemory(), now: UInt64
    ) {
        let order = ConnectRacePlan.order(addresses, settings: settings) { memory.hasFailedRecently($0, now: now) }
        waiting = order[...]
        delay = settings.attemptDelayInNanoseconds
    }

    /// Whether the race is over: won, lost or cancelled.
    package var isOver: Bool { if case .over = state { true } else { false } }

    /// The address to try, if there is only one and the race has not started: it needs no race.
    package var onlyAddress: Address? {
        guard case .ready = state, waiting.count == 1 else { return nil }
        return waiting.first
    }

    /// Starts the race; does nothing if it was started.
    package mutating func start(now: UInt64) -> Effects {
        guard case .ready = state else { return Effects() }
        return startNext(now: now)
    }

    /// Handles an attempt that has connected. A running attempt wins, and all others are cancelled. An attempt that was
    /// cancelled before is returned in ``Effects/cancels``, so that it is closed.
    package mutating func connected(_ attempt: Attempt) -> Effects {
        var effects = Effects()
        guard let index = running.firstIndex(of: attempt) else {
            if attempt != winner { effects.cancels = [attempt] }
            return effects
        }
        running.remove(at: index)
        effects.winner = attempt
        effects.cancels = running
        waiting = running.map(\.address) + waiting
        running = []
        deadline = nil
        state = .proving(attempt)
        return effects
    }

    /// Handles the failure of an attempt; the next one starts immediately. The last failure loses the race.
    package mutating func attemptFailed(_ attempt: Attempt, _ failure: Failure, now: UInt64) -> Effects {
        guard let index = running.firstIndex(of: attempt) else { return Effects() }
        running.remove(at: index)
        failures.append(FailedAttempt(attempt: attempt, failure: failure))
        return startNext(now: now)
    }

    /// Handles the timer: starts the next attempt in parallel with the running ones. Does nothing before the deadline.
    package mutating func timerFired(now: UInt64) -> Effects {
        guard case .racing = state, let deadline, deadline <= now else { return Effects() }
        return startNext(now: now)
    }

    /// Handles the success of the winner. The race is over.
    package mutating func winnerSucceeded() {
        guard case .proving(let winner) = state else { return }
        state = .over(winner)
        waiting = []
    }

    /// Handles the winner's failure during the TLS handshake: the race continues.
    package mutating func winnerFailed(_ failure: Failure, now: UInt64) -> Effects {
        guard case .proving(let winner) = state else { return Effects() }
        failures.append(FailedAttempt(attempt: winner, failure: failure))
        return startNext(now: now)
    }

    /// Cancels the race with all attempts, the winner included.
    package mutating func cancel() -> Effects {
        var effects = Effects()
        effects.cancels = running
        if case .proving(let winner) = state { effects.cancels.append(winner) }
        running = []
        waiting = []
        deadline = nil
        state = .over(nil)
        return effects
    }

    /// Starts the next attempt, if an address is left. If none is left and no attempt is running, the race is lost.
    private mutating func startNext(now: UInt64) -> Effects {
        var effects = Effects()
        deadline = nil
        if let address = waiting.popFirst() {
            let attempt = Attempt(number: nextNumber, address: address)
            nextNumber += 1
            running.append(attempt)
            effects.start = attempt
            state = .racing
            if !waiting.isEmpty {
                let (time, isTooLate) = now.addingReportingOverflow(delay)
                deadline = isTooLate ? .max : time
                effects.timer = deadline
            }
        } else if running.isEmpty {
            state = .over(nil)
            effects.failures = failures
        }
        return effects
    }

    private var winner: Attempt? {
        switch state {
        case .ready, .racing: nil
        case .proving(let winner): winner
        case .over(let winner): winner
        }
    }
}

/// An address that can take part in a ``ConnectRaceMachine``: a resolved IPv4 or IPv6 address with its port, or a unix
/// domain socket, which is neither.
package protocol RaceAddress: Hashable, Sendable {
    var isIPv4: Bool { get }
    var isIPv6: Bool { get }
}

extension SocketAddress: RaceAddress {
    package var isIPv4: Bool { family == .ipv4 }
    package var isIPv6: Bool { family == .ipv6 }
}

/// The order of the connection attempts to the addresses of a host (RFC 8305 §4). The two address families alternate,
/// so a broken family delays a connection by only one attempt. Addresses that failed recently come last, and alternate
/// in the same way. Duplicates are tried once.
package enum ConnectRacePlan {
    /// Orders addresses.
    /// - Parameters:
    ///   - addresses: The addresses from the resolver, best first.
    ///   - isAvoided: Whether an address failed recently.
    /// - Returns: At most `settings.addressLimit` addresses; empty without an address of an allowed family.
    package static func order<Address: RaceAddress>(
        _ addresses: [Address], settings: HappyEyeballsOptions, avoiding isAvoided: (Address) -> Bool
    ) -> [Address] {
        var seen: Set<Address> = []
        let usable = addresses.filter { address in
            switch settings.families {
            case .any: seen.insert(address).inserted
            case .ipv4Only: !address.isIPv6 && seen.insert(address).inserted
            case .ipv6Only: !address.isIPv4 && seen.insert(address).inserted
            }
        }
        guard let first = usable.first else { return [] }
        let startsWithIPv6 =
            switch settings.firstFamily {
            case .ipv6: true
            case .ipv4: false
            case .asResolved: first.isIPv6
            }
        let avoided = Set(usable.filter(isAvoided))
        let count = max(1, settings.firstFamilyCount)
        let order =
            interleave(usable.filter { !avoided.contains($0) }, startsWithIPv6: startsWithIPv6, firstCount: count)
            + interleave(usable.filter { avoided.contains($0) }, startsWithIPv6: startsWithIPv6, firstCount: count)
        return Array(order.prefix(max(1, settings.addressLimit)))
    }

    /// Puts `firstCount` addresses of the first family first; after them, the two families alternate.
    private static func interleave<Address: RaceAddress>(_ addresses: [Address], startsWithIPv6: Bool, firstCount: Int)
        -> [Address]
    {
        let first = addresses.filter { $0.isIPv6 == startsWithIPv6 }
        var order = Array(first.prefix(firstCount))
        var rest = first.dropFirst(firstCount)
        var others = addresses.filter { $0.isIPv6 != startsWithIPv6 }[...]
        while !rest.isEmpty || !others.isEmpty {
            if let address = others.popFirst() { order.append(address) }
            if let address = rest.popFirst() { order.append(address) }
        }
        return order
    }
}

/// The addresses that failed recently, and are therefore tried last. A failure counts for ``lifetime``, or until a
/// connection to the address succeeds. At the capacity, the oldest failure is removed.
package struct AddressMemory<Address: Hashable & Sendable>: Sendable {
    package let capacity: Int
    /// The time for which a failure counts, in nanoseconds.
    package let lifetime: UInt64

    private var failures: [Address: UInt64] = [:]

    /// Creates an empty memory.
    /// - Parameters:
    ///   - capacity: The maximum number of addresses; at least 1; 256 by default.
    ///   - lifetime: The time for which a failure counts, in nanoseconds; 10 minutes by default.
    package init(capacity: Int = 256, lifetime: UInt64 = 600_000_000_000) {
        self.capacity = max(1, capacity)
        self.lifetime = lifetime
    }

    /// The number of addresses, including those whose failure no longer counts.
    package var count: Int { failures.count }

    /// Whether the address failed within ``lifetime`` before `now`.
    package func hasFailedRecently(_ address: Address, now: UInt64) -> Bool {
        failures[address].map { isRecent($0, now: now) } ?? false
    }

    private func isRecent(_ time: UInt64, now: UInt64) -> Bool { now < time || now - time < lifetime }

    /// Records that the address failed. If the memory is full, the call takes time in proportion to the capacity.
    package mutating func recordFailure(_ address: Address, now: UInt64) {
        if failures.count >= capacity, failures[address] == nil {
            failures = failures.filter { isRecent($0.value, now: now) }
            if failures.count >= capacity, let oldest = failures.min(by: { $0.value < $1.value }) {
                failures[oldest.key] = nil
            }
        }
        failures[address] = now
    }

    /// Removes the failure of an address to which a connection succeeded.
    package mutating func recordSuccess(_ address: Address) { failures[address] = nil }
}
