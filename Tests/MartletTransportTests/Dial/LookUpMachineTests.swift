import Testing

@testable import MartletTransport

/// The machine on a manual clock: lookups end when the test ends them, and due wake-ups are delivered.
private struct Scene {
    var machine: LookUpMachine
    let limits: LookUpMachine.Limits
    private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000)
    /// The running names in the order of their starts, with their start times.
    private(set) var running: [(name: String, startedAt: MonotonicTime)] = []
    private var wakeUp: MonotonicTime?

    init(_ limits: LookUpMachine.Limits = .init()) {
        self.limits = limits
        machine = LookUpMachine(limits: limits)
    }

    var runningNames: [String] { running.map(\.name) }

    mutating func request(_ names: [String], isLocal: Bool = false) {
        for name in names { perform(machine.requested(name, isLocal: isLocal, now: now)) }
    }

    mutating func abandon(_ name: String) { perform(machine.abandoned(name, now: now)) }

    mutating func end(_ name: String) {
        running.removeAll { $0.name == name }
        perform(machine.ended(name, now: now))
    }

    /// Advances the clock and delivers the wake-ups that are due.
    mutating func pass(_ duration: Duration) {
        let end = now.advanced(by: duration)
        while let due = wakeUp, due <= end {
            now = max(now, due)
            perform(machine.advance(now: now))
        }
        now = end
    }

    /// Returns the delay until a name starts if no lookup ends.
    mutating func delay(of name: String) -> Duration? {
        let start = now
        pass(.seconds(1))
        return running.first { $0.name == name }?.startedAt.since(start)
    }

    private mutating func perform(_ effects: LookUpMachine.Effects) {
        running += effects.starts.map { ($0, now) }
        wakeUp = effects.wakeUp
    }
}

@Suite("Scheduling of DNS lookups")
struct LookUpMachineTests {
    @Test(
        "A resolvable name starts within 100 ms while 200 names in any domain do not resolve",
        arguments: [
            "dead%.example", "a.dead%.example", "dead%.test", "dead%.a.example", "dead%", "dead%.",
        ], ["live.example", "live.test", "live", "dead.", "0.live.dead7.example"])
    func liveName(pattern: String, live: String) throws {
        var scene = Scene()
        scene.request((0..<200).map { pattern.replacing("%", with: String($0)) } + [live])
        let found = scene.delay(of: live)
        let delay = try #require(found)
        #expect(delay < .milliseconds(100))
        #expect(scene.running.count == 201)
        // Long after the crowd has arrived, there is no delay.
        scene.request(["later.example"])
        #expect(scene.runningNames.last == "later.example")
    }

    @Test(
        "A domain gets no more threads than remain free",
        arguments: [(1, 252), (2, 168), (3, 126), (7, 63), (20, 24), (251, 2), (400, 1), (503, 1)])
    func share(domainCount: Int, expected: Int) {
        var scene = Scene()
        for number in 0...expected + 2 {
            scene.request((0..<domainCount).map { "dead\(number).domain\($0).example" })
        }
        scene.pass(.seconds(2))
        var counts: [String: Int] = [:]
        for name in scene.runningNames { counts[LookUpMachine.domain(of: name), default: 0] += 1 }
        #expect(counts.count == domainCount)
        #expect(counts.values.allSatisfy { (expected - 1...expected + 1).contains($0) })
        scene.request(["live.other"])
        #expect(scene.runningNames.last == "live.other")
    }

    @Test("When all threads are in use, only names of the hosts file use the reserve")
    func reserve() {
        var scene = Scene()
        scene.request((0..<600).map { "dead.domain\($0)" })
        scene.pass(.seconds(2))
        #expect(scene.running.count == 504)
        #expect(scene.machine.queuedCount == 96)
        scene.request((0..<10).map { "alias\($0)" }, isLocal: true)
        #expect(scene.running.count == 512)
        #expect(scene.runningNames.suffix(8) == (0..<8).map { "alias\($0)" }[...])
        scene.end("alias3")
        #expect(scene.runningNames.last == "alias8")
        // The hosts file gets the thread of another name first.
        scene.end("dead.domain5")
        #expect(scene.runningNames.last == "alias9")
        scene.end("dead.domain6")
        #expect(scene.running.count == 511)
        scene.end("alias0")
        scene.end("alias1")
        // Of the 509 running lookups, 504 use the threads for other names.
        #expect(!scene.runningNames.contains("dead.domain504"))
        for number in 2...9 { scene.end("alias\(number)") }
        #expect(scene.running.count == 504)
        #expect(scene.runningNames.contains("dead.domain504"))
    }

