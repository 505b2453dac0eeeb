import MartletCore
import Synchronization
import Testing

@testable import MartletOffline

@Suite("Refreshed credentials for several requests")
struct CredentialRefresherTests {
    /// A credential source that counts its calls.
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

    @Test("Requests that waited for a refresh use its result without another one")
    func counted() async throws {
        for _ in 0..<300 {
            let renewals = Renewals()
            let keeper = CredentialRefresher(renewals.credentials)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        try await keeper.renew(after: 0)
                        // A waiter that resumed before the count was updated would refresh again.
                        try await keeper.renew(after: 0)
                    }
                }
                try await group.waitForAll()
            }
            #expect(renewals.count.withLock { $0 } == 1)
        }
    }

    @Test("Rejected credentials are refreshed again for the next rejected request")
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
