import Foundation
import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import Testing

@Suite("Uploads with a response before their end")
struct UploadFaultTests {
    private static let early = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"

    /// Returns a body whose second piece, or end, waits for the signal.
    private func pieces(_ texts: [String], behind signal: OneShot<Void>) -> Pieces {
        var pieces = Pieces { index in
            guard index == 1 else { return }
            _ = await signal.wait(until: .distantFuture, on: .sharedOrStalled)
        }
        pieces.texts = texts
        return pieces
    }

    @Test("A source that is too short fails the call even if the server stalls within its response")
    func tooShort() async throws {
        let script = ServerScript(.expectRequestHead, .send(UploadFaultTests.early), .readAll)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let signal = OneShot<Void>()
            let body = HTTPBody.stream(length: 10) { pieces(["abc"], behind: signal) }
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().stream(HTTPRequest(.post, origin), body: body) { _, body in
                    signal.fulfill(())
                    for try await _ in body {}
                }
            }
            #expect(error?.code == .bodyLengthMismatch)
        }
    }

    @Test("A chunk is sent completely, so its server may respond before the next one")
    func wholeChunk() async throws {
        let script = ServerScript(
            .expectRequestHead, .expect("5\r\nhello\r\n"), .send(UploadFaultTests.early),
            .expect("1\r\n!\r\n0\r\n\r\n"), .send("0\r\n\r\n"), .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let signal = OneShot<Void>()
            let body = HTTPBody.stream { pieces(["hello", "!"], behind: signal) }
            let answer = try await HTTPSession.own().stream(HTTPRequest(.post, origin), body: body) {
                _, body in
                signal.fulfill(())
                return try await body.collect()
            }
            #expect(answer == Array("abc".utf8))
            #expect(origin.recorder.problems.isEmpty)
        }
    }

    @Test("Progress ends with the bytes sent, even if a redirect continued without a body")
    func progressBehindRedirect() async throws {
        try await TestOrigin.withOrigin { request in
            guard request.path == "/form" else { return .text("done") }
            _ = try await request.collectText()
            return .redirect(to: "/done", status: 303)
        } run: { origin in
            let last = Mutex(TransferProgress())
            let exchange = try await HTTPSession.own().upload(
                .bytes([UInt8](repeating: 0x61, count: 50_000)), to: HTTPRequest(.post, origin, "/form")
            ) { progress in last.withLock { $0 = progress } }
            #expect(exchange.text == "done")
            let progress = last.withLock { $0 }
            #expect(progress.completedByteCount == 50_000 && progress.totalByteCount == 50_000)
        }
    }

    @Test("The wait for a connection does not include the time before its request")
    func waitBehindRedirect() async throws {
        let delay = Duration.milliseconds(300)
        try await TestOrigin.withOrigin { request in
            guard request.path == "/slow" else { return .text("done") }
            return .redirect(to: "/done").with { $0.delay = delay }
        } run: { origin in
            let exchange = try await HTTPSession.own().get(origin.url("/slow"))
            // On any machine the duration of the first response is not part of the wait for a connection.
            #expect(exchange.metrics.total >= delay)
            #expect(exchange.metrics.wait <= exchange.metrics.total - delay)
        }
    }

    @Test("A pipe without a writer is rejected as a file and does not block", .timeLimit(.minutes(1)))
    func pipe() async throws {
        let directory = try TemporaryDirectory()
        let path = directory.path + "/pipe"
        try #require(unsafe mkfifo(path, 0o600) == 0)
        try await TestOrigin.withOrigin(.plain) { _ in
            .text("ok")
        } run: { origin in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().send(HTTPRequest(.post, origin), body: .file(FilePath(path)))
            }
            #expect(error?.code == .fileFailed)
            #expect(origin.requests.isEmpty)
        }
    }
}
