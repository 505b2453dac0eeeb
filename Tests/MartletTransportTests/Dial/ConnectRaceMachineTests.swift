import Testing

@testable import MartletTransport

@Suite("Connect race")
struct ConnectRaceMachineTests {
    @Test("A single address is tried without a timer and wins")
    func single() {
        let scene = RaceScene(["4a"])
        scene.start()
        #expect(scene.deadline == nil)
        scene.advance(30)
        scene.connect(0)
        #expect(!scene.isOver)
        scene.winnerSucceeds()
        #expect(scene.isOver)
        #expect(scene.log == ["0 start 4a#0", "30 won 4a#0"])
    }

    @Test("A single address that fails loses the race")
    func singleFails() {
        let scene = RaceScene(["4a"])
        scene.start()
        scene.fail(0)
        #expect(scene.isOver)
        #expect(scene.log == ["0 start 4a#0", "0 lost [4a#0 refused]"])
    }

    @Test("Without an address the race fails immediately with no failures")
    func empty() {
        let scene = RaceScene([])
        scene.start()
        #expect(scene.isOver)
        #expect(scene.log == ["0 lost []"])
    }

    @Test("The race fails immediately when the allowed families leave no address")
    func restricted() {
        let scene = RaceScene(["6a"], settings: .init(families: .ipv4Only))
        scene.start()
        #expect(scene.log == ["0 lost []"])
    }

