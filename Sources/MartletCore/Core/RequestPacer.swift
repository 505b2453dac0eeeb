import Synchronization

/// Delays requests so that those to one origin are at least an interval apart
/// (``SessionConfiguration/requestInterval``).
package final class RequestPacer: Sendable {
    /// The waiting requests to one origin. Only the first waits for ``next``; the others wait for their turn.
    private struct Queue {
        var next: MonotonicTime
        var turns: [OneShot<Void>] = []
    }

    private struct State {
        var queues: [HTTPURL.Origin: Queue] = [:]
        /// The interval of the session.
        var interval: Duration
        /// The intervals of single origins.
        var intervals: [HTTPURL.Origin: Duration] = [:]

        func interval(for origin: HTTPURL.Origin) -> Duration { intervals[origin] ?? interval }
    }

    private let loop: EventLoop
    /// The lock on the queues and the intervals, for waiting requests and for changes.
    private let state: Mutex<State>
    private let isActiveFlag: Atomic<Bool>

    init(_ interval: Duration, loop: EventLoop) {
        state = Mutex(State(interval: interval))
        isActiveFlag = Atomic(interval > .zero)
        self.loop = loop
    }

    /// Whether a request to any origin may have to wait. Each request reads it, without the lock.
    var isActive: Bool { isActiveFlag.load(ordering: .relaxed) }

    /// The number of requests that wait for their turn, to all origins.
    package var waitingCount: Int { state.withLock { $0.queues.values.reduce(0) { $0 + $1.turns.count } } }

    /// Changes the interval of one origin; `nil` for that of the session.
    func setInterval(_ interval: Duration?, for origin: HTTPURL.Origin) {
        state.withLock { state in
            state.intervals[origin] = interval
            let hasInterval = state.interval > .zero || state.intervals.values.contains { $0 > .zero }
            isActiveFlag.store(hasInterval, ordering: .relaxed)
        }
    }

    /// Waits until a request may be sent.
    /// - Returns: The duration of the wait.
    /// - Throws: ``HTTPError`` at the total timeout; `CancellationError`.
    func wait(for call: Call, _ control: TransferControl) async throws -> Duration {
        let (origin, began) = (call.url.origin, MonotonicTime.now())
        let turn = OneShot<Void>()
        let isFirst = state.withLock { state -> Bool? in
            guard state.interval(for: origin) > .zero || state.queues[origin] != nil else { return nil }
            // Removes queues that no longer delay a request.
            if state.queues.count >= 1024 {
                state.queues = state.queues.filter { !$0.value.turns.isEmpty || $0.value.next > began }
            }
            state.queues[origin, default: Queue(next: began)].turns.append(turn)
            return state.queues[origin]?.turns.count == 1
        }
        guard let isFirst else { return .zero }
        defer { leave(turn, origin) }
        if !isFirst { try await wait(turn, until: call.totalDeadline, control) }
        let start = state.withLock { $0.queues[origin]?.next ?? began }
        if start > .now() { try await wait(OneShot(), until: min(start, call.totalDeadline), control) }
        let now = MonotonicTime.now()
        guard call.totalDeadline > now else {
            throw call.timedOut(.preparing, "while the request waited for its turn (requestInterval)")
        }
        state.withLock { state in
            let next = now.advanced(by: state.interval(for: origin))
            state.queues[origin]?.next = next
        }
        return now.since(began)
    }

    /// Waits for an event until a deadline.
    /// - Throws: `CancellationError`.
    private func wait(_ event: OneShot<Void>, until deadline: MonotonicTime, _ control: TransferControl) async throws {
        let wait = control.beginWait { event.interrupt() }
        defer { control.endWait(wait) }
        if case .interrupted = await event.waitUnlessCancelled(until: deadline, on: loop) { throw CancellationError() }
    }

    /// Ends the turn of a request, or removes it from its queue.
    private func leave(_ turn: OneShot<Void>, _ origin: HTTPURL.Origin) {
        let next = state.withLock { state -> OneShot<Void>? in
            guard let index = state.queues[origin]?.turns.firstIndex(where: { $0 === turn }) else { return nil }
            state.queues[origin]?.turns.remove(at: index)
            return index == 0 ? state.queues[origin]?.turns.first : nil
        }
        next?.fulfill(())
    }
}
