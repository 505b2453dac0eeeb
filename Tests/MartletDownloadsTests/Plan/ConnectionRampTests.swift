import MartletDownloads
import MartletTransport
import Testing

@Suite("Number of connections of a download")
struct ConnectionRampTests {
    /// A simulated line on which a number of connections has a total speed, in bytes per second.
    private struct Line {
        var ramp: ConnectionRamp
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        var active = 1
        var speed: (Int) -> Double

        init(limit: Int, speed: @escaping (Int) -> Double) {
            ramp = ConnectionRamp(limit: limit, now: now)
            self.speed = speed
        }

        /// Advances the time, with as many connections as the ramp targets.
        mutating func run(milliseconds: Int) {
            for _ in 0..<milliseconds / 100 {
                now = now.advanced(by: .milliseconds(100))
                ramp.add(UInt64(speed(active) / 10))
                ramp.update(active: active, now: now)
                active = ramp.target
            }
        }
    }

    @Test("Each measurement multiplies the connections by four, up to the limit")
    func upToLimit() {
        var line = Line(limit: 50) { Double($0) * 5e6 }
        var seen: [Int] = []
        for _ in 0..<20 {
            line.run(milliseconds: 100)
            if seen.last != line.ramp.target { seen.append(line.ramp.target) }
        }
        #expect(seen == [4, 16, 50])
    }

    @Test("Connections that add less than a tenth are closed one after the other")
    func uselessOnes() {
        var line = Line(limit: 4) { _ in 5e6 }
        line.run(milliseconds: 2_000)
        #expect(line.ramp.target == 4)
        line.run(milliseconds: 30_000)
        #expect(line.ramp.target == 1)
        line.run(milliseconds: 600_000)
        #expect(line.ramp.target == 1)
    }

    @Test("A burst of a server in the first second does not prevent more connections")
    func bursts() {
        var line = Line(limit: 4) { Double($0) * 5e6 }
        line.ramp.add(50_000_000)
        line.run(milliseconds: 1_000)
        #expect(line.ramp.target == 4)
    }

    @Test("Useful connections are closed only for occasional short trials")
    func trials() {
        var line = Line(limit: 4) { Double($0) * 5e6 }
        var fewer = 0
        line.run(milliseconds: 2_000)
        for _ in 0..<600 {
            line.run(milliseconds: 100)
            #expect(line.ramp.target >= 3)
            if line.ramp.target < 4 { fewer += 1 }
        }
        // The first trial lasts three seconds after five, the next one comes after twenty.
        #expect((50...70).contains(fewer))
    }

    @Test("A rejected connection stops the growth for ten seconds")
    func rejected() {
        var line = Line(limit: 8) { Double($0) * 5e6 }
        line.run(milliseconds: 2_000)
        #expect(line.ramp.target > 4)
        line.ramp.rejected(active: 2, now: line.now)
        #expect(line.ramp.target == 2)
        line.run(milliseconds: 9_000)
        #expect(line.ramp.target == 2)
        line.run(milliseconds: 4_000)
        #expect(line.ramp.target > 2)
        line.ramp.rejected(active: 0, now: line.now)
        #expect(line.ramp.target == 1)
    }

    @Test("After a rejection connections are added one by one")
    func afterRejection() {
        var line = Line(limit: 8) { Double($0) * 5e6 }
        line.run(milliseconds: 2_000)
        line.ramp.rejected(active: 2, now: line.now)
        var seen: [Int] = []
        for _ in 0..<200 {
            line.run(milliseconds: 100)
            if seen.last != line.ramp.target { seen.append(line.ramp.target) }
        }
        #expect(seen.last == 8 && zip(seen, seen.dropFirst()).allSatisfy { $1 <= $0 + 1 }, "\(seen)")
    }

    @Test("No decision is made while connections are missing or no bytes arrive")
    func waits() {
        var ramp = ConnectionRamp(limit: 4, now: MonotonicTime(nanoseconds: 0))
        let later = MonotonicTime(nanoseconds: 60_000_000_000)
        ramp.update(active: 1, now: later)
        #expect(ramp.target == 1)
        ramp.add(1_000)
        ramp.update(active: 0, now: later)
        #expect(ramp.target == 1)
        ramp.update(active: 1, now: later)
        #expect(ramp.target == 4)
    }

    @Test("Limits below one count as one, and equal or distant times do no harm")
    func extremes() {
        let now = MonotonicTime(nanoseconds: 1)
        var ramp = ConnectionRamp(limit: -3, now: now)
        #expect(ramp.limit == 1)
        ramp.add(.max / 2)
        ramp.update(active: 1, now: now)
        ramp.update(active: 1, now: .distantFuture)
        ramp.update(active: .max, now: MonotonicTime(nanoseconds: 0))
        #expect(ramp.target == 1)
        ramp.restart(now: .distantFuture)
        ramp.rejected(active: .min, now: .distantFuture)
        #expect(ramp.target == 1)
    }

    @Test("The limit of the network condition is respected, and more is used when it rises")
    func allowance() {
        var line = Line(limit: 4) { Double($0) * 5e6 }
        line.ramp.allow(2, now: line.now)
        line.run(milliseconds: 4_000)
        #expect(line.ramp.target == 2)
        line.ramp.allow(1, now: line.now)
        #expect(line.ramp.target == 1)
        line.run(milliseconds: 20_000)
        #expect(line.ramp.target == 1)
        line.ramp.restart(now: line.now)
        line.run(milliseconds: 2_000)
        #expect(line.ramp.target == 1)
        line.ramp.allow(nil, now: line.now)
        line.run(milliseconds: 2_000)
        #expect(line.ramp.target == 4)
    }

    @Test("A limit of zero or less counts as one, and a rejection stays in effect for its period")
    func allowanceAndRejection() {
        var line = Line(limit: 4) { Double($0) * 5e6 }
        line.ramp.allow(0, now: line.now)
        line.run(milliseconds: 2_000)
        #expect(line.ramp.target == 1)
        line.ramp.allow(4, now: line.now)
        line.run(milliseconds: 1_000)
        line.ramp.rejected(active: 2, now: line.now)
        line.ramp.allow(3, now: line.now)
        line.ramp.allow(nil, now: line.now)
        line.run(milliseconds: 3_000)
        #expect(line.ramp.target <= 2)
        line.run(milliseconds: 20_000)
        #expect(line.ramp.target == 4)
    }
}
