import Martlet
import MartletTesting
import Testing

/// A body whose bytes are always there already never makes its reader wait, so no interrupted wait can end the call.
@Suite("Cancelling a body that never makes its reader wait")
struct ReadyBodyTests {
    @Test("The piece after the cancel is CancellationError, not another piece", arguments: [true, false])
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
