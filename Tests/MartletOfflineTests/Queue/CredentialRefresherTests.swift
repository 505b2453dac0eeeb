import MartletCore
import Synchronization
import Testing

@testable import MartletOffline

@Suite("New credentials for several requests")
struct CredentialRefresherTests {
    /// Counts what is asked of it.
    private final class Renewals: Sendable {
        let count = Mutex(0)

        var credentials: OfflineCredentials {
            OfflineCredentials {
                self.count.withLock { $0 += 1 }
            } authorize: {
                $0
            }
        }
    }

    @Test("Whoever has waited for new ones finds that they are the new ones")
    func counted() async throws {
        for _ in 0..<300 {
            let renewals = Renewals()
            let keeper = CredentialRefresher(renewals.credentials)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        try await keeper.renew(after: 0)
                        // One that went on before they were counted would ask for others.
                        try await keeper.renew(after: 0)
                    }
                }
                try await group.waitForAll()
            }
            #expect(renewals.count.withLock { $0 } == 1)
        }
    }

    @Test("Those that were refused are asked for again, by the next that is refused")
    func failed() async throws {
        let isBroken = Mutex(true)
        let keeper = CredentialRefresher(
            OfflineCredentials {
                if isBroken.withLock({ $0 }) {
                    throw HTTPError(.fileFailed, phase: .preparing, message: "no")
                }
            } authorize: {
                $0
            })
        await #expect(throws: HTTPError.self) { try await keeper.renew(after: 0) }
        await #expect(throws: HTTPError.self) { try await keeper.renew(after: 0) }
        isBroken.withLock { $0 = false }
        try await keeper.renew(after: 0)
        try await keeper.renew(after: 0)
        let request = HTTPRequest(method: .get, scheme: "http", authority: "a.example", path: "/")
        #expect(try await keeper.authorize(request).generation == 1)
    }
}
