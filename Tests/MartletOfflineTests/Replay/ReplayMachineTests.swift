import MartletTransport
import Testing

@testable import MartletOffline

@Suite("Replay machine")
struct ReplayMachineTests {
    @Test("Requests of a lane are sent one after the other, in the order of their numbers")
    func lanesAreOrdered() {
        var bench = ReplayBench()
        for number in UInt64(1)...3 { bench.add(number) }
        #expect(bench.begun == [1])
        bench.finish(1)
        bench.finish(2)
        bench.finish(3)
        #expect(bench.begun == [1, 2, 3])
        #expect(bench.drainCount == 1)
        #expect(bench.machine.nextWake() == nil)
    }

    @Test("A lane starts its next request only when the result of the previous one is on disk")
    func settlingHoldsTheLane() {
        var bench = ReplayBench()
        bench.add(1)
        bench.add(2)
        bench.note(bench.machine.end(OfflineID(1), .settled, random: 1, now: bench.now).effects)
        #expect(bench.begun == [1])
        bench.note(bench.machine.settled(OfflineID(1), isResting: false, now: bench.now))
        #expect(bench.begun == [1, 2])
    }

    @Test("Lanes are independent, and a limited number of them is active")
    func lanesAreParallel() {
        var bench = ReplayBench(lanes: 2)
        for (number, lane) in [(UInt64(1), "a"), (2, "b"), (3, "c"), (4, "a")] { bench.add(number, lane) }
        #expect(bench.begun == [1, 2])
        bench.fail(1)
        #expect(bench.begun == [1, 2, 3], "a lane that waits takes no place")
        bench.finish(2)
        bench.finish(3)
        bench.pass(.seconds(2))
        #expect(bench.begun == [1, 2, 3, 1])
    }

    @Test(
        "A failed request is retried before later ones, after delays that double up to a maximum"
    )
    func backoffDoubles() {
        var bench = ReplayBench(backoff: OfflineBackoff(initialDelay: .seconds(1), maximumDelay: .seconds(5)))
        bench.add(1)
        bench.add(2)
        var delays: [Duration] = []
        for _ in 0..<5 {
            delays.append(bench.fail(1))
            #expect(bench.machine.nextWake() == bench.now.advanced(by: delays[delays.count - 1]))
            bench.pass(delays[delays.count - 1])
        }
        #expect(delays == [.seconds(1), .seconds(2), .seconds(4), .seconds(5), .seconds(5)])
        #expect(bench.begun == [1, 1, 1, 1, 1, 1])
        bench.finish(1)
        #expect(bench.begun.last == 2)
        #expect(bench.fail(2) == .seconds(1), "a success begins the waits anew")
    }

    @Test("The delay is a random part of its range, at least Retry-After, up to the maximum of that")
    func waitIsJitteredAndBounded() {
        var bench = ReplayBench(
            backoff: OfflineBackoff(
                initialDelay: .seconds(8), maximumDelay: .seconds(8), maximumRetryAfter: .seconds(60)))
        bench.add(1)
        #expect(bench.fail(1, random: 0.25) == .seconds(2))
        bench.pass(.seconds(2))
        #expect(bench.fail(1, .refused, atLeast: .seconds(30), random: 0.25) == .seconds(30))
        bench.pass(.seconds(30))
        #expect(bench.fail(1, .refused, atLeast: .seconds(1_000_000_000)) == .seconds(60))
    }

    @Test(
        "A restored path retries unreachable requests immediately, but not those with Retry-After"
    )
    func pathReturns() {
        var bench = ReplayBench()
        bench.add(1, "a")
        bench.add(2, "b")
        bench.add(3, "c")
        bench.fail(1)
        bench.fail(2, .refused, atLeast: .seconds(500))
        bench.fail(3, .unauthorized)
        bench.note(bench.machine.wake(waitingFor: [.unreachable], now: bench.now))
        #expect(bench.begun == [1, 2, 3, 1])
        bench.note(bench.machine.wake(waitingFor: [.unauthorized], now: bench.now))
        #expect(bench.begun == [1, 2, 3, 1, 3])
        // No running request is started twice.
        bench.note(bench.machine.wake(waitingFor: [.unreachable, .unauthorized], now: bench.now))
        #expect(bench.begun == [1, 2, 3, 1, 3])
    }

    @Test("A lane without credentials waits for the maximum delay")
    func unauthorizedWaitsLong() {
        var bench = ReplayBench(
            backoff: OfflineBackoff(initialDelay: .seconds(1), maximumDelay: .seconds(300)))
        bench.add(1)
        #expect(bench.fail(1, .unauthorized, random: 0) == .seconds(300))
    }

