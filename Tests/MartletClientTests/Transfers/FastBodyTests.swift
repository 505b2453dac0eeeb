import FoundationEssentials
import Martlet
import MartletTesting
import SystemPackage
import Testing

@Suite("Fast bodies")
struct FastBodyTests {
    /// Enough bytes for the reader to wait for several at once.
    private static let burst: UInt64 = 64 << 20
    /// Fewer bytes than the reader waits for at once.
    private static let tail = "the last words"

    enum Framing: CaseIterable, Sendable {
        case length
        case untilClose
    }

    private static func head(_ framing: Framing, _ length: UInt64) -> String {
        switch framing {
        case .length: "HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n"
        case .untilClose: "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
        }
    }

    @Test(
        "A few bytes after a burst reach the reader while the server waits for it",
        arguments: Framing.allCases)
    func tail(_ framing: Framing) async throws {
        let whole = FastBodyTests.burst + UInt64(FastBodyTests.tail.utf8.count) + (32 << 20)
        let script = ServerScript(
            .expectRequestHead, .send(FastBodyTests.head(framing, whole)), .sendPattern(FastBodyTests.burst),
            .send(FastBodyTests.tail), .await("seen"), .sendPattern(32 << 20), .close)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let count = try await session.stream(try HTTPRequest(method: .get, url: origin.url())) {
                _, body in
                var count: UInt64 = 0
                for try await piece in body {
                    count += UInt64(piece.count)
                    if count >= FastBodyTests.burst + UInt64(FastBodyTests.tail.utf8.count) {
                        origin.signals.raise("seen")
                    }
                }
                return count
            }
            #expect(count == whole)
        }
    }

    @Test("A connection reused after a burst delivers small responses immediately")
    func reuse() async throws {
        let chunk = "100000\r\n"
        var steps: [ScriptStep] = [
            .expectRequestHead, .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ]
        for _ in 0..<48 { steps += [.send(chunk), .sendPattern(0x100000), .send("\r\n")] }
        steps += [.send("0\r\n\r\n"), .expectRequestHead, .sendOK, .awaitClose]
        try await TestOrigin.withOrigin(scripts: ServerScript(steps)) { origin in
            let session = HTTPSession.own()
            let count = try await session.stream(try HTTPRequest(method: .get, url: origin.url())) {
                _, body in
                try await body.reduce(into: 0) { $0 += $1.count }
            }
            #expect(count == 48 << 20)
            let second = try await session.get(origin.url())
            #expect(second.text == "ok")
            #expect(second.metrics.isConnectionReused)
        }
    }

    @Test("The idle timeout continues after a burst")
    func idleClock() async throws {
        let script = ServerScript(
            .expectRequestHead, .send(FastBodyTests.head(.length, 1 << 40)),
            .sendPattern(FastBodyTests.burst),
            .send(FastBodyTests.tail), .stall)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let timeouts = Timeouts.patient(idle: .milliseconds(300))
            let error = await #expect(throws: HTTPError.self) {
                try await session.stream(
                    try HTTPRequest(method: .get, url: origin.url()),
                    options: RequestOptions(timeouts: timeouts)
                ) { _, body in
                    for try await _ in body {}
                }
            }
            #expect(error?.timeout == .idle)
        }
    }

    @Test(
        "A download writes every byte at its offset", arguments: [0, 1, 524_287, 524_288, 524_289, 20_000_003])
    func download(_ length: Int) async throws {
        let directory = try TemporaryDirectory()
        let script = ServerScript(
            .expectRequestHead, .send(FastBodyTests.head(.length, UInt64(length))),
            .sendPattern(UInt64(length)),
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own()
            let path = directory.path + "/body"
            try await session.save(
                HTTPRequest(method: .get, url: origin.url()), to: FilePath(path), overwrites: false)
            let written = try Data(contentsOf: URL(filePath: path))
            #expect(written.count == length)
            #expect(TestPattern.firstMismatch(in: [UInt8](written), at: 0) == nil)
            #expect(try directory.contents() == ["body"])
        }
    }
}
