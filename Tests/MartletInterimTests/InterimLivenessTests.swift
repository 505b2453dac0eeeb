import Foundation
import Martlet
import MartletTestSupport
import MartletTesting
import Testing

/// In each of these tests, the server sends an interim response and waits until the client has reported it. Only then
/// it sends the rest, so that a client that reports it later hangs.
@Suite("Interim responses are reported when they arrive", .timeLimit(.minutes(10)))
struct InterimLivenessTests {
    /// A function of the API that sends a request and receives its whole response.
    struct Way: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let run: @Sendable (HTTPSession, _ url: String, RequestOptions, _ path: String) async throws -> Void

        init(
            _ name: String,
            _ run: @escaping @Sendable (HTTPSession, String, RequestOptions, String) async throws -> Void
        ) { (testDescription, self.run) = (name, run) }
    }

    static let ways = [
        Way("send") { session, url, options, _ in
            let exchange = try await session.get(url, options: options)
            #expect(exchange.text == "ok" && exchange.interimResponses.map(\.status.code) == [103])
        },
        Way("stream") { session, url, options, _ in
            try await session.stream(url, options: options) { response, body in
                #expect(response.interimResponses.count == 1)
                for try await piece in body { #expect(piece == Array("ok".utf8)) }
            }
        },
        Way("open") { session, url, options, _ in
            let open = try await session.open(url, options: options)
            for try await piece in open.body { #expect(piece == Array("ok".utf8)) }
        },
        Way("task") { session, url, options, _ in
            let exchange = try await session.task(for: url, options: options).value
            #expect(exchange.text == "ok")
        },
        Way("save") { session, url, options, path in
            try await session.save(url, to: path, options: options)
        },
        Way("downloadTask") { session, url, options, path in
            _ = try await session.downloadTask(for: url, to: path, options: options).value
        },
        Way("download") { session, url, options, path in
            try await session.download(url, to: path, options: DownloadOptions(segments: 1, request: options))
        },
        Way("host") { session, url, options, _ in
            let host = try session.host(url) { $0.options = options }
            #expect(try await host.get("").text == "ok")
        },
    ]

    @Test("Every function of the API reports them before the final response is sent", arguments: ways)
    func functions(_ way: Way) async throws {
        let script = ServerScript(.expectRequestHead, .sendHint, .await("seen"), .sendOK, .awaitClose)
        let path = FileManager.default.temporaryDirectory.appending(path: "martlet-interim-\(UUID())").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let (recorder, signals) = (InterimRecorder(), origin.signals)
            try await way.run(.own(origin), origin.url(), recorder.options { _ in signals.raise("seen") }, path)
            #expect(recorder.statuses == [103])
            #expect(recorder.responses.first?.headerFields.map(\.value) == ["</a.css>"])
            #expect(origin.recorder.problems.isEmpty)
        }
    }

    static let origins = [false, true]

    @Test("A 104 arrives during an upload, and the rest of the body is sent only after it", arguments: origins)
    func upload(isSecure: Bool) async throws {
        let script = ServerScript(
            .expectRequestHead, .expect("hello"),
            .send("HTTP/1.1 104 Upload Resumption Supported\r\nLocation: /uploads/1\r\n\r\n"), .expect("world"),
            .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(isSecure ? .tls() : .plain, scripts: script) { origin in
            let (recorder, signals) = (InterimRecorder(), origin.signals)
            let body = HTTPBody.stream(length: 10) {
                AsyncThrowingStream<[UInt8], any Error> { stream in
                    stream.yield(Array("hello".utf8))
                    // Unstructured, because a stream's closure is synchronous. It ends with the signal.
                    Task {
                        do {
                            try await signals.wait(for: "104")
                            stream.yield(Array("world".utf8))
                            stream.finish()
                        } catch { stream.finish(throwing: error) }
                    }
                }
            }
            let exchange = try await HTTPSession.own(origin).put(
                origin.url(), body: body, options: recorder.options { signals.raise("\($0.status.code)") })
            #expect(exchange.text == "ok")
            #expect(recorder.statuses == [104])
            #expect(recorder.responses.first?.headerFields[.location] == "/uploads/1")
            #expect(origin.recorder.problems.isEmpty)
        }
    }

    @Test("A 102 arrives while the server reads nothing and the socket is full", arguments: origins)
    func fullSocket(isSecure: Bool) async throws {
        let count = 24 << 20
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 102 Processing\r\n\r\n"), .await("seen"), .readBody(count), .sendOK,
            .awaitClose)
        try await TestOrigin.withOrigin(isSecure ? .tls() : .plain, scripts: script) { origin in
            let (recorder, signals) = (InterimRecorder(), origin.signals)
            let exchange = try await HTTPSession.own(origin).put(
                origin.url(), body: .bytes(Array(repeating: 97, count: count)),
                options: recorder.options { _ in signals.raise("seen") })
            #expect(exchange.text == "ok" && exchange.metrics.sentByteCount > UInt64(count))
            #expect(recorder.statuses == [102])
        }
    }

    @Test("A 100 is reported before the body that it permits, and counts as an interim response")
    func permission() async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 100 Continue\r\n\r\n"), .await("seen"), .expect("hello"), .sendOK,
            .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let (recorder, signals) = (InterimRecorder(), origin.signals)
            let session = HTTPSession.own(origin) { $0.continueTimeout = .seconds(300) }
            let exchange = try await session.put(
                origin.url(), body: .text("hello"), headers: [.expect: "100-continue"],
                options: recorder.options { _ in signals.raise("seen") })
            #expect(exchange.text == "ok")
            #expect(recorder.statuses == [100] && exchange.interimResponses.map(\.status.code) == [100])
        }
    }

    @Test("The session's events report them with the number of the call and without fields", arguments: [false, true])
    func events(isTask: Bool) async throws {
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 103 Early Hints\r\nSet-Cookie: a=s3cret\r\n\r\n"), .await("seen"),
            .sendOK, .awaitClose)
        try await TestOrigin.withOrigin(scripts: script) { origin in
            let session = HTTPSession.own(origin)
            let events = session.events
            let task = isTask ? await session.task(for: origin.url()) : nil
            async let sent = InterimLivenessTests.exchange(of: task, session, origin.url())
            var words: [String] = []
            var number: UInt64?
            events: for await event in events {
                words.append("\(event) \(String(decoding: try JSONEncoder().encode(event), as: UTF8.self))")
                switch event.kind {
                case .interimResponseReceived(let status):
                    #expect(status == 103)
                    number = event.call
                    origin.signals.raise("seen")
                case .finished, .failed, .cancelled: break events
                default: break
                }
            }
            #expect(try await sent.callNumber == number && (task == nil || task?.id == number))
            let interim = try #require(words.firstIndex { $0.contains("interim response 103") })
            #expect(words[interim].contains(#""event":"interimResponseReceived""#))
            #expect(words[interim].contains(#""status":103"#))
            #expect(words[interim - 1].contains("request sent, attempt 1"))
            #expect(words[interim + 1].contains("response 200"))
            #expect(words.allSatisfy { !$0.contains("s3cret") })
        }
    }

    private static func exchange(of task: HTTPTask?, _ session: HTTPSession, _ url: String) async throws -> HTTPExchange
    {
        if let task { return try await task.value }
        return try await session.get(url)
    }
}