    @Test("A dead request blocks no other, and returns to its old position when it is retried")
    func deadRests() {
        var bench = ReplayBench()
        for number in UInt64(1)...3 { bench.add(number) }
        bench.finish(1, isResting: true)
        #expect(bench.begun == [1, 2])
        let effects = bench.machine.retry(OfflineID(1), now: bench.now)
        #expect(effects?.begin == [], "the second is under way")
        bench.finish(2)
        #expect(bench.begun == [1, 2, 1])
        bench.finish(1)
        #expect(bench.begun == [1, 2, 1, 3])
    }

    @Test("A request that was dead in an earlier process is not sent automatically")
    func restingIsNotSent() {
        var bench = ReplayBench()
        bench.add(1, isResting: true)
        bench.add(2)
        #expect(bench.begun == [2])
        bench.finish(2)
        #expect(bench.machine.isDrained)
        #expect(bench.machine.state(of: OfflineID(1)) == .resting)
    }

    @Test("A waiting request expires when its lifetime ends, at any position in its lane")
    func waitingExpires() {
        var bench = ReplayBench()
        bench.add(1)
        bench.add(2, expires: .seconds(10))
        bench.add(3)
        #expect(bench.machine.nextWake() == bench.now.advanced(by: .seconds(10)))
        bench.pass(.seconds(10))
        #expect(bench.expired == [2])
        bench.finish(1)
        #expect(bench.begun == [1, 3])
        bench.note(bench.machine.settled(OfflineID(2), isResting: false, now: bench.now))
        #expect(bench.machine.state(of: OfflineID(2)) == nil)
        #expect(bench.begun == [1, 3])
    }

    @Test("A running request expires only if its current attempt fails")
    func sendingExpiresLater() {
        var bench = ReplayBench()
        bench.add(1, expires: .seconds(10))
        bench.add(2, "b", expires: .seconds(10))
        bench.pass(.seconds(11))
        #expect(bench.expired == [])
        bench.finish(1)
        bench.fail(2)
        #expect(bench.expired == [2])
        bench.note(bench.machine.settled(OfflineID(2), isResting: false, now: bench.now))
        #expect(bench.machine.isDrained)
        #expect(bench.drainCount == 1)
    }

    @Test("A result that cannot be written is written again later, and its lane waits for that")
    func settlingFails() {
        var bench = ReplayBench()
        bench.add(1)
        bench.add(2)
        bench.note(bench.machine.end(OfflineID(1), .settled, random: 1, now: bench.now).effects)
        let (effects, delay) = bench.machine.settlingFailed(OfflineID(1), random: 1, now: bench.now)
        bench.note(effects)
        #expect(delay > .zero)
        #expect(bench.settled == [])
        bench.pass(delay)
        #expect(bench.settled == [1])
        #expect(bench.begun == [1], "it is not sent again")
        bench.note(bench.machine.settled(OfflineID(1), isResting: false, now: bench.now))
        #expect(bench.begun == [1, 2])
    }

    @Test("An expiry that cannot be written is written again without blocking the lane")
    func expiryFails() {
        var bench = ReplayBench()
        bench.add(1)
        bench.add(2, expires: .seconds(1))
        bench.pass(.seconds(1))
        #expect(bench.expired == [2])
        let (effects, delay) = bench.machine.settlingFailed(OfflineID(2), random: 1, now: bench.now)
        bench.note(effects)
        #expect(bench.settled == [])
        #expect(bench.machine.nextWake() == bench.now.advanced(by: delay))
        bench.pass(delay)
        #expect(bench.settled == [2])
        bench.finish(1)
        #expect(!bench.machine.isDrained)
        bench.note(bench.machine.settled(OfflineID(2), isResting: false, now: bench.now))
        #expect(bench.machine.isDrained)
    }

