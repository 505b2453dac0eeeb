import Foundation
import Martlet
import MartletTesting
import SystemPackage
import Testing

@Suite("Errors contain the request", .timeLimit(.minutes(20)))
struct ErrorRequestTests {
    private static let codes: [HTTPError.Code] = [
        .invalidURL, .invalidRequest, .resolutionFailed, .connectFailed, .tlsFailed, .proxyFailed, .timedOut,
        .connectionLost, .emptyResponse, .truncated, .protocolViolation, .limitExceeded, .bodyTooLarge,
        .contentDecodingFailed, .unacceptableStatus, .unacceptableContentType, .decodingFailed,
        .unacceptableBody, .tooManyRedirects, .redirectRejected, .linkRejected, .authenticationFailed,
        .bodyNotReplayable, .bodyLengthMismatch, .bodySourceFailed, .fileFailed, .diskFull, .fileExists,
        .alreadyInProgress, .cachedBodyCorrupted, .sessionInvalidated, .systemFailed,
    ]

    @Test("The description and localizedDescription of every error begin with the request")
    func descriptions() throws {
        let url = try HTTPURL("https://me:hunter2@api.example.com/v2/posts?limit=20&token=hunter2#hunter2")
        for code in Self.codes {
            let error = HTTPError(code, phase: .preparing, message: "what happened", method: .put, url: url)
            let expected =
                "PUT https://api.example.com/v2/posts?limit=20&token=***: what happened"
            #expect(error.description == expected)
            #expect((error as any Error).localizedDescription == expected)
            #expect(error.method == .put && error.origin == "https://api.example.com:443")
            var dumped = ""
            dump(error, to: &dumped)
            #expect(dumped.contains(code.rawValue) && !dumped.contains("hunter2"))
            let bare = HTTPError(code, phase: .preparing, message: "what happened")
            #expect(bare.description == "what happened")
            #expect(bare.method == nil && bare.url == nil && bare.status == nil)
        }
    }

    @Test("A description without a URL is the message, and several attempts are counted at its end")
    func descriptionParts() throws {
        let url = try HTTPURL("http://h.test/")
        func text(_ message: String, _ method: HTTPRequest.Method?, _ url: HTTPURL?, attempts: Int = 1) -> String {
            HTTPError(
                .connectFailed, phase: .connecting, message: message, method: method, url: url, attempts: attempts
            ).description
        }
        #expect(text("refused", .get, nil) == "refused")
        #expect(text("", .get, nil) == "connectFailed")
        #expect(text("refused", nil, url) == "http://h.test/: refused")
        #expect(text("refused", .get, url, attempts: 2) == "GET http://h.test/: refused (2 attempts)")
        #expect(text("refused", nil, nil, attempts: 3) == "refused (3 attempts)")
    }

    @Test(
        "The error of an invalid URL repeats it without secrets, and has a position only inside of it",
        arguments: [
            (
                "ftp://me:hunter2@h/",
                "invalid URL “ftp://***@h/”: a URL's scheme must be http or https, but this one is “ftp”"
            ), ("", "invalid URL “”: the URL is empty"),
            (
                "h.test/a",
                "invalid URL “h.test/a”: the URL does not begin with http:// or https://"
            ),
            (
                "http://h.test:65536/",
                "invalid URL “http://h.test:65536/”: port 65536 is out of range 1–65535 at character 14"
            ),
        ])
    func invalidURL(_ text: String, _ description: String) async throws {
        let error = await #expect(throws: HTTPError.self) { try await HTTPSession.own().get(text) }
        #expect(error?.code == .invalidURL && error?.description == description)
    }

    /// A failing call, with the request that its error must contain.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: HTTPError.Code
        var method = HTTPRequest.Method.get
        var path = "/a?limit=20&token=***"
        var status: Int?
        /// The path of the first request, if it was redirected.
        var original: String?
        let call: @Sendable (HTTPSession, TestOrigin) async throws -> Void