    @Test("The second attempt starts 250 ms after a slow first one, and the first to connect wins")
    func staggered() {
        let scene = RaceScene(["6a", "4a", "6b"])
        scene.start()
        scene.advance(250)
        scene.advance(50)
        scene.connect(1)
        #expect(
            scene.log == [
                "0 start 6a#0", "0 timer 250", "250 start 4a#1", "250 timer 500", "300 won 4a#1",
                "300 cancel 6a#0",
            ])
    }

    @Test("The first attempt may still win after the second was started")
    func firstWinsLate() {
        let scene = RaceScene(["6a", "4a"])
        scene.start()
        scene.advance(260)
        scene.connect(0)
        #expect(
            scene.log == [
                "0 start 6a#0", "0 timer 250", "250 start 4a#1", "260 won 6a#0", "260 cancel 4a#1",
            ])
    }

    @Test("A failed attempt starts the next one immediately and restarts the delay")
    func failureStartsNext() {
        let scene = RaceScene(["6a", "4a", "6b"])
        scene.start()
        scene.advance(10)
        scene.fail(0)
        scene.advance(250)
        #expect(
            scene.log == [
                "0 start 6a#0", "0 timer 250", "10 start 4a#1", "10 timer 260", "260 start 6b#2",
            ])
    }

    @Test("An earlier attempt that fails while a later one runs also starts the next one immediately")
    func earlierFails() {
        let scene = RaceScene(["6a", "4a", "6b", "4b"])
        scene.start()
        scene.advance(300)
        scene.fail(0)
        #expect(
            scene.log == [
                "0 start 6a#0", "0 timer 250", "250 start 4a#1", "250 timer 500", "300 start 6b#2",
                "300 timer 550",
            ])
    }

    @Test("With no address left, a failure waits for the running attempts")
    func lastRunning() {
        let scene = RaceScene(["6a", "4a"])
        scene.start()
        scene.advance(250)
        scene.fail(1)
        #expect(!scene.isOver)
        scene.connect(0)
        #expect(scene.log == ["0 start 6a#0", "0 timer 250", "250 start 4a#1", "250 won 6a#0"])
    }

    @Test("All failures are reported together in the order in which they happened")
    func allFail() {
        let scene = RaceScene(["6a", "4a", "6b"])
        scene.start()
        scene.advance(500)
        scene.fail(1, "unreachable")
        scene.fail(2, "timed out")
        scene.fail(0, "refused")
        #expect(scene.isOver)
        #expect(scene.log.last == "500 lost [4a#1 unreachable, 6b#2 timed out, 6a#0 refused]")
    }

    @Test("A timer that fires too early starts nothing")
    func earlyTimer() {
        let scene = RaceScene(["6a", "4a"])
        scene.start()
        scene.fire()
        #expect(scene.log == ["0 start 6a#0", "0 timer 250"])
    }

    @Test("A timer that was replaced starts nothing when it fires")
    func staleTimer() {
        let scene = RaceScene(["6a", "4a", "6b"])
        scene.start()
        scene.advance(200)
        scene.fail(0)
        scene.advance(50)
        scene.fire()
        #expect(scene.log.count == 4)
        #expect(scene.deadline == 450_000_000)
    }

    @Test(
        "The delay is never shorter than 10 ms", arguments: [Duration.zero, .seconds(-5), .milliseconds(10)])
    func shortestDelay(delay: Duration) {
        let scene = RaceScene(["6a", "4a"], settings: .init(attemptDelay: delay))
        scene.start()
        #expect(scene.log == ["0 start 6a#0", "0 timer 10"])
    }

    @Test("The delay is configurable")
    func otherDelay() {
        let scene = RaceScene(["6a", "4a"], settings: .init(attemptDelay: .milliseconds(100)))
        scene.start()
        #expect(scene.log == ["0 start 6a#0", "0 timer 100"])
    }

    @Test("A very large delay does not overflow")
    func maximumDelay() {
        let settings = HappyEyeballsOptions(attemptDelay: .seconds(Int64.max))
        var race = RaceScene.Race(addresses: ["6a", "4a"], settings: settings, now: .max - 1)
        let effects = race.start(now: .max - 1)
        #expect(effects.timer == .max)
    }

    @Test("A connection that is established after the race was won is closed")
    func lateConnection() {
        let scene = RaceScene(["6a", "4a"])
        scene.start()
        scene.advance(250)
        scene.connect(1)
        scene.connect(0)
        scene.winnerSucceeds()
        scene.connect(0)
        let tail = scene.log.suffix(4)
        #expect(tail == ["250 won 4a#1", "250 cancel 6a#0", "250 cancel 6a#0", "250 cancel 6a#0"])
    }

    @Test("A winner that is reported twice is neither closed nor returned again")
    func winnerTwice() {
        let scene = RaceScene(["4a"])
        scene.start()
        scene.connect(0)
        scene.connect(0)
        scene.winnerSucceeds()
        scene.connect(0)
        #expect(scene.log == ["0 start 4a#0", "0 won 4a#0"])
    }

    @Test("The failure of a cancelled attempt changes nothing")
    func lateFailure() {
        let scene = RaceScene(["6a", "4a", "6b"])
        scene.start()
        scene.advance(250)
        scene.connect(1)
        scene.fail(0)
        scene.advance(1000)
        #expect(scene.log.last == "250 cancel 6a#0")
        #expect(scene.deadline == nil)
    }

    @Test("After a TLS failure the race continues with the addresses that were not tried")
    func tlsFails() {
        let scene = RaceScene(["6a", "4a", "6b"])
        scene.start()
        scene.advance(20)
        scene.connect(0)
        scene.advance(80)
        scene.winnerFails("handshake reset")
        scene.connect(1)
        scene.winnerSucceeds()
        #expect(scene.isOver)
        #expect(
            scene.log == [
                "0 start 6a#0", "0 timer 250", "20 won 6a#0", "100 start 4a#1", "100 timer 350",
                "100 won 4a#1",
            ])
    }

    @Test("After a TLS failure the attempts that were cancelled earlier are retried first")
    func tlsFailsAfterCancelling() {
        let scene = RaceScene(["6a", "4a", "6b", "4b"])
        scene.start()
        scene.advance(500)
        scene.connect(1)
        scene.winnerFails()
        scene.fail(3)
        scene.fail(4)
        scene.fail(5)
        #expect(
            scene.log == [
                "0 start 6a#0", "0 timer 250", "250 start 4a#1", "250 timer 500", "500 start 6b#2",
                "500 timer 750", "500 won 4a#1", "500 cancel 6a#0", "500 cancel 6b#2", "500 start 6a#3",
                "500 timer 750", "500 start 6b#4", "500 timer 750", "500 start 4b#5",
                "500 lost [4a#1 handshake, 6a#3 refused, 6b#4 refused, 4b#5 refused]",
            ])
    }

    @Test("A late report of a cancelled attempt does not end the new attempt to the same address")
    func lateReportOfFirstTry() {
        let scene = RaceScene(["6a", "4a"])
        scene.start()
        scene.advance(250)
        scene.connect(1)
        scene.winnerFails()
        scene.fail(0, "cancelled")
        #expect(!scene.isOver)
        scene.connect(2)
        #expect(scene.log.suffix(2) == ["250 start 6a#2", "250 won 6a#2"])
    }

    @Test("A TLS failure on the last address ends the race with all failures")
    func tlsFailsLast() {
        let scene = RaceScene(["6a", "4a"])
        scene.start()
        scene.fail(0)
        scene.connect(1)
        scene.winnerFails("handshake reset")
        #expect(scene.isOver)
        #expect(scene.log.last == "0 lost [6a#0 refused, 4a#1 handshake reset]")
    }

    @Test("Cancelling cancels all attempts and ends the race")
    func cancel() {
        let scene = RaceScene(["6a", "4a", "6b"])
        scene.start()
        scene.advance(250)
        scene.cancel()
        #expect(scene.isOver)
        scene.advance(1000)
        scene.cancel()
        scene.start()
        let tail = scene.log.suffix(2)
        #expect(tail == ["250 cancel 6a#0", "250 cancel 4a#1"])
    }

    @Test("Cancelling during TLS cancels the winner")
    func cancelWinner() {
        let scene = RaceScene(["6a"])
        scene.start()
        scene.connect(0)
        scene.cancel()
        scene.winnerFails()
        #expect(scene.isOver)
        #expect(scene.log == ["0 start 6a#0", "0 won 6a#0", "0 cancel 6a#0"])
    }

    @Test("A connection that is established after cancellation is closed")
    func connectionAfterCancel() {
        let scene = RaceScene(["6a"])
        scene.start()
        scene.cancel()
        scene.connect(0)
        #expect(scene.log == ["0 start 6a#0", "0 cancel 6a#0", "0 cancel 6a#0"])
    }

    @Test("Cancelling after success does not affect the winner")
    func cancelAfterSuccess() {
        let scene = RaceScene(["6a"])
        scene.start()
        scene.connect(0)
        scene.winnerSucceeds()
        scene.cancel()
        #expect(scene.log == ["0 start 6a#0", "0 won 6a#0"])
    }

    @Test("Cancelling before the start starts nothing")
    func cancelBeforeStart() {
        let scene = RaceScene(["6a"])
        scene.cancel()
        scene.start()
        #expect(scene.log.isEmpty)
    }

    @Test("Starting twice has the effect of starting once")
    func startTwice() {
        let scene = RaceScene(["6a", "4a"])
        scene.start()
        scene.start()
        #expect(scene.log == ["0 start 6a#0", "0 timer 250"])
    }

    @Test("An address that failed recently is tried last")
    func memory() {
        var memory = AddressMemory<FakeAddress>()
        memory.recordFailure("6a", now: 0)
        let scene = RaceScene(["6a", "4a"], memory: memory)
        scene.start()
        scene.fail(0)
        #expect(scene.log == ["0 start 4a#0", "0 timer 250", "0 start 6a#1"])
    }
}
