import Dispatch
import Martlet
import MartletTesting
import MartletTestSupport
import MartletTransport
import Synchronization
import Testing

@Suite("Names that do not resolve")
struct DeadNameTests {
    /// The system's resolver with a name server that does not respond for names that begin with `dead`.
    /// Lookups of these names block their threads until ``release()``.
    private final class SilentServer: Resolver {
        private final class Gate: Sendable {
            let blockedCount = Atomic(0)
            let semaphore = DispatchSemaphore(value: 0)
        }

        private let gate: Gate
        private let lookUps: InFlightLookups

        init() {
            let gate = Gate()
            self.gate = gate
            lookUps = InFlightLookups(isLocal: { $0 == "alias" }) { host in
                guard host.hasPrefix("dead") else {
                    return .success([SocketAddress(literal: "127.0.0.1", port: 0)].compactMap { $0 })
                }
                gate.blockedCount.wrappingAdd(1, ordering: .relaxed)
                gate.semaphore.wait()
                // Releases the next blocked lookup, too.
                gate.semaphore.signal()
                return .failure(ResolutionError(host: host, message: "no answer"))
            }
        }

        var blockedCount: Int { gate.blockedCount.load(ordering: .relaxed) }
        var waitingCount: Int { lookUps.waitingCount }

        func release() { gate.semaphore.signal() }

        func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
            try await lookUps.addresses(of: host, port: UInt16(port), loop: .sharedOrStalled)
        }
    }

    @Test("While 200 lookups hang, requests to other hosts are served, and hanging requests can be cancelled")
    func served() async throws {
        let server = SilentServer()
        defer { server.release() }
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin async throws in
            let session = HTTPSession.own { $0.resolver = server }
            let dead = (0..<200).map { number in
                Task { _ = try await session.get("http://dead\(number).example/") }
            }
            #expect(await eventually { server.blockedCount == 200 })
            for host in ["live.example", "live.dead0.example", "LIVE", "alias"] {
                #expect(try await session.get("http://\(host):\(origin.port)/").text == "ok")
            }
            for task in dead { task.cancel() }
            for task in dead {
                await #expect(throws: CancellationError.self) { try await task.value }
            }
            #expect(await eventually { server.waitingCount == 0 })
            #expect(try await session.get("http://live.example.net:\(origin.port)/").text == "ok")
        }
    }

    @Test(
        "The system's resolver resolves localhost, its subdomains and address literals",
        arguments: ["localhost", "LOCALHOST.", "sub.localhost", "127.0.0.1"])
    func localhost(_ host: String) async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("ok"))) { origin async throws in
            let exchange = try await HTTPSession.own().get("http://\(host):\(origin.port)/")
            #expect(exchange.text == "ok")
        }
    }
}
