import FoundationEssentials
import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Tests every kind of target with every function that makes a call.
@Suite("Targets of calls", .timeLimit(.minutes(20)))
struct TargetTests {
    /// A function of a session that makes a call, and the method that it sends for a URL.
    struct Shape: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let method: HTTPRequest.Method
        /// Whether the function ignores the method of a request.
        var decidesMethod = false
        let call: @Sendable (HTTPSession, any HTTPTarget, TemporaryDirectory) async throws -> Void
    }

    private static let options = DownloadOptions(segments: 1, retry: DownloadRetry(maximumRetries: 1))

    static let shapes: [Shape] = [
        Shape(testDescription: "get", method: .get, decidesMethod: true) { session, target, _ in
            _ = try await session.get(target)
        },
        Shape(testDescription: "head", method: .head, decidesMethod: true) { session, target, _ in
            _ = try await session.head(target)
        },
        Shape(testDescription: "delete", method: .delete, decidesMethod: true) { session, target, _ in
            _ = try await session.delete(target)
        },
        Shape(testDescription: "post", method: .post, decidesMethod: true) { session, target, _ in
            _ = try await session.post(target, body: .text("x"))
        },
        Shape(testDescription: "put", method: .put, decidesMethod: true) { session, target, _ in
            _ = try await session.put(target, body: .text("x"))
        },
        Shape(testDescription: "patch", method: .patch, decidesMethod: true) { session, target, _ in
            _ = try await session.patch(target, body: .text("x"))
        },
        Shape(testDescription: "send by method", method: .options, decidesMethod: true) {
            session, target, _ in
            _ = try await session.send(.options, target)
        },
        Shape(testDescription: "send", method: .get) { session, target, _ in
            _ = try await session.send(target)
        },
        Shape(testDescription: "send with a body", method: .post) { session, target, _ in
            _ = try await session.send(target, body: .text("x"))
        },
        Shape(testDescription: "stream", method: .get) { session, target, _ in
            try await session.stream(target) { _, _ in }
        },
        Shape(testDescription: "upload", method: .post) { session, target, _ in
            try await session.upload(.text("x"), to: target)
        },
        Shape(testDescription: "save", method: .get) { session, target, directory in
            try await session.save(target, to: directory.path("f").string, overwrites: true)
        },
        Shape(testDescription: "task", method: .get) { session, target, _ in
            _ = try await session.task(for: target).value
        },
        Shape(testDescription: "download task", method: .get) { session, target, directory in
            _ = try await session.downloadTask(for: target, to: directory.path("f").string).value
        },
        Shape(testDescription: "lines", method: .get) { session, target, _ in
            for try await _ in session.lines(from: target) {}
        },
        Shape(testDescription: "events", method: .get) { session, target, _ in
            var options = EventStreamOptions()
            options.reconnects = false
            for try await _ in session.events(target, options: options) {}
        },
        Shape(testDescription: "deliveries", method: .get) { session, target, _ in
            for try await _ in session.deliveries(for: target) {}
        },
        Shape(testDescription: "download in parts", method: .get) { session, target, directory in
            try await session.download(target, to: directory.path("f"), options: TargetTests.options)
        },
        Shape(testDescription: "started download", method: .get) { session, target, directory in
            _ = try await session.startDownload(
                target, to: .file(directory.path("f").string), options: TargetTests.options
            ).value
        },
        Shape(testDescription: "host", method: .get, decidesMethod: true) { session, target, _ in
            _ = try await session.host("http://elsewhere.test").get(target)
        },
    ]

    private static let response = OriginResponse(
        200, headers: ["Content-Type": "text/event-stream"], body: .text("data: a\n\n"))

    @Test(
        "Strings, substrings, both URL types and requests all lead to the same URL", arguments: shapes)
    func kinds(_ shape: Shape) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(handler: .fixed(Self.response)) { origin in
            let text = origin.url("/p?a=1")
            let part: Substring = text[...]
            let targets: [any HTTPTarget] = [
                text, part, try HTTPURL(text), try #require(URL(string: text)),
                try HTTPRequest(method: shape.method, url: text),
            ]
            for target in targets {
                try? FileManager.default.removeItem(atPath: directory.path("f").string)
                try await shape.call(HTTPSession.own(), target, directory)
            }
            #expect(origin.requests.count == targets.count)
            for request in origin.requests {
                #expect(request.target == "/p?a=1")
                #expect(request.method == shape.method)
            }
        }
    }

    @Test(
        "A request contributes its header fields, and its method unless the function sets one",
        arguments: shapes)
    func requests(_ shape: Shape) async throws {
        let directory = try TemporaryDirectory()
        try await TestOrigin.withOrigin(handler: .fixed(Self.response)) { origin in
            let keepsMethod =
                !shape.decidesMethod && shape.testDescription.hasSuffix("download in parts") == false
                && shape.testDescription != "started download"
            let request = try HTTPRequest(
                method: keepsMethod ? .put : .get, url: origin.url(), headers: [.accept: "text/mine"])
            try await shape.call(HTTPSession.own(), request, directory)
            let sent = try #require(origin.requests.first)
            #expect(sent.method == (keepsMethod ? .put : shape.method))
            #expect(sent.headers["Accept"] == "text/mine")
        }
    }

    @Test("An invalid string is rejected before sending, with an error that names the character", arguments: shapes)
    func bad(_ shape: Shape) async throws {
        let directory = try TemporaryDirectory()
        let session = HTTPSession.own()
        for (text, part) in [("http://exa mple.test/", "character 10"), ("exam\u{1}ple.test", "character 4")] {
            if shape.testDescription == "host", !text.hasPrefix("http") { continue }
            let error = await #expect(throws: HTTPError.self) { try await shape.call(session, text, directory) }
            #expect(error?.code == .invalidURL)
            #expect(error?.phase == .preparing)
            #expect(error?.message.contains(part) == true, "\(error?.message ?? "")")
            #expect(error?.wasSent == false)
        }
    }

    @Test("A segmented download only accepts GET requests, and the error names the other method")
    func otherMethod() async throws {
        let directory = try TemporaryDirectory()
        let request = try HTTPRequest(method: .post, url: "http://a.test/")
        let error = await #expect(throws: HTTPError.self) {
            try await HTTPSession.own().download(request, to: directory.path("f"), options: Self.options)
        }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("POST") == true)
    }

    @Test("Each verb encodes query literals and Encodable values into the URL's query")
    func queries() async throws {
        struct Filter: Encodable {
            var tag: String
            var page: Int?
        }
        let filter = Filter(tag: "a b")
        let none: Filter? = nil
        try await TestOrigin.withOrigin(respond: { _ in .text("x") }) { origin in
            let session = HTTPSession.own { $0.queryEncoding.arrays = .repeated }
            let url = origin.url("/p?x=1#f")
            _ = try await session.get(url, query: ["tag": ["swift", "linux"], "limit": 20])
            _ = try await session.get(url, query: filter)
            _ = try await session.get(url, query: none)
            _ = try await session.get(url, query: nil)
            _ = try await session.head(url, query: ["a": 1])
            _ = try await session.delete(url, query: filter)
            _ = try await session.post(url, query: ["a": 1], body: .text("b"))
            _ = try await session.put(url, query: filter, body: .text("b"))
            _ = try await session.patch(url, query: ["a": 1], body: .text("b"))
            _ = try await session.send(HTTPRequest(method: .put, url: url), query: ["a": 1])
            try await session.stream(url, query: ["a": 1]) { _, _ in }
            #expect(
                origin.requests.map(\.target) == [
                    "/p?x=1&limit=20&tag=swift&tag=linux", "/p?x=1&tag=a%20b", "/p?x=1", "/p?x=1",
                    "/p?x=1&a=1",
                    "/p?x=1&tag=a%20b", "/p?x=1&a=1", "/p?x=1&tag=a%20b", "/p?x=1&a=1", "/p?x=1&a=1",
                    "/p?x=1&a=1",
                ])
        }
    }

    @Test("A query that cannot be encoded is a typed error that does not repeat its values")
    func badQueries() async throws {
        struct Node: Encodable {
            var value = Double.nan
        }
        let session = HTTPSession.own()
        let long = String(repeating: "hunter2", count: 10_000)
        let calls: [(HTTPError.Code, @Sendable () async throws -> HTTPExchange)] = [
            (
                .invalidRequest,
                {
                    try await session.get("http://a.test/", query: ["token": "hunter2", "n": .number(.nan)])
                }
            ),
            (.invalidRequest, { try await session.get("http://a.test/", query: Node()) }),
            (.invalidRequest, { try await session.get("http://a.test/", query: [1, 2]) }),
            (.invalidURL, { try await session.get("http://a.test/", query: ["a": .string(long)]) }),
        ]
        for (code, call) in calls {
            let error = await #expect(throws: HTTPError.self) { _ = try await call() }
            #expect(error?.code == code)
            #expect(error.map { "\($0)".contains("hunter2") } == false)
        }
    }

    @Test("The timeout argument sets the total timeout and keeps the session's other timeouts")
    func timeout() async throws {
        try await TestOrigin.withOrigin(scripts: ServerScript(.expectRequestHead, .awaitClose)) { origin in
            let session = HTTPSession.own { $0.timeouts.idle = .seconds(7) }
            let error = await #expect(throws: HTTPError.self) {
                try await session.get(origin.base, timeout: .milliseconds(50))
            }
            #expect(error?.timeout == .total)
            let options = RequestOptions(bodyLimit: 5).limited(to: .seconds(2))
            #expect(options.timeouts.total == .seconds(2))
            #expect(options.bodyLimit == 5)
        }
    }

    @Test("Lines of a response are delivered one by one, and a status other than 2xx is an error")
    func lines() async throws {
        try await TestOrigin.withOrigin(respond: { request in
            request.target == "/404" ? .text("no\n", status: 404) : .text("a\r\nb\n\nlast")
        }) { origin in
            let session = HTTPSession.own()
            var lines: [String] = []
            for try await line in session.lines(from: origin.url("/")) { lines.append(line) }
            #expect(lines == ["a", "b", "", "last"])
            let rejection = await #expect(throws: HTTPError.self) {
                for try await _ in session.lines(from: origin.url("/404")) {}
            }
            #expect(rejection?.code == .unacceptableStatus)
            let long = await #expect(throws: HTTPError.self) {
                for try await _ in session.lines(from: origin.url("/"), upTo: 3) {}
            }
            #expect(long?.code == .limitExceeded)
            // Leaving the loop closes the connection or returns it.
            for try await line in session.lines(from: origin.url("/")) {
                #expect(line == "a")
                break
            }
        }
    }
}
