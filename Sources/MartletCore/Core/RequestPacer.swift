import Synchronization

/// Delays requests so that those to one origin are at least an interval apart
/// (``SessionConfiguration/requestInterval``).
final class RequestPacer: Sendable {
    /// The waiting requests to one origin. Only the first waits for ``next``; the others wait for their turn.
    private struct Line {
        var next: MonotonicTime
        var turns: [OneShot<Void>] = []
    }

    private let loop: EventLoop
    /// The lock on the lines, for the tasks that wait in them.
    private let lines = Mutex<[HTTPURL.Origin: Line]>([:])
    /// The lock on the intervals, for requests and for changes.
    private let intervals: Mutex<(session: Duration, ofOrigins: [HTTPURL.Origin: Duration])>
    private let isActiveFlag: Atomic<Bool>

    init(_ interval: Duration, loop: EventLoop) {
        intervals = Mutex((interval, [:]))
        isActiveFlag = Atomic(interval > .zero)
        self.loop = loop
    }

    /// Whether any request may have to wait.
    var isActive: Bool { isActiveFlag.load(ordering: .relaxed) }

    /// Changes the interval of one origin; `nil` for that of the session.
    func setInterval(_ interval: Duration?, for origin: HTTPURL.Origin) {
        intervals.withLock { $0.ofOrigins[origin] = interval }
        if interval ?? .zero > .zero { isActiveFlag.store(true, ordering: .relaxed) }
    }

    private func interval(for origin: HTTPURL.Origin) -> Duration {
        intervals.withLock { $0.ofOrigins[origin] ?? $0.session }
    }

    /// Waits until a request may be sent.
    /// - Returns: The duration of the wait.
    /// - Throws: ``HTTPError`` at the total timeout; `CancellationError`.
    func wait(for call: Call, _ control: TransferControl) async throws -> Duration {
        let (origin, began) = (call.url.origin, MonotonicTime.now())
        let turn = OneShot<Void>()
        let isFirst = lines.withLock { lines in
            let now = MonotonicTime.now()
            // Removes lines that delay no request any more.
            if lines.count >= 1024 { lines = lines.filter { !$0.value.turns.isEmpty || $0.value.next > now } }
            lines[origin, default: Line(next: now)].turns.append(turn)
            return lines[origin]?.turns.count == 1
        }
        defer { leave(turn, origin) }
        if !isFirst, case .timedOut = try await wait(turn, until: call.totalDeadline, control) {
            throw call.timedOut(.preparing, "while the request waited for its turn (requestInterval)")
        }
        let start = lines.withLock { $0[origin]?.next ?? .now() }
        if start > .now() { _ = try await wait(OneShot(), until: min(start, call.totalDeadline), control) }
        guard call.totalDeadline > .now() else {
            throw call.timedOut(.preparing, "while the request waited for its turn (requestInterval)")
        }
        let now = MonotonicTime.now()
        lines.withLock { $0[origin]?.next = now.advanced(by: interval(for: origin)) }
        return now.since(began)
    }

    private func wait(_ event: OneShot<Void>, until deadline: MonotonicTime, _ control: TransferControl) async throws
        -> OneShot<Void>.Outcome
    {
        let wait = control.beginWait { event.interrupt() }
        defer { control.endWait(wait) }
        let outcome = await event.waitUnlessCancelled(until: deadline, on: loop)
        if case .interrupted = outcome { throw CancellationError() }
        return outcome
    }

    /// Ends the turn of a request, or removes it from its line.
    private func leave(_ turn: OneShot<Void>, _ origin: HTTPURL.Origin) {
        let next = lines.withLock { lines -> OneShot<Void>? in
            guard let index = lines[origin]?.turns.firstIndex(where: { $0 === turn }) else { return nil }
            lines[origin]?.turns.remove(at: index)
            return index == 0 ? lines[origin]?.turns.first : nil
        }
        next?.fulfill(())
    }
}
