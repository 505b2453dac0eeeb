import Synchronization

/// Delays requests so that those to one origin are at least an interval apart
/// (``SessionConfiguration/requestInterval``).
final class RequestPacer: Sendable {
    /// The waiting requests to one origin. Only the first waits for ``next``; the others wait for their turn.
    private struct Line {
        var next: MonotonicTime
        var turns: [OneShot<Void>] = []
    }

    private let interval: Duration
    private let loop: EventLoop
    /// The lock on the lines, for the tasks that wait in them.
    private let lines = Mutex<[HTTPURL.Origin: Line]>([:])

    init(_ interval: Duration, loop: EventLoop) {
        self.interval = interval
        self.loop = loop
    }

    /// Waits until a request may be sent.
    /// - Throws: ``HTTPError`` at the total timeout; `CancellationError`.
    func wait(for call: Call, _ control: TransferControl) async throws {
        let origin = call.url.origin
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
        lines.withLock { $0[origin]?.next = .now().advanced(by: interval) }
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
