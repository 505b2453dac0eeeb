import Martlet
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Diagnostics of a session")
struct DiagnosticsTests {
    @Test("Calls, connections and waiters are counted per host and return to zero")
    func tellsWhatIsHeld() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/" ? .text("x") : OriginResponse().with { $0.delay = .seconds(3600) }
        } run: { origin in
            let session = HTTPSession.own { $0.pool.connectionsPerHost = 1 }
            _ = try await session.get(origin.url())
            let name = origin.base
            let idle = SessionDiagnostics.Host(origin: name, idle: 1)
            #expect(session.diagnostics.hosts == [idle])
            #expect(session.diagnostics.isIdle)

            let calls = [
                Task { try await session.get(origin.url("/a")) },
                Task { try await session.get(origin.url("/b")) },
            ]
            #expect(await eventually { session.diagnostics.pool.waiting == 1 })
            let busy = session.diagnostics
            #expect(busy.runningCalls == 2)
            #expect(!busy.isIdle)
            let host = SessionDiagnostics.Host(origin: name, leased: 1, waiting: 1)
            #expect(busy.hosts == [host])
            #expect(busy.processSockets > 0)
            #expect(busy.description.hasPrefix("2 calls; 1 leased, 0 idle, 0 dialling, 1 waiting; process: "))
            #expect(busy.description.hasSuffix("\n\(name): 1 leased, 0 idle, 0 dialling, 1 waiting"))

            for call in calls { call.cancel() }
            #expect(await eventually { session.diagnostics.isIdle && session.diagnostics.hosts.isEmpty })
        }
    }

    @Test("A view's counts are part of its session's, and both kinds of connection count for one host")
    func countsViews() async throws {
        try await TestOrigin.withOrigin(handler: .fixed(.text("x"))) { origin in
            let session = HTTPSession.own()
            let view = session.with { $0.socketOptions.tcpNoDelay.toggle() }
            _ = try await session.get(origin.url())
            _ = try await view.get(origin.url())
            #expect(session.diagnostics.hosts.map(\.idle) == [2])
            #expect(view.diagnostics.hosts == session.diagnostics.hosts)
        }
    }
}
