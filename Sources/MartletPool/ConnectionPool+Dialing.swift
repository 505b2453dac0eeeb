import MartletTransport
import Synchronization

// Opening of connections.
extension ConnectionPool {
    struct PendingDial {
        var id: PoolConnectionID
        var key: ConnectionKey
        var dialer: Dialer
        /// The timeout, from the start of the dial; `nil` for no limit.
        var timeout: Duration?
    }

    /// The dials that this task is part of, the outermost first: a resolver or trust policy may make a call.
    @TaskLocal static var enclosingDials: [(pool: ObjectIdentifier, id: PoolConnectionID)] = []

    func begin(_ dial: PendingDial) {
        // Unstructured: a dial belongs to the pool, and may serve another request than the one that caused it.
        let dials = Self.enclosingDials + [(pool: ObjectIdentifier(self), id: dial.id)]
        let task = Task {
            await Self.$enclosingDials.withValue(dials) {
                let deadline = MonotonicTime.now().deadline(after: dial.timeout)
                do throws(ExchangeError) {
                    self.dialSucceeded(dial.id, try await self.open(dial, until: deadline))
                } catch { self.dialFailed(dial.id, error) }
            }
        }
        let isAbandoned = state.withLock { state in
            if state.abandoned.remove(dial.id) != nil { return true }
            if state.machine.isDialing(dial.id) { state.dials[dial.id] = task }
            return false
        }
        if isAbandoned { task.cancel() }
    }

    private func open(_ dial: PendingDial, until deadline: MonotonicTime) async throws(ExchangeError)
        -> ProxyDialer.Tunnel
    {
        if let proxy = dial.key.proxy {
            let tunnel = ProxyDialer(
                dialer: dial.dialer, proxy: proxy, destination: dial.key.destination, limits: wireLimits,
                deadline: deadline)
            return try await tunnel.run()
        }
        do throws(DialError) {
            return ProxyDialer.Tunnel(connected: try await dial.dialer.dial(dial.key.destination, until: deadline))
        } catch { throw ExchangeError(error) }
    }

    private func dialSucceeded(_ id: PoolConnectionID, _ tunnel: ProxyDialer.Tunnel) {
        let connected = tunnel.connected
        let connection = HTTP1Connection(
            stream: connected.stream, timings: connected.timings, tunnelHeads: tunnel.heads, limits: wireLimits)
        let (work, isKnown, isIdle) = state.withLock { state -> (Work?, Bool, Bool) in
            state.forgetDial(id)
            guard state.machine.isDialing(id) else { return (nil, false, false) }
            if state.addresses.isLost(connected.stream.information.localAddress) {
                // The address was lost while the connection was being opened, so the connection is unusable.
                let failure = ExchangeError(cause: .transport(.addressLost), phase: .connecting, wasSent: false)
                return (collect(state.machine.dialFailed(id), &state, failure: failure), false, false)
            }
            while state.connections.count <= id.index {
                state.connections.append(nil)
                state.idleLeases.append(nil)
            }
            state.connections[id.index] = connection
            state.openedCount += 1
            let effects = state.machine.dialSucceeded(id, now: PoolClock.now())
            let work = collect(effects, &state, isFresh: true)
            return (work, true, effects.grant == nil && state.connections[id.index] === connection)
        }
        if !isKnown { connection.stream.close() }
        run(work)
        if isIdle {
            connection.stream.observeIdle(
                Lease(connection: connection, id: id, isReused: false, pool: self, isReleased: true))
        }
    }

    private func dialFailed(_ id: PoolConnectionID, _ failure: ExchangeError) {
        let work = state.withLock { state in
            state.forgetDial(id)
            return collect(state.machine.dialFailed(id), &state, failure: failure)
        }
        run(work)
    }
}

extension ConnectionPool.State {
    /// Returns a dial that starts now, with the connect timeout of its request, or 10 seconds without a request.
    mutating func beginning(_ dial: ConnectionPool.PendingDial) -> ConnectionPool.PendingDial {
        var dial = dial
        let id = machine.waiter(of: dial.id)
        // The wait in the throttle does not count. If a timer that is already set fires too early, it is set again.
        if let id { _ = waiters[id]?.timeouts.dialBegan(at: MonotonicTime.now()) }
        let waiting = id.flatMap { waiters[$0] }
        dial.timeout = waiting.map { $0.timeouts.connectTimeout } ?? .seconds(10)
        return dial
    }

    fileprivate mutating func forgetDial(_ id: PoolConnectionID) {
        dials[id] = nil
        abandoned.remove(id)
        gate.ended(id)
    }
}

/// A throttle that keeps thousands of connections from being opened at the same moment.
///
/// A connection takes several times more memory while it is opened than later. Of ten thousand simultaneous dials, many
/// find the server's backlog full and are retried a second later. So at most ``limit`` dials are in progress. Each
/// counts for at most ``interval``, so that distant or dead hosts do not delay others: up to ten thousand dials start
/// each second. The throttle only counts and queues dials; the caller starts them.
struct DialThrottle<Dial> {
    /// Nanoseconds of the pool's clock.
    typealias Instant = UInt64

    /// The maximum number of dials in progress.
    static var limit: Int { 256 }
    /// The maximum time for which a dial counts, in nanoseconds: 25 ms.
    static var interval: UInt64 { 25_000_000 }

    /// The dials that count towards ``limit``.
    private var counting: Set<PoolConnectionID> = []
    /// The admitted dials, oldest first, with the time until which they count. Some may have ended.
    private var passages = FIFOQueue<(id: PoolConnectionID, until: Instant)>()
    private var waiting: [PoolConnectionID: Dial] = [:]
    /// The queued dials, in order. Some may have been withdrawn.
    private var queue = FIFOQueue<PoolConnectionID>()

    init() {}

    var waitingCount: Int { waiting.count }

    /// The time at which a queued dial may start, unless another ends first; `nil` if the queue is empty.
    var nextDeadline: Instant? { waiting.isEmpty ? nil : passages.first?.until }

    /// Admits a dial, or queues it.
    /// - Returns: The dial if it may start now; `nil` if it was queued.
    mutating func admit(_ id: PoolConnectionID, _ dial: Dial, now: Instant) -> Dial? {
        forget(now)
        guard waiting.isEmpty, counting.count < DialThrottle.limit else {
            waiting[id] = dial
            queue.append(id)
            return nil
        }
        pass(id, now)
        return dial
    }

    /// Removes a dial that is no longer needed from the queue.
    /// - Returns: The dial; `nil` if it was not queued.
    mutating func withdraw(_ id: PoolConnectionID) -> Dial? { waiting.removeValue(forKey: id) }

    /// Records the end of a dial.
    mutating func ended(_ id: PoolConnectionID) { counting.remove(id) }

    mutating func next(now: Instant) -> [Dial] {
        forget(now)
        var dials: [Dial] = []
        while counting.count < DialThrottle.limit, let id = queue.popFirst() {
            guard let dial = waiting.removeValue(forKey: id) else { continue }
            pass(id, now)
            dials.append(dial)
        }
        return dials
    }

    private mutating func pass(_ id: PoolConnectionID, _ now: Instant) {
        counting.insert(id)
        passages.append((id, PoolAmounts.sum(now, DialThrottle.interval)))
    }

    /// Removes the dials that have ended, or whose ``interval`` has passed.
    private mutating func forget(_ now: Instant) {
        while let passage = passages.first, passage.until <= now || !counting.contains(passage.id) {
            counting.remove(passage.id)
            passages.popFirst()
        }
    }
}
