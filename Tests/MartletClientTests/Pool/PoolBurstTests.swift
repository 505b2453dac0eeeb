import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCore

/// More connections wanted in one moment than are opened together.
@Suite("Bursts of connections")
struct PoolBurstTests {
    private static let count = 300

    private static func session(_ resolver: GatedResolver) -> HTTPSession {
        HTTPSession.own { configuration in
            configuration.resolver = resolver
            configuration.pool.totalConnections = count
            configuration.pool.connectionsPerHost = count
            configuration.timeouts.connect = nil
        }
    }

    @Test("Hosts that nobody finds do not keep the others from being looked for")
    func silentHosts() async throws {
        let resolver = GatedResolver()
        let session = PoolBurstTests.session(resolver)
        let calls = (0..<PoolBurstTests.count).map { number in
            Task { try await session.get("http://host\(number).example:1/") }
        }
        #expect(await eventually { resolver.askedCount == PoolBurstTests.count })
        for call in calls { call.cancel() }
        for call in calls {
            await #expect(throws: CancellationError.self) { _ = try await call.value }
        }
        #expect(await eventually { session.poolStatus.dialing == 0 && session.poolStatus.waiting == 0 })
    }

    @Test("Those that are cancelled before they were begun leave nothing behind")
    func cancelled() async throws {
        let resolver = GatedResolver()
        let session = PoolBurstTests.session(resolver)
        let calls = (0..<PoolBurstTests.count).map { number in
            Task { try await session.get("http://host\(number).example:1/") }
        }
        #expect(await eventually { session.poolStatus.dialing == PoolBurstTests.count })
        for call in calls { call.cancel() }
        for call in calls {
            await #expect(throws: CancellationError.self) { _ = try await call.value }
        }
        #expect(await eventually { session.poolStatus.dialing == 0 && session.poolStatus.waiting == 0 })
    }

    @Test("All of them get their connections")
    func answered() async throws {
        let resolver = GatedResolver()
        resolver.open()
        let session = PoolBurstTests.session(resolver)
        try await TestOrigin.withOrigin { request in
            .text(request.path)
        } run: { origin in
            let url = "http://name.example:\(origin.port)"
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<PoolBurstTests.count {
                    group.addTask { try await session.get("\(url)/\(number)").text == "/\(number)" }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
        #expect(await eventually { session.poolStatus.dialing == 0 && session.poolStatus.waiting == 0 })
    }
}
