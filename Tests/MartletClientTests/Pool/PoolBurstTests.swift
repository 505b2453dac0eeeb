import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@testable import MartletCore

/// More simultaneous connection requests than can be opened together.
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

    @Test("Pending name lookups do not block lookups for other hosts")
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

    @Test("Dials that are cancelled before they start leave no dial and no waiter")
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

    @Test("Every call of a burst gets its connection")
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
