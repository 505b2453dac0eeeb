import Synchronization
import Testing

@testable import MartletTransport

@Suite("Whose turn it is to poll")
struct PollTurnTests {
    /// A turn and a thread that lends it once.
    private final class Lender: Sendable {
        let turn = PollTurn()
        let isBusy = Atomic(false)
        let polls = Atomic(0)
        let isOver = Atomic(false)
        let hasReturned = OneShot<Void>()

        init(resumed count: Int = PollTurn.taskCountBounds.upperBound) { for _ in 0..<count { turn.willResume() } }

        var isLent: Bool { turn.isLent }

        func lend() throws {
            try Thread.start(name: "lender") {
                self.turn.lend { self.isBusy.load(ordering: .relaxed) }
                self.isOver.store(true, ordering: .relaxed)
                self.hasReturned.fulfill(())
            }
        }

        /// Starts a task, whose poll resumes others.
        func start(resuming count: Int = 0) {
            turn.started {
                polls.add(1, ordering: .relaxed)
                for _ in 0..<count { turn.willResume() }
            }
        }

        func returns() async throws -> Bool {
            guard case .value = await hasReturned.wait(until: StreamPair.soon, on: try EventLoop.shared.get()) else {
                return false
            }
            return true
        }
    }

    @Test("A few resumed tasks do not borrow the turn")
    func few() {
        let lender = Lender(resumed: PollTurn.taskCountBounds.upperBound - 1)
        // This would sleep until the limit, and then forget the tasks.
        lender.turn.lend {
            Issue.record("the turn was lent")
            return true
        }
        lender.start()
        #expect(lender.polls.load(ordering: .relaxed) == 0)
    }

    @Test("A busy thread keeps its turn")
    func busy() {
        let lender = Lender()
        lender.turn.lend { true }
        #expect(!lender.isLent)
        for _ in 0..<PollTurn.taskCountBounds.upperBound { lender.start() }
        #expect(lender.polls.load(ordering: .relaxed) == 0)
    }

    @Test("The thread returns by itself if no task starts, and does not wait for these tasks again")
    func late() async throws {
        let lender = Lender()
        try lender.lend()
        #expect(try await lender.returns())
        lender.turn.lend {
            Issue.record("the turn was lent")
            return true
        }
        for _ in 0..<PollTurn.taskCountBounds.upperBound { lender.start() }
        #expect(lender.polls.load(ordering: .relaxed) == 0)
    }

    @Test("The thread is woken by the last task, by something to do, or after its limit, each of many times")
    func wakes() async throws {
        for round in 0..<300 {
            let lender = Lender()
            try lender.lend()
            switch round % 3 {
            case 0: for _ in 0..<PollTurn.taskCountBounds.upperBound { lender.start() }
            case 1:
                lender.isBusy.store(true, ordering: .relaxed)
                lender.turn.takeBack()
            default:
                for _ in 1..<PollTurn.taskCountBounds.upperBound { lender.start() }
                lender.start(resuming: 2)
                for _ in 0..<2 { lender.start() }
            }
            #expect(try await lender.returns())
            #expect(!lender.isLent)
        }
    }

    @Test("Only the last task that starts polls, and again after it has resumed others")
    func last() async throws {
        var most = 0
        // The thread may return before the tasks start, if the machine is busy. Then none polls.
        for _ in 0..<10_000 where most < 2 {
            let lender = Lender()
            try lender.lend()
            while !lender.isLent, !lender.isOver.load(ordering: .relaxed) { await Task.yield() }
            for _ in 1..<PollTurn.taskCountBounds.upperBound { lender.start() }
            #expect(lender.polls.load(ordering: .relaxed) == 0)
            lender.start(resuming: 2)
            lender.start()
            #expect(lender.polls.load(ordering: .relaxed) <= 1)
            lender.start()
            #expect(try await lender.returns())
            most = max(most, lender.polls.load(ordering: .relaxed))
        }
        #expect(most == 2)
    }

    @Test("Fewer tasks suffice after tasks have found events, and more are needed after they have not")
    func adapts() async throws {
        let fewer = PollTurn.taskCountBounds.upperBound / 2
        var isHalved = false
        // The thread may return before the tasks start, if the machine is busy. Then none polls.
        for _ in 0..<10_000 where !isHalved {
            let lender = Lender()
            try lender.lend()
            while !lender.isLent, !lender.isOver.load(ordering: .relaxed) { await Task.yield() }
            for _ in 1..<PollTurn.taskCountBounds.upperBound { lender.start() }
            lender.start(resuming: 1)
            lender.start()
            #expect(try await lender.returns())
            for _ in 0..<fewer { lender.turn.willResume() }
            lender.turn.lend {
                isHalved = true
                return false
            }
            guard isHalved else { continue }
            // That turn ended without an event.
            for _ in 0..<fewer { lender.turn.willResume() }
            lender.turn.lend {
                Issue.record("the turn was lent")
                return true
            }
        }
        #expect(isHalved)
    }
}
