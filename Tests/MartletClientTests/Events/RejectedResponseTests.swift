import Martlet
import MartletTesting
import Testing

@Suite("Delegate calls and events for a rejected response", .timeLimit(.minutes(20)))
struct RejectedResponseTests {
    private struct Stubborn: HTTPMiddleware {
        func handle(
            _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
        ) async throws -> HTTPCall.Response {
            do {
                return try await next(request)
            } catch {
                return try await next(request)
            }
        }
    }

    @Test("The delegate receives a failure that is not classified as retryable")
    func delegate() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("no", status: 422)
        } run: { origin async throws in
            let delegate = RecordingDelegate()
            let session = HTTPSession.own { configuration in
                configuration.delegate = delegate
                configuration.validator = .success
                configuration.retry = .transient(maximumAttempts: 3, backoff: .constant(.zero))
                configuration.retry.includesAllErrors = true
                configuration.middleware = [Stubborn()]
            }
            let error = await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            #expect(error?.code == .unacceptableStatus)
            #expect(error?.exchange?.text == "no")
            #expect(delegate.calls == ["received 422", "failed unacceptableStatus"])
            #expect(origin.requests.count == 1)
        }
    }

    @Test("The session's events end with the failure")
    func events() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("no", status: 422)
        } run: { origin async throws in
            let session = HTTPSession.own { $0.validator = .success }
            let events = session.events
            await #expect(throws: HTTPError.self) { try await session.get(origin.url()) }
            await session.finishAndInvalidate()
            #expect(
                await SessionEventTests.all(events).map(SessionEventTests.word) == [
                    "started GET", "opened", "sent 1", "response 422 2", "failed unacceptableStatus",
                    "invalidated",
                ])
        }
    }
}
