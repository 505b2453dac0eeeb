import Synchronization
import Testing

@testable import MartletTransport

@Suite("DNS lookups")
struct LookUpTests {
    /// A resolver that blocks for names below `dead` until the test releases it. The system resolver blocks for half a
    /// minute.
    private final class System: Sendable {
        let calls = Mutex<[String]>([])
        let entered = Semaphore()
        let released = Semaphore()
        let running = Atomic(0)
        let mostRunning = Atomic(0)

        func lookUp(_ host: String) -> InFlightLookups.Answer {
            calls.withLock { $0.append(host) }
            let now = running.wrappingAdd(1, ordering: .relaxed).newValue
            mostRunning.max(now, ordering: .relaxed)
            defer { running.wrappingSubtract(1, ordering: .relaxed) }
            if host == "dead" || host.hasSuffix(".dead") {
                entered.signal()
                while !released.wait(seconds: 60) {}
                return .failure(ResolutionError(host: host, message: "no answer"))
            }
            return .success([SocketAddress(literal: "127.0.0.1", port: 0)].compactMap { $0 })
        }

        func lookUps(threads: Int = 512, reserve: Int = 0) -> InFlightLookups {
            var limits = LookUpMachine.Limits()
            limits.threadCount = threads
            limits.localReserve = reserve
            return InFlightLookups(
                limits: limits, isLocal: { $0.hasPrefix("alias") }, lookUp: { self.lookUp($0) })
        }

        /// Waits until `count` lookups of dead names have started.
        func untilEntered(_ count: Int) async {
            let entered = entered
            await BlockingThreadPool.shared.run {
                for _ in 0..<count {
                    while !entered.wait(seconds: 60) {}
                }
            }
        }
    }

    private let loop = EventLoop.sharedOrStalled

    /// Waits until `count` tasks wait for names.
    private func until(_ lookUps: InFlightLookups, _ count: Int) async {
        while lookUps.waitingCount != count { await Task.yield() }
    }

    private func request(_ name: String, of lookUps: InFlightLookups) -> Task<[SocketAddress], any Error> {
        Task { try await lookUps.addresses(of: name, port: 80, loop: loop) }
    }

    @Test("While 200 names do not resolve, other names resolve and cancelled lookups return")
    func deadNames() async throws {
        let system = System()
        let lookUps = system.lookUps(reserve: 8)
        // Half of the names share one domain, and the others each have their own.
        let dead = (0..<200).map { request($0 < 100 ? "\($0).one.dead" : "\($0).dead", of: lookUps) }
        await system.untilEntered(200)
        for name in ["live", "live.one.dead.", "live.example", "alias"] {
            let addresses = try await lookUps.addresses(of: name, port: 8080, loop: loop)
            #expect(addresses.map(\.description) == ["127.0.0.1:8080"])
        }
        for task in dead { task.cancel() }
        for task in dead {
            await #expect(throws: ResolutionError.self) { try await task.value }
        }
        #expect(lookUps.waitingCount == 0)
        #expect(lookUps.threadCount <= 512)
        for _ in dead { system.released.signal() }
    }

    @Test("Concurrent lookups stay within the thread limit, and all of them run")
    func bounded() async throws {
        let system = System()
        let lookUps = system.lookUps(threads: 10)
        let dead = (0..<100).map { request("name.\($0).dead", of: lookUps) }
        await system.untilEntered(10)
        await until(lookUps, 100)
        #expect(lookUps.threadCount == 10)
        #expect(system.running.load(ordering: .relaxed) == 10)
        for _ in dead { system.released.signal() }
        for task in dead {
            await #expect(throws: ResolutionError.self) { try await task.value }
        }
        #expect(system.mostRunning.load(ordering: .relaxed) == 10)
        #expect(Set(system.calls.withLock { $0 }).count == 100)
    }

    @Test("Reserved threads resolve names of the hosts file while all other threads are in use")
    func reserve() async throws {
        let system = System()
        let lookUps = system.lookUps(threads: 6, reserve: 2)
        let dead = (0..<20).map { request("name.\($0).dead", of: lookUps) }
        await system.untilEntered(4)
        await until(lookUps, 20)
        let addresses = try await lookUps.addresses(of: "Alias", port: 443, loop: loop)
        #expect(addresses.map(\.description) == ["127.0.0.1:443"])
        for task in dead { task.cancel() }
        for task in dead {
            await #expect(throws: ResolutionError.self) { try await task.value }
        }
        #expect(system.calls.withLock { $0.count } == 5)
        for _ in dead { system.released.signal() }
    }

    @Test("Concurrent calls for one name share a lookup, in any letter case and with any port")
    func shared() async throws {
        let system = System()
        let lookUps = system.lookUps()
        let loop = loop
        let spellings = ["dead", "Dead", "DEAD"]
        let dead = (0..<20).map { number in
            Task { try await lookUps.addresses(of: spellings[number % 3], port: UInt16(number), loop: loop) }
        }
        await until(lookUps, 20)
        await system.untilEntered(1)
        let ports = [8080, 443]
        for port in ports {
            let addresses = try await lookUps.addresses(of: "quick", port: UInt16(port), loop: loop)
            #expect(addresses.map(\.port) == [port])
        }
        system.released.signal()
        for (number, task) in dead.enumerated() {
            // The error has the host in the caller's spelling.
            await #expect(throws: ResolutionError(host: spellings[number % 3], message: "no answer")) {
                try await task.value
            }
        }
        #expect(system.calls.withLock { $0.filter { $0 == "dead" } } == ["dead"])
        #expect(lookUps.waitingCount == 0)
    }

    @Test("A lookup whose callers have all cancelled before its turn does not start")
    func notBegun() async throws {
        let system = System()
        let lookUps = system.lookUps(threads: 1)
        let dead = request("dead", of: lookUps)
        await until(lookUps, 1)
        let unwanted = request("unwanted", of: lookUps)
        await until(lookUps, 2)
        unwanted.cancel()
        await #expect(throws: ResolutionError.self) { try await unwanted.value }
        system.released.signal()
        await #expect(throws: ResolutionError.self) { try await dead.value }
        // Runs after the abandoned lookup on the only thread.
        _ = try await lookUps.addresses(of: "quick", port: 80, loop: loop)
        #expect(system.calls.withLock { $0 } == ["dead", "quick"])
    }

    @Test("A name that is abandoned and requested again during its lookup is not looked up twice")
    func joined() async throws {
        let system = System()
        let lookUps = system.lookUps(threads: 4)
        let first = request("dead", of: lookUps)
        await until(lookUps, 1)
        await system.untilEntered(1)
        first.cancel()
        await #expect(throws: ResolutionError.self) { try await first.value }
        let second = request("dead", of: lookUps)
        await until(lookUps, 1)
        system.released.signal()
        await #expect(throws: ResolutionError.self) { try await second.value }
        #expect(system.calls.withLock { $0 } == ["dead"])
    }
}
