import Martlet
import MartletTesting
import Testing

@testable import MartletCLI

@Suite("Closing the sessions of the program")
struct ProgramSessionsTests {
    @Test("Closing cancels running calls in all sessions and their views, and rejects new calls")
    func ends() async throws {
        let silence = ServerScript(.expectRequestHead, .awaitClose)
        try await TestOrigin.withOrigin(scripts: silence, silence) { origin in
            let program = ProgramSessions()
            let (first, second) = (program.make(), program.make())
            let url = origin.url()
            let calls = [first, second.with { $0.userAgent = "view" }].map { session in
                Task { try await session.get(url) }
            }
            while origin.connectionCount < 2 { await Task.yield() }
            await program.end()
            for call in calls {
                await #expect(throws: CancellationError.self) { try await call.value }
            }
            for session in [first, second] {
                let error = await #expect(throws: HTTPError.self) { try await session.get(url) }
                #expect(error?.code == .sessionInvalidated)
            }
        }
    }

    @Test("The program does not retain a session that has no other owner")
    func forgets() async throws {
        let program = ProgramSessions()
        func weakly() -> WeakSession { WeakSession(program.make()) }
        #expect(!weakly().isAlive)
        let kept = program.make()
        #expect(WeakSession(kept).isAlive)
        await kept.invalidateAndCancel()
    }
}