    @Test("A crowd starts in bursts, and each completed lookup admits another")
    func pace() {
        var scene = Scene()
        scene.request((0..<200).map { "host\($0).example" })
        #expect(scene.running.count == 64)
        scene.pass(.milliseconds(19))
        #expect(scene.running.count == 64)
        scene.end("host0.example")
        #expect(scene.runningNames.last == "host64.example")
        #expect(scene.running.count == 64)
        scene.pass(.milliseconds(1))
        // The 63 that remain from the first burst no longer count.
        #expect(scene.running.count == 64 + 63)
        // Names of the hosts file send no query to the name server.
        scene.request(["alias"], isLocal: true)
        #expect(scene.runningNames.last == "alias")
    }

    @Test("Domains alternate")
    func turns() {
        var limits = LookUpMachine.Limits()
        limits.burst = 1
        var scene = Scene(limits)
        scene.request(["a1.a.x", "a2.a.x", "a3.a.x", "b1.b.x", "b2.b.x", "c1.c.x"])
        scene.pass(.seconds(1))
        #expect(scene.runningNames == ["a1.a.x", "a2.a.x", "b1.b.x", "c1.c.x", "a3.a.x", "b2.b.x"])
    }

    @Test("An abandoned lookup in the queue is removed and never starts")
    func abandonedQueued() {
        var limits = LookUpMachine.Limits()
        limits.burst = 1
        var scene = Scene(limits)
        scene.request(["first.example", "second.example", "third.example"])
        scene.abandon("second.example")
        #expect(scene.machine.queuedCount == 1)
        scene.pass(.seconds(1))
        #expect(scene.runningNames == ["first.example", "third.example"])
        for name in scene.runningNames { scene.end(name) }
        #expect(scene.machine.isIdle)
    }

    @Test("Abandoning a running lookup immediately frees capacity for the start rate and for its domain")
    func abandonedRunning() {
        var scene = Scene()
        scene.request((0..<254).map { "dead\($0).a.example" })
        #expect(scene.running.count == 64)
        scene.abandon("dead0.a.example")
        #expect(scene.runningNames.last == "dead64.a.example")
        scene.pass(.seconds(1))
        // The domain's share is 252.5 threads.
        #expect(scene.running.count == 253 && scene.machine.queuedCount == 1)
        for number in 1...10 { scene.abandon("dead\(number).a.example") }
        #expect(scene.runningNames.last == "dead253.a.example")
        for number in 0..<254 { scene.abandon("dead\(number).a.example") }
        scene.request(["live.a.example"])
        #expect(scene.runningNames.last == "live.a.example")
        for name in scene.runningNames { scene.end(name) }
        #expect(scene.machine.isIdle)
    }

    @Test("A domain whose lookups are all abandoned never uses all threads")
    func abandonedForEver() {
        var scene = Scene()
        for number in 0..<5_000 {
            scene.request(["dead\(number).a.example"])
            scene.abandon("dead\(number).a.example")
        }
        #expect(scene.running.count == 504 * 2 / 3)
        #expect(scene.machine.queuedCount == 0)
        scene.request(["live.test"])
        #expect(scene.runningNames.last == "live.test")
    }

    @Test("An abandoned lookup that is requested again does not restart, and counts in full again")
    func requestedAgain() {
        var scene = Scene()
        scene.request(["dead.example"])
        scene.abandon("dead.example")
        scene.request(["dead.example"])
        #expect(scene.runningNames == ["dead.example"])
        scene.end("dead.example")
        #expect(scene.machine.isIdle)
    }

    @Test("Events for names that the machine does not know change nothing")
    func unknown() {
        var scene = Scene()
        scene.abandon("unknown.example")
        scene.end("unknown.example")
        scene.request(["known.example"])
        scene.end("known.example")
        scene.end("known.example")
        #expect(scene.machine.isIdle && scene.machine.runningCount == 0)
    }

