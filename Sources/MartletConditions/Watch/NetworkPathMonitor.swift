import CMartletLinux
import Glibc
import MartletTransport
import Synchronization

/// A monitor that follows the network while it has subscribers. Without subscribers it has no open socket and no timer.
/// The event loop waits for notifications; blocking calls run on a worker's thread.
final class NetworkPathMonitor: TimerTarget {
    private struct State {
        var run = WatchRun<NetworkMonitorMachine>()
        var eventSocket: NetlinkEventSocket?
    }

    /// The thread for blocking calls. The threads for name resolution are all busy when the network is gone.
    static let workers = BlockingThreadPool(threadLimit: 1)
    /// The lock on the state, used by subscribers, the loop's thread and the worker.
    private let state = Mutex(State())
    /// The latest snapshot; `nil` without subscribers, and until the first is known.
    private let newest = CurrentValue<NetworkSnapshot?>(nil)
    private let loop: EventLoop
    private let source: any NetworkSource

    init(loop: EventLoop, source: any NetworkSource) { (self.loop, self.source) = (loop, source) }

    /// Subscribes to the snapshots. The first subscription starts the monitor, and the end of the last one stops it.
    func subscription() -> WatchSubscription<NetworkSnapshot> {
        if let run = state.withLock({ $0.run.add(NetworkMonitorMachine()) }) { query(run) }
        return WatchSubscription(to: newest) { [self] in unsubscribe() }
    }

    var isListening: Bool { state.withLock { $0.eventSocket != nil } }

    private func unsubscribe() {
        let eventSocket = state.withLock { state -> NetlinkEventSocket?? in
            state.run.remove() ? .some(state.eventSocket.take()) : nil
        }
        guard let eventSocket else { return }
        eventSocket?.close()
        publish()
    }

    private func query(_ run: UInt64) { NetworkPathMonitor.workers.submit { self.runQuery(run) } }

    /// Queries the kernel, on a worker's thread. The notification socket is opened before, so that no change is missed.
    private func runQuery(_ run: UInt64) {
        let outcome: NetworkMonitorMachine.QueryOutcome
        do throws(SystemError) {
            guard try listen(run) else { return }
            outcome = source.query()
        } catch { outcome = NetworkMonitorMachine.QueryOutcome(error) }
        change(run) { $0.queryFinished(outcome, now: MonotonicTime.now()) }
    }

    /// Opens the notification socket, if it is not open yet.
    /// - Returns: Whether there are still subscribers.
    private func listen(_ run: UInt64) throws(SystemError) -> Bool {
        let (isCurrent, isListening) = state.withLock { ($0.run.isCurrent(run), $0.eventSocket != nil) }
        guard isCurrent, !isListening else { return isCurrent }
        let eventSocket = try NetlinkEventSocket(adopting: try source.openEventSocket(), loop: loop) { [weak self] in
            self?.change(run) { $0.eventReceived(now: MonotonicTime.now()) }
        }
        let isLate = state.withLock { state in
            guard state.run.isCurrent(run) else { return true }
            state.eventSocket = eventSocket
            return false
        }
        if isLate { eventSocket.close() } else { eventSocket.watch() }
        return !isLate
    }

    func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let (queries, next) = state.withLock { state -> (Bool, MonotonicTime?) in
            guard let queries = state.run.change(token, { $0.timePassed(now: now) }) else { return (false, nil) }
            // A timer that fires after an earlier one is not needed.
            guard queries || state.run.armed <= now else { return (false, nil) }
            return (queries, state.run.rearm())
        }
        if queries { query(token) }
        return next
    }

    private func change(_ run: UInt64, _ event: (inout NetworkMonitorMachine) -> Void) {
        let timer = state.withLock { state -> MonotonicTime?? in
            state.run.change(run, event) == nil ? nil : .some(state.run.arm())
        }
        guard let timer else { return }
        publish()
        if let timer { loop.schedule(self, token: run, at: timer) }
    }

    /// Publishes the machine's snapshot: after several concurrent changes, the last one publishes the combined result.
    private func publish() { newest.update { state.withLock { $0.run.machine?.view } } }
}

