import MartletContent
import MartletCore
import MartletTesting
import MartletTransport
import Testing

/// The kernel reports a reset once, to the first system call. The error must be the same for either.
@Suite("Resets that only the writer sees", .timeLimit(.minutes(20)))
struct ResetTests {
    /// Uploads to a server that sends a text and then resets the connection during a write. Returns the error.
    private func error(behind text: String) async throws -> HTTPError {
        let mock = MockTransport(scripts: ServerScript(.expectRequestHead, .send(text), .awaitClose))
        var configuration = SessionConfiguration.patient
        configuration.connector = ResetConnector(connector: mock)
        let session = HTTPSession(configuration: configuration)
        let error = try #require(
            await #expect(throws: HTTPError.self) {
                try await session.put(
                    "http://mock.example/",
                    body: .stream {
                        Pieces("one", "two", "three") { index in
                            // The server's text has arrived before the write that fails.
                            if index == 1 {
                                try await mock.recorder.waitForCounts { $0.bytesSent >= text.utf8.count }
                            }
                        }
                    })
            })
        #expect(session.poolStatus.leased == 0)
        await mock.stop()
        return error
    }

    @Test(
        "A reset that the upload's writer sees first is a lost connection, whatever the reader received",
        arguments: [
            "", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Le",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
            "HTTP/1.1 200 OK\r\n\r\nhello",
        ])
    func seenByWriter(_ text: String) async throws {
        for _ in 0..<20 {
            let error = try await error(behind: text)
            #expect(error.code == .connectionLost, "\(error)")
            #expect((error.underlying as? SystemError)?.isReset == true, "\(error)")
            #expect(error.wasSent)
        }
    }
}
