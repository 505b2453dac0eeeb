package import MartletTransport
import CLinux
import Glibc
import Synchronization

/// Follows the network as long as somebody wants to know, and not a moment longer: without subscribers it has no open
/// socket and no timer. What waits is the event loop; what blocks is done on a worker's thread.
package final class NetworkWatch: TimerTarget {
    private struct State {
        var subscribers = SubscriberCount()
        var news: NetworkNews?
        var machine: NetworkMonitorMachine?
        /// When a timer will come in any case.
        var armed = MonotonicTime.distantFuture
    }

    /// The thread on which the kernel is asked. Not one of those that look up names: they are all busy when the network has
    /// gone.
    package static let workers = BlockingWorkers(threadLimit: 1)

    /// Guards the above: subscribers, the loop's thread, the worker.
    private let state = Mutex(State())
    /// The newest view; `nil` where nobody is subscribed, and until it is known.
    private let newest = NewestValue<NetworkView?>(nil)
    private let loop: EventLoop
    private let source: any NetworkSource

    /// A watch of a network.
    package init(loop: EventLoop, source: any NetworkSource) {
        self.loop = loop
        self.source = source
    }

    /// Begins to follow, where nobody else does.
    package func subscription() -> WatchSubscription<NetworkView> {
        subscribe()
        return WatchSubscription(to: newest) { [self] in unsubscribe() }
    }

    /// Whether a socket is open for news.
    package var isListening: Bool { state.withLock { $0.news != nil } }

    // MARK: Beginning and ending

    private func subscribe() {
        let run = state.withLock { state -> UInt64? in
            guard let run = state.subscribers.add() else { return nil }
            state.machine = NetworkMonitorMachine()
            state.armed = .distantFuture
            return run
        }
        if let run { ask(run) }
    }

    private func unsubscribe() {
        let news = state.withLock { state -> NetworkNews?? in
            guard state.subscribers.remove() else { return nil }
            state.machine = nil
            return .some(state.news.take())
        }
        guard let news else { return }
        news?.close()
        publish()
    }

    // MARK: Looking

    private func ask(_ run: UInt64) { NetworkWatch.workers.submit { self.look(run) } }

    /// Looks, on a worker's thread. News are listened for before, so that no change falls in between.
    private func look(_ run: UInt64) {
        let look: NetworkMonitorMachine.Look
        do throws(SystemError) {
            guard try listen(run) else { return }
            look = source.look()
        } catch {
            look = NetworkMonitorMachine.Look(error)
        }
        change(run) { $0.looked(look, now: MonotonicTime.now()) }
    }

    /// Opens the socket for news, where it is not open yet.
    /// - Returns: Whether anybody still wants to know.
    private func listen(_ run: UInt64) throws(SystemError) -> Bool {
        let (isCurrent, isListening) = state.withLock { ($0.subscribers.run == run, $0.news != nil) }
        guard isCurrent, !isListening else { return isCurrent }
        let source = source
        let news = try NetworkNews(
            adopting: try source.openNews(), loop: loop, matters: { source.matters($0) },
            told: { [weak self] in self?.change(run) { $0.news(now: MonotonicTime.now()) } })
        let isLate = state.withLock { state in
            guard state.subscribers.run == run else { return true }
            state.news = news
            return false
        }
        if isLate {
            news.close()
            return false
        }
        news.watch()
        return true
    }

    package func timerFired(token: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let (asks, next) = state.withLock { state -> (Bool, MonotonicTime?) in
            guard state.subscribers.run == token, var machine = state.machine else { return (false, nil) }
            let asks = machine.timePassed(now: now)
            state.machine = machine
            // A timer that an earlier one has overtaken is not needed.
            guard asks || state.armed <= now else { return (false, nil) }
            state.armed = machine.nextEvent ?? .distantFuture
            return (asks, machine.nextEvent)
        }
        if asks { ask(token) }
        return next
    }

    private func change(_ run: UInt64, _ event: (inout NetworkMonitorMachine) -> Void) {
        let (isCurrent, timer) = state.withLock { state -> (Bool, MonotonicTime?) in
            guard state.subscribers.run == run, var machine = state.machine else { return (false, nil) }
            event(&machine)
            state.machine = machine
            guard let next = machine.nextEvent, next < state.armed else { return (true, nil) }
            state.armed = next
            return (true, next)
        }
        guard isCurrent else { return }
        publish()
        if let timer { loop.schedule(self, token: run, at: timer) }
    }

    /// Tells what the machine says now: of several threads with news, the last one tells what all of them made of it.
    private func publish() {
        newest.update { state.withLock { $0.machine?.view } }
    }
}

/// The socket on which the kernel tells of changes, watched by the event loop.
final class NetworkNews: IdleWatcher {
    private let socket: Socket
    private let matters: @Sendable ([UInt8]) -> Bool
    private let told: @Sendable () -> Void

    /// Takes over a socket.
    /// - Parameters:
    ///   - matters: Whether a datagram is a reason to tell.
    ///   - told: Called on the loop's thread, from ``watch()`` on, once for all that has come.
    init(
        adopting descriptor: Int32, loop: EventLoop, matters: @escaping @Sendable ([UInt8]) -> Bool,
        told: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        socket = try Socket(adopting: descriptor, loop: loop)
        self.matters = matters
        self.told = told
    }

    deinit { close() }

    /// Has news told from now on.
    func watch() {
        socket.readiness.watchWhileIdle(self)
        // The socket keeps its watcher until it is closed, which may have been just before.
        if socket.isClosed { _ = socket.readiness.endIdleWatch() }
    }

    /// Ends it; the first call counts.
    func close() { socket.close() }

    func idleStreamStirred() { if drain() { told() } }

    /// Takes all that has come: the next edge comes when there is more.
    /// - Returns: Whether there was anything that matters.
    private func drain() -> Bool {
        var isNews = false
        while true {
            switch socket.withDescriptor({ NetlinkSocket.receive(on: $0) }) {
            case .datagram(let bytes):
                // One reason is enough; the rest is only taken.
                if !isNews, matters(bytes) { isNews = true }
            case .lost: isNews = true
            case .nothing, nil: return isNews
            case .failed: return true
            }
        }
    }
}

/// Where a watch learns about the network: the kernel, or in tests something else.
package protocol NetworkSource: Sendable {
    /// Opens a socket that becomes readable when something may have changed, and is read until it is empty; it does not block,
    /// and belongs to the caller.
    func openNews() throws(SystemError) -> Int32

    /// Whether a datagram that came on that socket is a reason to look.
    func matters(_ datagram: [UInt8]) -> Bool

    /// Looks at all of it. It blocks for as long as it takes, which is below a millisecond on most machines.
    func look() -> NetworkMonitorMachine.Look
}