    @Test("A waiting request is dropped immediately; a running one is cancelled first")
    func drops() throws {
        var bench = ReplayBench()
        for number in UInt64(1)...3 { bench.add(number) }
        let effects1 = bench.machine.drop(OfflineID(2), now: bench.now)
        bench.note(try #require(effects1))
        #expect(bench.settled == [2])
        let effects2 = bench.machine.drop(OfflineID(1), now: bench.now)
        bench.note(try #require(effects2))
        #expect(bench.cancelled == [1])
        #expect(bench.settled == [2])
        bench.fail(1)
        #expect(bench.settled == [2, 1])
        bench.note(bench.machine.settled(OfflineID(1), isResting: false, now: bench.now))
        bench.note(bench.machine.settled(OfflineID(2), isResting: false, now: bench.now))
        #expect(bench.begun == [1, 3])
        #expect(bench.machine.drop(OfflineID(1), now: bench.now) == nil)
    }

    @Test("Dropping a dead request does not report that the queue is drained")
    func droppingDeadIsQuiet() throws {
        var bench = ReplayBench()
        bench.add(1)
        bench.finish(1, isResting: true)
        #expect(bench.drainCount == 1)
        let effects3 = bench.machine.drop(OfflineID(1), now: bench.now)
        bench.note(try #require(effects3))
        bench.note(bench.machine.settled(OfflineID(1), isResting: false, now: bench.now))
        #expect(bench.drainCount == 1)
        #expect(bench.machine.state(of: OfflineID(1)) == nil)
    }

    @Test("A dead request that is retried after its expiry has its new lifetime, whatever the old one was")
    func retryAfterExpiry() throws {
        var bench = ReplayBench()
        bench.add(1, expires: .seconds(10))
        bench.finish(1, isResting: true)
        // No event comes between the old expiry and the retry.
        bench.now = bench.now.advanced(by: .seconds(11))
        let expires = bench.now.advanced(by: .seconds(10))
        let effects = bench.machine.retry(OfflineID(1), expires: expires, now: bench.now)
        bench.note(try #require(effects))
        #expect(bench.expired == [])
        #expect(bench.begun == [1, 1])
        bench.fail(1, .refused, atLeast: .seconds(100))
        #expect(bench.machine.nextWake() == expires)
        bench.pass(.seconds(10))
        #expect(bench.expired == [1])
    }

    @Test("Retrying a waiting request sends it immediately")
    func retryWakes() throws {
        var bench = ReplayBench()
        bench.add(1)
        bench.fail(1, .refused, atLeast: .seconds(100))
        let effects4 = bench.machine.retry(OfflineID(1), now: bench.now)
        bench.note(try #require(effects4))
        #expect(bench.begun == [1, 1])
        #expect(bench.machine.retry(OfflineID(1), now: bench.now) == nil, "it is under way")
        #expect(bench.machine.retry(OfflineID(9), now: bench.now) == nil)
    }

    @Test("A machine that does not send starts and expires no requests")
    func keepsOnly() {
        var bench = ReplayBench(sendsRequests: false)
        bench.add(1, expires: .seconds(5))
        #expect(bench.begun == [])
        #expect(bench.machine.nextWake() == nil)
        bench.pass(.seconds(5))
        #expect(bench.expired == [])
        #expect(bench.machine.state(of: OfflineID(1)) == .waiting)
    }

    @Test(
        "The next request of a lane inherits neither the delay nor the failures of the removed one",
        arguments: ["expired", "dropped", "dropped under way", "expired under way"])
    func waitIsNotInherited(_ ending: String) throws {
        var bench = ReplayBench(
            backoff: OfflineBackoff(initialDelay: .seconds(1), maximumDelay: .seconds(1000)))
        bench.add(1, expires: .seconds(50))
        bench.add(2)
        for _ in 0..<3 {
            bench.fail(1)
            bench.pass(.seconds(4))
        }
        #expect(bench.begun == [1, 1, 1, 1])
        if ending.hasSuffix("under way") {
            if ending.hasPrefix("dropped") {
                let effects = bench.machine.drop(OfflineID(1), now: bench.now)
                bench.note(try #require(effects))
            } else {
                bench.pass(.seconds(60))
            }
            bench.fail(1, .refused, atLeast: .seconds(500))
        } else {
            bench.fail(1, .refused, atLeast: .seconds(500))
            if ending == "dropped" {
                let effects = bench.machine.drop(OfflineID(1), now: bench.now)
                bench.note(try #require(effects))
            } else {
                bench.pass(.seconds(60))
            }
        }
        #expect(bench.expired + bench.settled == [1])
        bench.note(bench.machine.settled(OfflineID(1), isResting: false, now: bench.now))
        #expect(bench.begun == [1, 1, 1, 1, 2])
        #expect(bench.fail(2) == .seconds(1))
    }

    @Test("A closed machine starts no requests, whatever ends")
    func closes() {
        var bench = ReplayBench()
        bench.add(1)
        bench.add(2)
        bench.machine.close()
        bench.finish(1)
        bench.pass(.seconds(1000))
        #expect(bench.begun == [1])
    }

    @Test("A request with a lower number than the waiting ones is sent before them")
    func lateNumberGoesFirst() {
        var bench = ReplayBench()
        bench.add(5)
        bench.add(9)
        bench.add(7)
        bench.finish(5)
        #expect(bench.begun == [5, 7])
    }
}
