package import MartletTransport
import Synchronization

/// The right to use one connection, until it is given back; once.
///
/// A lease that is dropped closes its connection: what was not given back in order cannot be trusted to be in order.
///
/// Once given back, it looks after the connection while that idles: nothing else has to be made for it.
package final class Lease: IdleWatcher {
    /// The connection.
    package let connection: HTTP1Connection
    /// Whether it has carried an exchange before.
    package let isReused: Bool
    let id: PoolConnectionID
    let pool: ConnectionPool
    private let isReleased: Atomic<Bool>

    /// A lease.
    /// - Parameter isReleased: Whether nobody has the connection, which idles from its beginning.
    init(
        connection: HTTP1Connection, id: PoolConnectionID, isReused: Bool, pool: ConnectionPool,
        isReleased: Bool = false
    ) {
        self.isReleased = Atomic(isReleased)
        self.connection = connection
        self.id = id
        self.isReused = isReused
        self.pool = pool
    }

    deinit { release(isReusable: false) }

    /// Gives the connection back; the first call counts.
    /// - Parameter isReusable: Whether the exchange ended in order; the connection's own verdict counts besides.
    /// - Parameter now: The present instant, where it is known.
    package func release(isReusable: Bool, at now: MonotonicTime? = nil) {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.release(self, isReusable: isReusable, at: now ?? MonotonicTime.now())
    }

    /// Stops counting the connection against the pool's limits, until it is given back at the latest.
    func exempt() {
        guard !isReleased.load(ordering: .relaxed) else { return }
        pool.exempt(id)
    }

    /// Counts the connection against the pool's limits again.
    func endExemption() { pool.endExemption(id) }

    /// Whether the connection is open, and has said nothing out of turn, at this moment: asks the kernel.
    package var isQuiet: Bool { connection.stream.probe() == .quiet }

    /// Gives up a connection on which nothing was begun, and which whoever has it does not want; its pool does the rest.
    func refuse() { isReleased.store(true, ordering: .relaxed) }

    /// Gives back a connection on which nothing was begun.
    package func returnUnused() {
        guard !isReleased.exchange(true, ordering: .relaxed) else { return }
        pool.returnUnused(self)
    }

    package func idleStreamStirred() {
        // The watch may have been set when somebody had it already: what he reads is his.
        guard pool.isIdle(id), connection.stream.probe() == .unusable else { return }
        pool.idleConnectionDied(id)
    }
}

/// Keeps a connection out of its pool's limits while the call that holds it waits for code of the program.
///
/// That code may make calls to the same host, or wait for other calls that do. The exemption begins after a grace period,
/// so that code which returns at once does not make the pool open connections above its limits.
package final class Exemption: TimerTarget {
    /// The time after which the connection no longer counts.
    package static let grace = Duration.milliseconds(20)

    private enum State {
        case pending
        case exempt
        case ended
    }

    private let lease: Lease
    /// Guards the state: the loop's thread, and the call that ends the exemption.
    private let state = Mutex(State.pending)

    init(_ lease: Lease, loop: EventLoop) {
        self.lease = lease
        loop.schedule(self, token: 0, at: MonotonicTime.now().advanced(by: Exemption.grace))
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let begins = state.withLock { state in
            guard case .pending = state else { return false }
            state = .exempt
            return true
        }
        guard begins else { return nil }
        lease.exempt()
        // The call may have ended the exemption before the pool began it.
        if state.withLock({ $0 == .ended }) { lease.endExemption() }
        return nil
    }

    /// Ends the exemption. Only the first call counts.
    package func end() {
        let wasExempt = state.withLock { state in
            defer { state = .ended }
            if case .exempt = state { return true }
            return false
        }
        if wasExempt { lease.endExemption() }
    }
}

extension ConnectionPool {
    /// Stops counting a connection in use against the limits.
    func exempt(_ id: PoolConnectionID) {
        let work = state.withLock { state in collect(state.machine.exempt(id), &state) }
        run(work)
    }

    /// Counts a connection in use again.
    func endExemption(_ id: PoolConnectionID) { state.withLock { $0.machine.endExemption(id) } }
}

/// What keeps connections apart: where they lead, and how they were opened.
///
/// The dialer stands for everything else that must not be mixed: TLS identity and trust, resolver and overrides, local
/// address, unix domain socket.
package struct ConnectionKey: Hashable, Sendable {
    /// Where the connection leads.
    package var destination: Destination
    /// The dialer's number.
    package var dialer: UInt64
    /// The proxy it leads through, with what that is told and how it is trusted; `nil` for none.
    package var proxy: ProxyServer?

    /// Feeds its parts; the proxy only where there is one, which costs others nothing.
    package func hash(into hasher: inout Hasher) {
        hasher.combine(destination)
        hasher.combine(dialer)
        if let proxy { hasher.combine(proxy) }
    }
}
