import Martlet
import MartletTesting
import Testing

/// A reader of a body whose bytes are always ready never waits, so interrupting a wait cannot end the call.
@Suite("Cancellation of a body that is always ready")
struct ReadyBodyTests {
    @Test("The read after cancellation throws CancellationError", arguments: [true, false])
    func endless(isChunked: Bool) async throws {
        let mock = MockTransport { _ in
            .pattern(1 << 40).with { if isChunked { $0.framing = .chunked(size: 4096) } }
        }
        let session = HTTPSession.own { $0.connect(to: mock) }
        let counter = Counter()
        let task = Task {
            try await session.stream(try HTTPRequest(method: .get, url: "http://mock.test/")) { _, body in
                for try await _ in body {
                    counter.add()
                    if counter.count == 5 { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
                }
            }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(counter.count == 5)
    }
}