        init(
            _ name: String, _ code: HTTPError.Code, method: HTTPRequest.Method = .get,
            path: String = "/a?limit=20&token=***", status: Int? = nil, redirectedFrom original: String? = nil,
            _ call: @escaping @Sendable (HTTPSession, TestOrigin) async throws -> Void
        ) {
            testDescription = name
            self.code = code
            self.method = method
            self.path = path
            self.status = status
            self.original = original
            self.call = call
        }
    }

    private static func url(_ origin: TestOrigin, _ path: String = "/a") -> String {
        origin.url("\(path)?limit=20&token=hunter2")
    }

    private static func request(
        _ origin: TestOrigin, _ path: String = "/a", method: HTTPRequest.Method = .get
    ) throws -> HTTPRequest { try HTTPRequest(method: method, url: url(origin, path)) }

    static let rows: [Row] = [
        Row("a status", .unacceptableStatus, path: "/404?limit=20&token=***", status: 404) {
            _ = try await $0.get(url($1, "/404")).validated()
        },
        Row("a status with decode", .unacceptableStatus, path: "/404?limit=20&token=***", status: 404) {
            _ = try await $0.get(url($1, "/404")).decode([Int].self)
        },
        Row("a content type", .unacceptableContentType, path: "/html?limit=20&token=***", status: 200) {
            _ = try await $0.get(url($1, "/html")).decode([Int].self)
        },
        Row("a body that is not JSON", .decodingFailed, status: 200) {
            _ = try await $0.get(url($1)).decode([Int].self)
        },
        Row("a validator", .unacceptableBody, status: 200) {
            _ = try await $0.get(url($1), options: RequestOptions(validator: .body(atLeast: 1_000_000)))
        },
        Row("a stream's status", .unacceptableStatus, path: "/404?limit=20&token=***", status: 404) {
            try await $0.stream(request($1, "/404"), validate: .success) { _, _ in }
        },
        Row("a cut body", .truncated, path: "/cut?limit=20&token=***", status: 200) {
            _ = try await $0.get(url($1, "/cut"))
        },
        Row("a cut body of a stream", .truncated, path: "/cut?limit=20&token=***", status: 200) {
            try await $0.stream(request($1, "/cut")) { _, body in _ = try await body.collect() }
        },
        Row("a body above the limit", .bodyTooLarge, status: 200) {
            _ = try await $0.get(url($1), options: RequestOptions(bodyLimit: 1))
        },
        Row("a line above the limit", .limitExceeded, status: 200) {
            try await $0.stream(request($1)) { _, body in for try await _ in body.lines(upTo: 1) {} }
        },
        Row("a value of a stream", .decodingFailed, status: 200) {
            try await $0.stream(request($1)) { _, body in
                for try await _ in body.jsonLines(of: [Int].self) {}
            }
        },
        Row("a download's status", .unacceptableStatus, path: "/404?limit=20&token=***", status: 404) {
            try await $0.save(request($1, "/404"), to: "/nowhere/f", overwrites: true)
        },
        Row("a file that cannot be created", .fileFailed) {
            try await $0.download(request($1), to: "/nowhere/f")
        },
        Row("a file that a stream cannot create", .fileFailed) {
            try await $0.stream(request($1)) { _, body in try await body.write(to: "/nowhere/f") }
        },
        Row("a file that a task cannot create", .fileFailed) {
            let task = await $0.task(for: try request($1))
            _ = try await task.value
            try await task.becomeDownload(to: "/nowhere/f")
        },
        Row("a file to upload", .fileFailed, method: .put) {
            try await $0.upload(.file("/nowhere/f"), to: request($1, method: .put))
        },
        Row("a body that cannot be encoded", .invalidRequest, method: .post) {
            _ = try await $0.post(url($1), body: .json(Double.nan))
        },
        Row("a body that was read before", .bodyNotReplayable, method: .post) { session, origin in
            let body = HTTPBody.once(AsyncStream<[UInt8]> { $0.finish() })
            _ = try await session.post(url(origin), body: body)
            _ = try await session.post(url(origin), body: body)
        },
        Row("a body of another length", .bodyLengthMismatch, method: .post) {
            let body = HTTPBody.once(
                AsyncStream<[UInt8]> {
                    $0.yield([1])
                    $0.finish()
                }, length: 5)
            _ = try await $0.post(url($1), body: body)
        },
        Row("a header", .invalidRequest) {
            _ = try await $0.get(url($1), headers: [.contentLength: "x"])
        },
        Row("CONNECT", .invalidRequest, method: .connect) {
            _ = try await $0.send(request($1, method: .connect))
        },
        Row("a redirect to another scheme", .redirectRejected, path: "/ftp?limit=20&token=***", status: 302) {
            _ = try await $0.get(url($1, "/ftp"))
        },
        Row(
            "too many redirects", .tooManyRedirects, path: "/loop", status: 302,
            redirectedFrom: "/loop?limit=20&token=***"
        ) { _ = try await $0.get(url($1, "/loop")) },
        Row(
            "a status after a redirect", .unacceptableStatus, path: "/404", status: 404,
            redirectedFrom: "/to/404?limit=20&token=***"
        ) { _ = try await $0.get(url($1, "/to/404")).validated() },
        Row(
            "a validator after a redirect", .unacceptableStatus, path: "/404", status: 404,
            redirectedFrom: "/to/404?limit=20&token=***"
        ) { _ = try await $0.get(url($1, "/to/404"), validate: .success) },
        Row(
            "a cut body after a redirect", .truncated, path: "/cut", status: 200,
            redirectedFrom: "/to/cut?limit=20&token=***"
        ) { _ = try await $0.get(url($1, "/to/cut")) },
        Row(
            "a cut body of an opened response after a redirect", .truncated, path: "/cut", status: 200,
            redirectedFrom: "/to/cut?limit=20&token=***"
        ) { _ = try await $0.open(url($1, "/to/cut")).body.collect() },
        Row(
            "a call in the closure of a redirected stream", .unacceptableStatus, path: "/404?limit=20&token=***",
            status: 404
        ) { session, origin in
            try await session.stream(url(origin, "/to/a")) { _, _ in
                _ = try await session.get(url(origin, "/404")).validated()
            }
        },
        Row("an invalid head", .protocolViolation, path: "/garbage?limit=20&token=***") {
            _ = try await $0.get(url($1, "/garbage"))
        },
        Row("no response", .emptyResponse, path: "/empty?limit=20&token=***") {
            _ = try await $0.with { $0.retry = .never }.get(url($1, "/empty"))
        },
        Row("an invalidated session", .sessionInvalidated) {
            await $0.invalidateAndCancel()
            _ = try await $0.get(url($1))
        },
        Row("a timeout before the request", .timedOut) {
            _ = try await $0.get(
                url($1), options: RequestOptions(timeouts: Timeouts(total: .nanoseconds(1))))
        },
        Row("a middleware's own error", .unacceptableBody) {
            struct Failing: HTTPMiddleware {
                func handle(
                    _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
                ) async throws -> HTTPCall.Response {
                    throw HTTPError(.unacceptableBody, phase: .preparing, message: "no")
                }
            }
            _ = try await $0.with { $0.middleware = [Failing()] }.get(url($1))
        },
        Row("an event stream", .unacceptableStatus, path: "/404?limit=20&token=***", status: 404) {
            for try await _ in $0.events(url($1, "/404")) {}
        },
        Row("a resumable download", .unacceptableStatus, path: "/404?limit=20&token=***", status: 404) {
            let directory = try TemporaryDirectory()
            try await $0.download(
                url($1, "/404"), to: FilePath("\(directory.path)/f"), options: DownloadOptions())
        },
        Row("a host's endpoint", .unacceptableStatus, path: "/404", status: 404) {
            struct Missing: HTTPEndpoint {
                typealias Response = [Int]
                var path: String { "404" }
            }
            _ = try await $0.host($1.base).call(Missing())
        },
        Row("a host's parameters", .invalidRequest, path: "/a") {
            _ = try await $0.host($1.base).get("a", query: ["a": .number(.nan)])
        },
    ]

    @Test(
        "Every throwing function reports the method, the URL without secrets, and the status",
        arguments: rows)
    func boundaries(_ row: Row) async throws {
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case let path where path.hasPrefix("/to/"): return .redirect(to: String(path.dropFirst(3)))
            case "/404": return .text("hunter2", status: 404)
            case "/html": return OriginResponse(headers: ["Content-Type": "text/html"], body: .text("<p>"))
            case "/ftp": return OriginResponse(302, headers: ["Location": "ftp://a.example/"])
            case "/loop": return OriginResponse(302, headers: ["Location": "/loop"])
            case "/cut":
                return OriginResponse(body: .text("0123")).with { $0.headers = ["Content-Length": "20"] }
                    .with { $0.closesConnection = true }
            default:
                // A response before the end of the request would end the upload.
                _ = try? await request.collectBody()
                return .json(text: #"{"a":1}"#)
            }
        } run: { origin async throws in
            guard !["/garbage", "/empty"].contains(where: row.path.hasPrefix) else { return }
            try await check(row, origin)
        }
        guard row.path.hasPrefix("/garbage") || row.path.hasPrefix("/empty") else { return }
        let script = ServerScript(
            .expectRequestHead, .send(row.path.hasPrefix("/garbage") ? "garbage\r\n\r\n" : ""), .close)
        try await TestOrigin.withOrigin(scripts: script) { try await check(row, $0) }
    }

    private func check(_ row: Row, _ origin: TestOrigin) async throws {
        let session = HTTPSession.own()
        let error = try #require(
            await #expect(throws: HTTPError.self) { try await row.call(session, origin) })
        #expect(error.code == row.code)
        #expect(error.method == row.method)
        #expect(error.url?.absoluteString == origin.url(row.path))
        #expect(error.status == row.status)
        let original = row.original.map { origin.url($0) }
        #expect(error.originalURL?.absoluteString == original)
        if original != nil {
            #expect(error.hops.first { $0.reason == .redirect }?.url.absoluteString == original)
        }
        let redirect = original.map { " (redirected from \($0))" } ?? ""
        #expect(error.description.hasPrefix("\(row.method) \(origin.url(row.path))\(redirect): "), "\(error)")
        #expect(!"\(error) \(String(reflecting: error))".contains("hunter2"))
    }

    @Test("The error of a failed connection after a redirect names both URLs, without secrets")
    func unreachableTarget() async throws {
        try await TestOrigin.withOrigin { _ in
            .redirect(to: "http://127.0.0.1:1/b?token=hunter2")
        } run: { origin async throws in
            let error = await #expect(throws: HTTPError.self) {
                try await HTTPSession.own().get(origin.url("/a?token=hunter2#part"))
            }
            let first = origin.url("/a?token=***")
            #expect(error?.code == .connectFailed && error?.originalURL?.absoluteString == first)
            #expect(error?.hops.map(\.reason) == [.redirect] && error?.hops.first?.url.absoluteString == first)
            let request = "GET http://127.0.0.1:1/b?token=*** (redirected from \(first)): "
            #expect(error?.description.hasPrefix(request) == true, "\(error as Any)")
            #expect(error?.description.hasSuffix(" (2 requests)") == true, "\(error as Any)")
        }
    }

    @Test("The message for a status contains the status, the content type and the body size")
    func statusMessage() async throws {
        try await TestOrigin.withOrigin { _ in
            .json(text: #"{"title":"no such page"}"#, status: 404)
        } run: { origin async throws in
            let session = HTTPSession.own()
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(origin.url("/posts?limit=20")).validated()
            }
            #expect(
                error?.description
                    == "GET \(origin.url("/posts?limit=20")): 404 Not Found (application/json, 24 bytes)")
        }
    }
}
