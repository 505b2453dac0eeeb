import Glibc
import MartletPool
import MartletTransport
import Testing

@Suite("Bandwidth limits on a manual clock")
struct BandwidthMachineTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    /// Transfers that always request more bytes from a machine on a manual clock.
    private struct Scene {
        var machine = BandwidthMachine()
        var now = BandwidthMachineTests.start
        var lanes: [BandwidthScope]
        var moved: [Int]
        private var last: UInt64 = 0
        private var owners: [UInt64: Int] = [:]
        private var wake: MonotonicTime?

        init(_ lanes: [BandwidthScope]) {
            self.lanes = lanes
            moved = Array(repeating: 0, count: lanes.count)
        }

        mutating func take(_ effects: BandwidthMachine.Effects) {
            var queue = [effects]
            while let next = queue.popLast() {
                wake = next.wake
                for grant in next.grants {
                    guard let owner = owners.removeValue(forKey: grant.request) else { continue }
                    moved[owner] += grant.byteCount
                    queue.append(ask(owner))
                }
            }
        }

        private mutating func ask(_ owner: Int) -> BandwidthMachine.Effects {
            last += 1
            owners[last] = owner
            return machine.request(last, 64 << 10, in: lanes[owner], now: now)
        }

        mutating func begin() {
            for owner in lanes.indices { take(ask(owner)) }
        }

        mutating func run(for duration: Duration) {
            let end = now.advanced(by: duration)
            while let next = wake, next <= end {
                now = max(now, next)
                take(machine.advance(to: now))
            }
            now = end
        }
    }

    @Test(
        "All transfers together stay within 5 % of the rate", arguments: [1, 7, 100],
        [2_000, 1_000_000, 80_000_000])
    func aggregate(count: Int, rate: Int) {
        var scene = Scene(Array(repeating: BandwidthScope(host: "a"), count: count))
        _ = scene.machine.setRates(total: .bytesPerSecond(rate), perHost: nil, now: scene.now)
        scene.begin()
        scene.run(for: .seconds(10))
        let ratio = Double(scene.moved.reduce(0, +)) / Double(10 * rate)
        #expect((0.95...1.05).contains(ratio))
        // Each transfer gets its share, and none starves.
        let share = Double(10 * rate) / Double(count)
        #expect(scene.moved.allSatisfy { Double($0) > 0.5 * share - Double(rate) / 50 })
    }

    @Test("Each host has its own rate, and each transfer has a rate below it")
    func hierarchy() {
        var scene = Scene([
            BandwidthScope(host: "a"), BandwidthScope(host: "a", transfer: 9), BandwidthScope(host: "b"),
        ])
        _ = scene.machine.setRates(
            total: .bytesPerSecond(1_000_000), perHost: .bytesPerSecond(100_000), now: scene.now)
        _ = scene.machine.setRate(.bytesPerSecond(10_000), ofTransfer: 9, now: scene.now)
        scene.begin()
        scene.run(for: .seconds(20))
        #expect((0.95...1.05).contains(Double(scene.moved[0] + scene.moved[1]) / 2_000_000))
        #expect((0.95...1.05).contains(Double(scene.moved[1]) / 200_000))
        #expect((0.95...1.05).contains(Double(scene.moved[2]) / 2_000_000))
    }

    @Test("A change of the limits applies immediately to waiters")
    func change() {
        var scene = Scene([BandwidthScope(host: "a")])
        _ = scene.machine.setRates(total: .bytesPerSecond(100), perHost: nil, now: scene.now)
        scene.begin()
        scene.run(for: .seconds(1))
        let slow = scene.moved[0]
        #expect(slow <= 110)
        scene.take(
            scene.machine.setRates(total: .bytesPerSecond(1_000_000), perHost: nil, now: scene.now))
        scene.run(for: .milliseconds(300))
        #expect(scene.moved[0] - slow > 250_000)
        scene.take(scene.machine.setRates(total: .bytesPerSecond(100), perHost: nil, now: scene.now))
        let fast = scene.moved[0]
        scene.run(for: .milliseconds(300))
        #expect(scene.moved[0] - fast <= 40)
    }

    @Test("Without limits every request is granted, and nothing is active")
    func unlimited() {
        var machine = BandwidthMachine()
        let effects = machine.request(
            1, 1 << 30, in: BandwidthScope(host: "a"), now: BandwidthMachineTests.start)
        #expect(effects.grants.map(\.byteCount) == [1 << 30])
        #expect(!machine.isActive)
    }

    @Test("A cancelled request is not granted and delays no other")
    func cancel() {
        let now = BandwidthMachineTests.start
        var machine = BandwidthMachine()
        _ = machine.setRates(total: BandwidthRate(bytesPerSecond: 1_000, burst: 50), perHost: nil, now: now)
        #expect(machine.request(1, 50, in: BandwidthScope(), now: now).grants.count == 1)
        #expect(machine.request(2, 50, in: BandwidthScope(), now: now).grants.isEmpty)
        #expect(machine.request(3, 50, in: BandwidthScope(), now: now).grants.isEmpty)
        machine.cancel(2)
        let effects = machine.advance(to: now.advanced(by: .milliseconds(60)))
        #expect(effects.grants.map(\.request) == [3])
        #expect(machine.waitingCount == 0)
    }

    @Test("A small request does not overtake a waiter for the same bucket")
    func order() {
        let now = BandwidthMachineTests.start
        var machine = BandwidthMachine()
        _ = machine.setRates(total: BandwidthRate(bytesPerSecond: 10_000, burst: 200), perHost: nil, now: now)
        _ = machine.request(1, 490, in: BandwidthScope(), now: now)
        #expect(machine.request(2, 200, in: BandwidthScope(), now: now).grants.isEmpty)
        #expect(machine.request(3, 1, in: BandwidthScope(), now: now).grants.isEmpty)
        let effects = machine.advance(to: now.advanced(by: .milliseconds(40)))
        #expect(effects.grants.first?.request == 2)
    }

    @Test("A waiter for the bucket of its host does not delay other hosts")
    func independence() {
        let now = BandwidthMachineTests.start
        var machine = BandwidthMachine()
        _ = machine.setRates(
            total: nil, perHost: BandwidthRate(bytesPerSecond: 1_000, burst: 20), now: now)
        _ = machine.request(1, 50, in: BandwidthScope(host: "a"), now: now)
        #expect(machine.request(2, 50, in: BandwidthScope(host: "a"), now: now).grants.isEmpty)
        #expect(machine.request(3, 50, in: BandwidthScope(host: "b"), now: now).grants.count == 1)
    }

    @Test("Bytes that were granted but not transferred are returned to the bucket")
    func refund() {
        let now = BandwidthMachineTests.start
        var machine = BandwidthMachine()
        let scope = BandwidthScope(host: "a")
        _ = machine.setRates(
            total: BandwidthRate(bytesPerSecond: 1_000, burst: 100), perHost: nil, now: now)
        #expect(machine.request(1, 100, in: scope, now: now).grants.map(\.byteCount) == [100])
        machine.refund(60, in: scope)
        #expect(machine.request(2, 100, in: scope, now: now).grants.map(\.byteCount) == [60])
    }

    /// Returns the processor time of this thread, without stalls and other threads.
    private func computed() -> Duration {
        var time = timespec()
        unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    @Test("A hundred thousand hosts do not leave as many buckets, and take little time")
    func manyHosts() {
        var machine = BandwidthMachine()
        var now = BandwidthMachineTests.start
        _ = machine.setRates(total: nil, perHost: .bytesPerSecond(1_000_000), now: now)
        let begun = computed()
        for number in 0..<100_000 {
            now = now.advanced(by: .milliseconds(1))
            let effects = machine.request(
                UInt64(number), 10, in: BandwidthScope(host: "host-\(number)"), now: now)
            #expect(effects.grants.count == 1)
        }
        #expect(computed() - begun < .seconds(60))
    }

    @Test("Invalid rates and bursts are clamped to valid ones", arguments: [Int.min, -1, 0, .max])
    func nonsense(number: Int) {
        let now = BandwidthMachineTests.start
        var bucket = TokenBucket(BandwidthRate(bytesPerSecond: number, burst: number), now: now)
        #expect(bucket.available(at: now) >= 1)
        bucket.take(number)
        bucket.refund(number)
        #expect(bucket.available(at: .distantFuture) >= 1)
        #expect(bucket.ready(number) >= now)
    }

    @Test("A clock that moves backwards grants nothing")
    func timeGoesBack() {
        let now = BandwidthMachineTests.start
        var bucket = TokenBucket(BandwidthRate(bytesPerSecond: 1_000, burst: 100), now: now)
        bucket.take(100)
        #expect(bucket.available(at: MonotonicTime(nanoseconds: 1)) == 0)
        #expect(bucket.available(at: now.advanced(by: .milliseconds(50))) == 50)
    }

    @Test("The hold state of a transfer reflects its requests since the last query")
    func holds() {
        let now = MonotonicTime(nanoseconds: 1_000_000_000)
        var machine = BandwidthMachine()
        #expect(machine.takeThrottling(transfer: 7) == .unlimited)
        _ = machine.setRates(total: .bytesPerSecond(1_000), perHost: nil, now: now)
        let scope = BandwidthScope(transfer: 7)
        #expect(machine.takeThrottling(transfer: 7) == .idle)
        // The burst passes without a wait.
        #expect(machine.request(1, 50, in: scope, now: now).grants.count == 1)
        #expect(machine.takeThrottling(transfer: 7) == .free)
        #expect(machine.request(2, 50, in: scope, now: now).grants.isEmpty)
        #expect(machine.takeThrottling(transfer: 7) == .held)
        // The transfer still waits, and the other one does not.
        #expect(machine.takeThrottling(transfer: 7) == .held && machine.takeThrottling(transfer: 8) == .idle)
        #expect(machine.advance(to: now.advanced(by: .seconds(1))).grants.count == 1)
        #expect(machine.takeThrottling(transfer: 7) == .idle)
        _ = machine.request(3, 50, in: scope, now: now.advanced(by: .seconds(1)))
        machine.cancel(3)
        _ = machine.setRate(nil, ofTransfer: 7, now: now)
        #expect(machine.takeThrottling(transfer: 7) == .idle)
    }
}