/// A machine that runs as long as there are subscribers, and its timer.
struct WatchRun<Machine: WatchMachine> {
    private var subscriberCount = 0
    /// Counts the starts and ends of runs, so that timers and results of an earlier run are ignored.
    private var number: UInt64 = 0
    /// The machine; `nil` without subscribers, and until the run has one.
    var machine: Machine?
    private(set) var armed = MonotonicTime.distantFuture

    func isCurrent(_ run: UInt64) -> Bool { number == run }

    /// Adds a subscriber.
    /// - Returns: The number of the run that the first subscriber starts; `nil` for further ones.
    mutating func add(_ machine: Machine? = nil) -> UInt64? {
        subscriberCount += 1
        guard subscriberCount == 1 else { return nil }
        number += 1
        self.machine = machine
        armed = .distantFuture
        return number
    }

    /// Removes a subscriber.
    /// - Returns: Whether it was the last one, which ends the run.
    mutating func remove() -> Bool {
        subscriberCount -= 1
        guard subscriberCount == 0 else { return false }
        number += 1
        machine = nil
        return true
    }

    /// Changes the machine; `nil` after the end of the run.
    mutating func change<Value>(_ run: UInt64, _ event: (inout Machine) -> Value) -> Value? {
        guard isCurrent(run), var machine else { return nil }
        defer { self.machine = machine }
        return event(&machine)
    }

    /// Returns the time for a new timer, and records it; `nil` if an earlier timer is scheduled, or none is needed.
    mutating func arm() -> MonotonicTime? {
        guard let next = machine?.nextEvent, next < armed else { return nil }
        armed = next
        return next
    }

    /// Like ``arm()``, after the timer has fired.
    mutating func rearm() -> MonotonicTime? {
        armed = .distantFuture
        return arm()
    }
}

/// A machine that acts at certain times.
protocol WatchMachine: Sendable {
    /// The time of the next action; `nil` for none before another event.
    var nextEvent: MonotonicTime? { get }
}

/// The socket on which the kernel reports changes, watched by the event loop.
final class NetlinkEventSocket: IdleStreamObserver {
    private let socket: Socket
    private let report: @Sendable () -> Void

    /// Takes ownership of a socket.
    /// - Parameter report: Called on the loop's thread, after ``watch()``, once for all datagrams that have arrived.
    init(adopting descriptor: Int32, loop: EventLoop, report: @escaping @Sendable () -> Void) throws(SystemError) {
        socket = try Socket(adopting: descriptor, loop: loop)
        self.report = report
    }

    deinit { close() }

    func watch() {
        socket.readiness.observeIdle(self)
        // The socket retains its observer until it is closed, which may have happened just before.
        if socket.isClosed { _ = socket.readiness.stopObservingIdle() }
    }

    /// Closes the socket; later calls have no effect.
    func close() { socket.close() }

    /// Reads all datagrams, because only new ones cause another event of the loop. Reports them if one is relevant.
    func idleStreamBecameReadable() {
        var isRelevant = false
        while true {
            switch socket.withDescriptor({ NetlinkSocket.receive(on: $0) }) {
            case .datagram(let bytes):
                // One relevant datagram is enough; the others are only read.
                isRelevant = isRelevant || NetlinkEventRule.matters(bytes[...])
                continue
            case .lost:
                isRelevant = true
                continue
            case .failed: isRelevant = true
            case .nothing, nil: break
            }
            if isRelevant { report() }
            return
        }
    }
}

/// The source of network information: the kernel, or a fake in tests.
protocol NetworkSource: Sendable {
    /// Opens a non-blocking socket that receives a datagram when something may have changed. It belongs to the caller.
    func openEventSocket() throws(SystemError) -> Int32

    /// Queries links, addresses and routes. Blocks, on most machines for less than a millisecond.
    func query() -> NetworkMonitorMachine.QueryOutcome
}
