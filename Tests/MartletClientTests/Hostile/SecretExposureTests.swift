import MartletContent
import MartletURL
import Logging
import MartletCookies
import MartletCore
import MartletTesting
import Synchronization
import Testing

/// No error text and no log line at any level repeats secrets of the request.
@Suite("Secrets in errors and logs", .timeLimit(.minutes(20)))
struct SecretExposureTests {
    /// Stores every logged line, with its metadata.
    private final class Journal: Sendable {
        private let lines = Mutex<[String]>([])

        func append(_ line: String) { lines.withLock { $0.append(line) } }
        var text: String { lines.withLock { $0.joined(separator: "\n") } }
    }

    private struct JournalHandler: LogHandler {
        let journal: Journal
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            journal.append("\(event.message) \(event.metadata ?? [:]) \(metadata)")
        }
    }

    private static let headers: HTTPHeaders = [
        .authorization: "Bearer hunter2", .cookie: "session=hunter2", .proxyAuthorization: "Basic hunter2",
    ]

    /// Runs a call to a server and returns all error texts and log lines.
    private func everythingSaid(
        _ script: ServerScript, _ call: (HTTPSession, String) async throws -> Void
    ) async throws -> String {
        let journal = Journal()
        var said = ""
        try await HostileScene.with(
            .plain, script,
            configure: { configuration in
                configuration.logger = Logger(label: "test") { _ in JournalHandler(journal: journal) }
                configuration.logger.logLevel = .trace
            },
            run: { scene in
                do {
                    try await call(scene.session, scene.base)
                } catch let error as HTTPError {
                    said += "\(error)\n\(error.message)\n\(error.origin ?? "")\n"
                    said += error.underlying.map { "\($0)" } ?? ""
                }
            })
        #expect(!journal.text.isEmpty)
        return said + journal.text
    }

    @Test(
        "Successful calls, and failures in each phase, log no fields, body, fragment or query secrets",
        arguments: [
            ServerScript(
                .expectRequestHead,
                .send("HTTP/1.1 200 OK\r\nSet-Cookie: a=hunter2\r\nContent-Length: 7\r\n\r\nhunter2"),
                .awaitClose),
            ServerScript(
                .expectRequestHead,
                .send(
                    "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: hunter2\r\nContent-Length: 7\r\n\r\nhunter2"
                ), .awaitClose),
            ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nSet-Cookie: hunter2\0\r\n\r\n"), .awaitClose),
            ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: hunter2\r\n\r\n"), .awaitClose),
            ServerScript(.expectRequestHead, .send("hunter2 hunter2 hunter2\r\n\r\n"), .awaitClose),
            ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhunter2"), .close),
            ServerScript(
                .expectRequestHead, .send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhunter2"),
                .awaitClose),
            ServerScript(
                .expectRequestHead,
                .send("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\nhunter2"),
                .awaitClose),
            ServerScript(.expectRequestHead, .reset),
            ServerScript(.expectRequestHead, .close),
        ])
    func calls(_ script: ServerScript) async throws {
        let said = try await everythingSaid(script) { session, base in
            let exchange = try await session.post(
                base + "/path?a=1&token=hunter2&user%5Bpassword%5D=hunter2#hunter2", body: .text("hunter2"),
                headers: SecretExposureTests.headers)
            _ = try exchange.validated()
        }
        #expect(!said.contains("hunter2"), "\(said)")
    }

    @Test("The error of a download with a rejected status contains no secrets")
    func download() async throws {
        let directory = try TemporaryDirectory()
        let script = ServerScript(
            .expectRequestHead, .send("HTTP/1.1 403 Forbidden\r\nContent-Length: 7\r\n\r\nhunter2"),
            .awaitClose)
        let said = try await everythingSaid(script) { session, base in
            try await session.download(
                HTTPRequest(method: .get, url: base + "/path?token=hunter2"),
                to: FilePath(directory.path + "/file"))
        }
        #expect(!said.contains("hunter2"), "\(said)")
    }

    @Test(
        "The error for an invalid URL does not repeat it",
        arguments: [
            "http://user:hunter2@a.example/", "http://user:hunter2@a b.example/",
            "http://hunter2@a.example:99999/",
            "http://user:hunter2@a.example/\r\n", "http://user:hunter2%0d@a.example/",
            "http://:hunter2@[::1/",
            "http://a.example/?token=hunter2 ", "http://user:hunter2/", "hunter2://a.example/?hunter2",
        ])
    func urls(_ url: String) async throws {
        do {
            _ = try await HTTPSession(configuration: .patient).get(url)
            Issue.record("not refused")
        } catch let error as HTTPError {
            // The scheme may be repeated, since it comes before any secret.
            let said =
                "\(error) \(error.message) \(error.origin ?? "") \(error.underlying.map { "\($0)" } ?? "")"
            #expect(!said.contains("hunter2") || url.hasPrefix("hunter2://"), "\(said)")
        }
    }

    @Test("The error for an invalid request does not repeat its fields")
    func fields() async throws {
        for headers: HTTPHeaders in [
            [.authorization: "hunter2\u{1}"], [.contentLength: "hunter2"], [.transferEncoding: "hunter2"],
            [.cookie: "hunter2\u{7F}"],
        ] {
            do {
                _ = try await HTTPSession(configuration: .patient).post(
                    "http://127.0.0.1:1/", body: .text("hunter2"), headers: headers)
                Issue.record("not refused")
            } catch let error as HTTPError {
                let framing = headers.contains(.contentLength) || headers.contains(.transferEncoding)
                #expect(framing || !"\(error)".contains("hunter2"), "\(error)")
            }
        }
    }

    @Test("A URL's description has no password")
    func urlDescription() throws {
        let url = try HTTPURL("http://user:hunter2@a.example/path")
        #expect(!"\(url)".contains("hunter2"))
        #expect(!"\([url])".contains("hunter2"))
    }

    @Test("A passphrase appears in no description")
    func passphrase() async throws {
        let identity = TLSIdentity(
            certificateChain: .text("hunter2"), privateKey: .text("hunter2"), passphrase: "hunter2")
        #expect(!"\(identity)".contains("hunter2"))
        #expect(!"\(TLSSettings(identity: identity))".contains("hunter2"))
        var configuration = SessionConfiguration.patient
        configuration.tls.identity = identity
        let error = await #expect(throws: HTTPError.self) {
            try await HTTPSession(configuration: configuration).get("https://127.0.0.1:1/")
        }
        #expect(error.map { "\($0) \($0.underlying.map { "\($0)" } ?? "")" }?.contains("hunter2") == false)
    }
}