    @Test(
        "The domain of a name is its last two labels, and single-label names share one domain",
        arguments: [
            ("www.example.com", "example.com"), ("a.b.c.example.com.", "example.com"),
            ("example.com", "example.com"),
            ("single", ""), ("single.", ""), (".", ""), ("", ""), ("..a..b..", "a.b"),
        ])
    func domain(name: String, expected: String) {
        #expect(LookUpMachine.domain(of: name) == expected)
    }

    @Test(
        "The limits hold for random events, and no lookup is queued without a reason",
        arguments: 0..<20 as Range<UInt64>)
    func random(seed: UInt64) {
        var generator = RaceGenerator(state: seed)
        var limits = LookUpMachine.Limits()
        limits.threadCount = Int.random(in: 2...20, using: &generator)
        limits.localReserve = Int.random(in: 0..<limits.threadCount, using: &generator)
        limits.burst = Int.random(in: 1...8, using: &generator)
        var scene = Scene(limits)
        let domainCount = Int.random(in: 1...5, using: &generator)
        var wanted: Set<String> = []
        /// The running names that were abandoned and no longer count toward the start rate.
        var unpaced: Set<String> = []
        for _ in 0..<300 {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0..<5:
                let label = Int.random(in: 0..<12, using: &generator)
                let name = "\(label).\(Int.random(in: 0..<domainCount, using: &generator)).example"
                if wanted.insert(name).inserted { scene.request([name], isLocal: isLocal(name)) }
            case 5:
                if let name = wanted.sorted().randomElement(using: &generator) {
                    wanted.remove(name)
                    if scene.runningNames.contains(name) { unpaced.insert(name) }
                    scene.abandon(name)
                }
            case 6, 7:
                if let name = scene.runningNames.randomElement(using: &generator) {
                    wanted.remove(name)
                    unpaced.remove(name)
                    scene.end(name)
                }
            default: scene.pass(.milliseconds(Int.random(in: 0..<30, using: &generator)))
            }
            let names = scene.runningNames
            let others = names.filter { !isLocal($0) }
            #expect(Set(names).count == names.count && names.count == scene.machine.runningCount)
            #expect(names.count <= limits.threadCount)
            #expect(others.count <= limits.threadCount - limits.localReserve)
            let youngCount = scene.running.count { look in
                !isLocal(look.name) && !unpaced.contains(look.name)
                    && scene.now.since(look.startedAt) < limits.burstDuration
            }
            #expect(youngCount <= limits.burst)
            var weights: [String: Int] = [:]
            for name in others {
                weights[LookUpMachine.domain(of: name), default: 0] += wanted.contains(name) ? 2 : 1
            }
            let freeCount = limits.threadCount - limits.localReserve - names.count
            let waitsWithoutReason = wanted.subtracting(names).filter { name in
                if isLocal(name) { return names.count < limits.threadCount }
                let weight = weights[LookUpMachine.domain(of: name)] ?? 0
                return weight < 2 * freeCount && youngCount < limits.burst
            }
            #expect(waitsWithoutReason.isEmpty)
        }
        while let name = scene.runningNames.first {
            scene.end(name)
            scene.pass(.milliseconds(20))
        }
        #expect(scene.machine.isIdle)
    }

    private func isLocal(_ name: String) -> Bool { name.hasPrefix("7.") }
}

@Suite("A queue with removal")
struct RemovableQueueTests {
    @Test("Elements are dequeued in the order of their insertion, without the removed ones")
    func order() {
        var queue = RemovableQueue<Int>()
        for number in [1, 2, 3, 2, 4] { queue.append(number) }
        queue.remove(1)
        queue.remove(3)
        queue.remove(9)
        queue.append(1)
        #expect(queue.count == 3 && queue.first == 2)
        #expect(queue.first { $0 < 2 } == 1)
        #expect([queue.popFirst(), queue.popFirst(), queue.popFirst(), queue.popFirst()] == [2, 4, 1, nil])
        #expect(queue.isEmpty)
    }

    @Test("Elements that pass an element that remains use no additional memory")
    func bounded() {
        var queue = RemovableQueue<Int>()
        queue.append(0)
        var largestCount = 0
        for number in 1...10_000 {
            queue.append(number)
            largestCount = max(largestCount, queue.storedCount)
            queue.remove(number)
        }
        #expect(largestCount < 20)
        #expect(queue.popFirst() == 0 && queue.storedCount == 0)
    }
}
