extension PoolMachine {
    /// A connection to be made.
    package struct Dial: Hashable, Sendable {
        /// The name of the connection to be. Report its end with `dialSucceeded` or `dialFailed`, exactly once.
        package let connection: PoolConnectionID
        /// Where it leads.
        package let key: Key

        /// Creates a dial.
        package init(connection: PoolConnectionID, key: Key) {
            self.connection = connection
            self.key = key
        }
    }

    /// What the pool's owner has to do after an event. The parts do not depend on each other.
    ///
    /// Run them after the lock around the machine is given up. Nothing is allocated for empty parts.
    package struct Effects: Hashable, Sendable {
        /// The parts that are empty after the commonest events.
        private struct Rare: Hashable, Sendable {
            var failures: [PoolWaiterID] = []
            var closes: [PoolConnectionID] = []
            var dials: [Dial] = []
            var abandons: [PoolConnectionID] = []
            var coverageChanges: [PoolWaiterID] = []
        }

        /// The one request that gets a connection by this event. It holds the connection from now on.
        package var grant: PoolGrant?
        /// No element or one: four empty arrays cost more to hand around than the rest of a hot event takes.
        private var rare: [Rare] = []

        /// Creates effects; nothing at all by default.
        package init(
            grant: PoolGrant? = nil, failures: [PoolWaiterID] = [], closes: [PoolConnectionID] = [],
            dials: [Dial] = [], abandons: [PoolConnectionID] = [], coverageChanges: [PoolWaiterID] = []
        ) {
            self.grant = grant
            let parts = Rare(
                failures: failures, closes: closes, dials: dials, abandons: abandons,
                coverageChanges: coverageChanges)
            if parts != Rare() { rare = [parts] }
        }

        /// Requests that wait no more and have to be told: the failed dial was theirs, or the pool shuts down.
        package var failures: [PoolWaiterID] { rare.first?.failures ?? [] }

        /// Connections to be closed; the machine has forgotten them.
        package var closes: [PoolConnectionID] { rare.first?.closes ?? [] }

        /// Connections to be made.
        package var dials: [Dial] { rare.first?.dials ?? [] }

        /// Dials nobody needs any more: cancel them, and report their end as for every dial. They count against the
        /// limits until then, and one that succeeds nevertheless is used.
        package var abandons: [PoolConnectionID] { rare.first?.abandons ?? [] }

        /// Requests that went on waiting, but for which a dial of another request is made now, or no dial any more. Ask
        /// ``PoolMachine/isDialling(for:)`` which of the two, and set their clocks.
        package var coverageChanges: [PoolWaiterID] { rare.first?.coverageChanges ?? [] }

        /// Whether there is nothing to do.
        package var isEmpty: Bool { grant == nil && !hasRare }

        /// Whether there is more to do than the grant: failures, closes, dials, abandons or
        /// changes of coverage.
        package var hasRare: Bool { !rare.isEmpty }

        mutating func fail(_ waiter: PoolWaiterID) {
            makeRare()
            rare[0].failures.append(waiter)
        }

        mutating func close(_ connection: PoolConnectionID) {
            makeRare()
            rare[0].closes.append(connection)
        }

        mutating func dial(_ dial: Dial) {
            makeRare()
            rare[0].dials.append(dial)
        }

        mutating func abandon(_ connection: PoolConnectionID) {
            makeRare()
            rare[0].abandons.append(connection)
        }

        mutating func changeCoverage(of waiter: PoolWaiterID) {
            makeRare()
            rare[0].coverageChanges.append(waiter)
        }

        private mutating func makeRare() {
            if rare.isEmpty { rare.append(Rare()) }
        }
    }

    /// The answer to a request: a connection, a place in the line, or a refusal.
    package struct Admission: Hashable, Sendable {
        /// The idle connection the request holds from now on and has to release.
        package var lease: PoolConnectionID?
        /// The name under which the request waits. It is named again in `grant`, in `failures`, or when cancelled.
        package var waiter: PoolWaiterID?
        /// What else has to be done.
        package var effects = Effects()

        /// Creates an admission; a refusal by default.
        package init(
            lease: PoolConnectionID? = nil, waiter: PoolWaiterID? = nil, effects: Effects = Effects()
        ) {
            self.lease = lease
            self.waiter = waiter
            self.effects = effects
        }

        /// Whether the pool is shut down and took the request no more.
        package var isRefused: Bool { lease == nil && waiter == nil }
    }

    /// The answer to a cancellation.
    package struct Cancellation: Hashable, Sendable {
        /// What the request was doing.
        package enum Outcome: Hashable, Sendable {
            /// It waited, and waits no more. Nothing else will be said about it: tell it now.
            case withdrawn
            /// It had been granted this connection before and holds it still: whoever received the grant has to
            /// release it. Cancelling changed nothing.
            case alreadyGranted(PoolConnectionID)
            /// There is no such request: it was cancelled, failed, or gave its connection back.
            case unknown
        }

        /// What the request was doing.
        package var outcome: Outcome
        /// What else has to be done.
        package var effects = Effects()

        /// Creates the answer.
        package init(outcome: Outcome, effects: Effects = Effects()) {
            self.outcome = outcome
            self.effects = effects
        }
    }
}
