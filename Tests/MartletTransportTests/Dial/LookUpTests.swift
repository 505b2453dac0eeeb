import Synchronization
import Testing

@testable import MartletTransport

@Suite("Look-ups of names")
struct LookUpTests {
    /// A resolver that blocks for the name `dead` until it is released, as the system's does for half a minute; here
    /// however long the test needs to see it blocked.
    private final class System: Sendable {
        let calls = Mutex<[String]>([])
        let entered = Semaphore()
        let released = Semaphore()

        func lookUp(_ host: String, _ port: Int) -> LookUps.Answer {
            calls.withLock { $0.append(host) }
            if host == "dead" {
                entered.signal()
                while !released.wait(seconds: 60) {}
                return .failure(ResolutionError(host: host, message: "no answer"))
            }
            return .success([SocketAddress(literal: "127.0.0.1", port: port)].compactMap { $0 })
        }
    }

    /// Waits until so many tasks wait for names.
    private func until(_ lookUps: LookUps, _ count: Int) async {
        while lookUps.waitingCount != count { await Task.yield() }
    }

    @Test("Many calls for a dead name take one thread, and other names are answered meanwhile")
    func deadName() async throws {
        let system = System()
        let lookUps = LookUps(workers: BlockingWorkers(threadLimit: 2)) { system.lookUp($0, $1) }
        let loop = EventLoop.sharedOrStalled
        let dead = (0..<20).map { _ in
            Task { try await lookUps.addresses(of: "dead", port: 80, loop: loop) }
        }
        await until(lookUps, 20)
        let addresses = try await lookUps.addresses(of: "quick", port: 8080, loop: loop)
        #expect(addresses.map(\.port) == [8080])
        system.released.signal()
        for task in dead {
            await #expect(throws: ResolutionError.self) { try await task.value }
        }
        #expect(system.calls.withLock { $0.filter { $0 == "dead" } } == ["dead"])
        #expect(lookUps.waitingCount == 0)
    }

    @Test("A look-up that everybody has given up before its turn is not begun")
    func notBegun() async throws {
        let system = System()
        let lookUps = LookUps(workers: BlockingWorkers(threadLimit: 1)) { system.lookUp($0, $1) }
        let loop = EventLoop.sharedOrStalled
        let dead = Task { try await lookUps.addresses(of: "dead", port: 80, loop: loop) }
        await until(lookUps, 1)
        let unwanted = Task { try await lookUps.addresses(of: "unwanted", port: 80, loop: loop) }
        await until(lookUps, 2)
        unwanted.cancel()
        await #expect(throws: ResolutionError.self) { try await unwanted.value }
        system.released.signal()
        await #expect(throws: ResolutionError.self) { try await dead.value }
        // Comes behind the unwanted one on the only thread.
        _ = try await lookUps.addresses(of: "quick", port: 80, loop: loop)
        #expect(system.calls.withLock { $0 } == ["dead", "quick"])
    }

    @Test("A name given up and asked for again, while it is looked up, is not looked up twice")
    func joined() async throws {
        let system = System()
        let lookUps = LookUps(workers: BlockingWorkers(threadLimit: 4)) { system.lookUp($0, $1) }
        let loop = EventLoop.sharedOrStalled
        let first = Task { try await lookUps.addresses(of: "dead", port: 80, loop: loop) }
        await until(lookUps, 1)
        await BlockingWorkers.shared.run { while !system.entered.wait(seconds: 60) {} }
        first.cancel()
        await #expect(throws: ResolutionError.self) { try await first.value }
        let second = Task { try await lookUps.addresses(of: "dead", port: 80, loop: loop) }
        await until(lookUps, 1)
        system.released.signal()
        await #expect(throws: ResolutionError.self) { try await second.value }
        #expect(system.calls.withLock { $0 } == ["dead"])
    }
}
