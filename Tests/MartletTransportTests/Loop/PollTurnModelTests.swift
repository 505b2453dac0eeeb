import Testing

/// All interleavings of the atomic steps of ``PollTurn``, of the loop's thread and of the tasks that it resumes. The
/// limit of the sleep is left out: no thread may depend on it.
@Suite("Model of the turn to poll")
struct PollTurnModelTests {
    private enum Loop: Hashable {
        case checking, waiting, counting, lending, confirming, asking, entering, sleeping, ending
    }

    private enum Thread: Hashable { case pooled, started, looking, polling, deciding, takingBack, running }

    private enum Sender: Hashable { case adding, looking, done }

    private struct Machine: Hashable {
        var loop = Loop.checking
        /// The pool's threads. Each runs one task after the other.
        var threads: [Thread]
        /// A thread that adds something to do for the loop's thread.
        var sender: Sender

        /// The events that the kernel has not reported yet, and the requests that may still be sent.
        var events: Int
        var requests: Int
        var hasWakeup = false
        var hasJob = false
        /// The resumed tasks that no thread of the pool runs yet.
        var queue = 0

        var unstarted = 0
        var isLent = false

        /// Reports all events.
        mutating func report() {
            queue += events
            unstarted += events
            events = 0
        }

        /// The loop's thread handles all events and the job.
        mutating func collect() {
            report()
            hasJob = false
            loop = .counting
        }

        mutating func takeBack() {
            if isLent, loop == .sleeping { loop = .ending }
            isLent = false
        }

        /// The machine after one step of the loop's thread; `nil` if it waits.
        func loopStepped(least: Int) -> Machine? {
            var next = self
            switch loop {
            case .checking:
                // The check and the record that the thread waits are one step, under the agenda's lock.
                guard hasJob else {
                    next.loop = .waiting
                    break
                }
                next.collect()
            case .waiting:
                guard events > 0 || hasWakeup else { return nil }
                next.hasWakeup = false
                next.collect()
            case .counting: next.loop = unstarted >= least ? .lending : .checking
            case .lending:
                next.isLent = true
                next.loop = .confirming
            case .confirming: next.loop = unstarted > 0 ? .asking : .ending
            case .asking: next.loop = hasJob ? .ending : .entering
            case .entering: next.loop = isLent ? .sleeping : .ending
            case .sleeping: return nil
            case .ending:
                next.isLent = false
                next.loop = .checking
            }
            return next
        }

        /// The machine after one step of a thread of the pool; `nil` if it has no task.
        func threadStepped(_ index: Int) -> Machine? {
            var next = self
            switch threads[index] {
            case .pooled:
                guard queue > 0 else { return nil }
                next.queue -= 1
                next.threads[index] = .started
            case .started:
                next.unstarted = max(0, unstarted - 1)
                next.threads[index] = next.unstarted == 0 ? .looking : .running
            case .looking: next.threads[index] = isLent ? .polling : .running
            case .polling:
                next.report()
                next.threads[index] = .deciding
            case .deciding: next.threads[index] = unstarted > 0 ? .running : .takingBack
            case .takingBack:
                next.takeBack()
                next.threads[index] = .running
            case .running:
                if requests > 0 {
                    next.requests -= 1
                    next.events += 1
                }
                next.threads[index] = .pooled
            }
            return next
        }

        /// The machine after one step of the thread that adds a job; `nil` at its end.
        func senderStepped() -> Machine? {
            var next = self
            switch sender {
            case .adding:
                next.hasJob = true
                next.hasWakeup = hasWakeup || loop == .waiting
                next.sender = .looking
            case .looking:
                next.takeBack()
                next.sender = .done
            case .done: return nil
            }
            return next
        }
    }

    @Test(
        "The loop's thread never sleeps while nobody else polls, in any order of the steps",
        arguments: [(1, 3, 2, 0), (1, 3, 2, 3), (2, 2, 2, 2), (2, 3, 3, 2), (3, 3, 3, 1)])
    func exhaustive(threads: Int, events: Int, least: Int, requests: Int) {
        var seen: Set<Machine> = []
        var open: [Machine] = []
        for sender in [Sender.adding, .done] {
            open.append(
                Machine(
                    threads: Array(repeating: .pooled, count: threads), sender: sender, events: events,
                    requests: requests))
        }
        var ends = 0
        var lent = 0
        while let machine = open.popLast() {
            guard seen.insert(machine).inserted else { continue }
            var steps = (0..<threads).compactMap { machine.threadStepped($0) }
            if let next = machine.loopStepped(least: least) { steps.append(next) }
            if let next = machine.senderStepped() { steps.append(next) }
            if machine.loop == .sleeping { lent += 1 }
            if steps.isEmpty {
                ends += 1
                // Only an event can continue from here, so the loop's thread must wait for one.
                #expect(machine.loop == .waiting, "\(machine)")
                #expect(machine.queue == 0 && machine.events == 0 && !machine.hasJob, "\(machine)")
            }
            open += steps
        }
        #expect(ends > 0)
        #expect(lent > 0)
    }
}
