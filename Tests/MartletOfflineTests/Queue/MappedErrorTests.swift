import Martlet
import MartletTesting
import Testing

@Suite("Offline queue: sessions whose errors are mapped")
struct MappedErrorTests {
    private struct ServiceError: Error {}

    /// A session that maps each failure to an error of the service.
    private static var session: HTTPSession {
        OfflineScene.session.with { $0.errors = ErrorMapper { _ in ServiceError() } }
    }

    @Test("A POST without a key that reached no server is queued, whatever error the service maps it to")
    func unreachable() async throws {
        let gone = try await TestOrigin.start(handler: .status(200))
        let place = gone.url("/notes")
        await gone.stop()
        try await OfflineScene.run { scene in
            let session = MappedErrorTests.session
            let queue = try await scene.queue(session: session) { $0.backoff = OfflineScene.never }
            let outcome = try await session.send(
                try HTTPRequest(method: .post, url: place), body: .text("x"),
                whenOffline: .enqueue(as: OfflineSubmission(key: .none)))
            guard case .queued = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(try scene.directory.names() == ["1.request"])
            await queue.close()
        }
    }

    @Test("A PUT whose response is cut after its head counts as answered and is not sent again")
    func cutAnswer() async throws {
        try await OfflineScene.run { _ in
            OriginResponse.pattern(1_000).with { $0.fault = OriginFault(.close, afterBodyBytes: 10) }
        } _: { scene in
            let session = MappedErrorTests.session
            let queue = try await scene.queue(session: session)
            let outcome = try await session.send(
                try scene.request(.put), body: .text("x"), whenOffline: .enqueue)
            guard case .response(let answer) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(answer.statusCode == 200)
            try await queue.drained
            #expect(scene.origin.requests.count == 1)
            #expect(try scene.directory.names() == [])
            await queue.close()
        }
    }
}
