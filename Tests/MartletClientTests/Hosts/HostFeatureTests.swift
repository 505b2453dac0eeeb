import FoundationEssentials
import Martlet
import MartletTesting
import SystemPackage
import Testing

@Suite("Features of a host", .timeLimit(.minutes(20)))
struct HostFeatureTests {
    /// A function that sends a request of a host.
    enum Feature: String, CaseIterable, Sendable {
        case verb, stream, events, deliveries, startDownload, download, managedDownload, send, submit

        /// Whether the error of a request is thrown to the caller instead of stored.
        var throwsErrors: Bool { self != .managedDownload && self != .submit }

        /// Sends a request to a path and waits for its end.
        func run(_ api: HTTPHost, _ path: String, headers: HTTPHeaders, in directory: String) async throws {
            let file = FilePath("\(directory)/file")
            switch self {
            case .verb: _ = try await api.get(path, headers: headers)
            case .stream:
                try await api.stream(path, headers: headers) { _, body in for try await _ in body {} }
            case .events: for try await _ in api.events(path, headers: headers) { break }
            case .deliveries: for try await _ in api.deliveries(for: path, headers: headers) {}
            case .startDownload:
                let options = DownloadOptions(collision: .overwrite, headers: headers)
                _ = try await api.startDownload(path, to: .file(file), options: options).value
            case .download:
                try await api.download(
                    path, to: file, options: DownloadOptions(collision: .overwrite, headers: headers))
            case .managedDownload:
                let manager = try await DownloadManager(
                    session: api.session, directory: FilePath("\(directory)/downloads"))
                let id = try await manager.add(
                    path, of: api, to: .file(file),
                    options: DownloadOptions(collision: .overwrite, headers: headers))
                for await state in manager.states(of: id) where state.hasEnded { break }
                await manager.close()
            case .send, .submit:
                let queue = try await OfflineQueue(
                    session: api.session, directory: FilePath("\(directory)/queue"))
                if self == .send {
                    let outcome = await Result.of {
                        try await api.send(path, body: .text("x"), headers: headers, whenOffline: .enqueue)
                    }
                    await queue.close()
                    guard case .response = try outcome.get() else { throw CancellationError() }
                } else {
                    try await queue.submit(path, of: api, body: .text("x"), headers: headers)
                    try await queue.drained
                    await queue.close()
                }
            }
        }
    }

    private struct ServiceError: Error, Codable, Equatable {
        var reason: String
    }

    private static let names = ["Authorization", "X-Api-Key", "Cookie", "X-Call"]

    /// Responds as each feature requires.
    private static let respond: OriginHandler.Respond = { request in
        _ = try await request.collectBody()
        if request.path.hasSuffix("/missing") {
            return .json(text: #"{"reason":"no such post"}"#, status: 404)
        }
        guard request.headers["Accept"] == "text/event-stream" else { return .text("ok") }
        return OriginResponse(
            200, headers: ["Content-Type": "text/event-stream"], body: .text("id: 1\ndata: a\n\n"))
    }

    private static func host(
        at origin: TestOrigin, _ change: (inout HTTPHost) -> Void = { _ in }
    ) throws -> HTTPHost {
        let key = try #require(HTTPField.Name("X-Api-Key"))
        let (session, _) = try CacheScene.session()
        return try session.host(
            origin.url("/v2"), headers: [.accept: "application/json", .init(key): "secret", .cookie: "c=1"]
        ).with {
            $0.credentials = .basic(user: "me", password: "pw")
            change(&$0)
        }
    }

    private static func sent(_ request: RecordedRequest?) -> [String] {
        names.map { request?.headers[$0] ?? "-" }
    }

    private static let call: HTTPHeaders = ["X-Call": "mine"]

    @Test("A request has the headers, the credentials and the base of the host", arguments: Feature.allCases)
    func atHome(_ feature: Feature) async throws {
        try await TestOrigin.withOrigin(respond: HostFeatureTests.respond) { origin in
            let directory = try TemporaryDirectory()
            let api = try HostFeatureTests.host(at: origin)
            try await feature.run(api, "x?a=1", headers: HostFeatureTests.call, in: directory.path)
            #expect(origin.requests.first?.target == "/v2/x?a=1")
            #expect(
                HostFeatureTests.sent(origin.requests.first) == ["Basic bWU6cHc=", "secret", "c=1", "mine"])
        }
    }

    @Test("A whole URL of another origin receives no headers or credentials of the host", arguments: Feature.allCases)
    func elsewhere(_ feature: Feature) async throws {
        try await TestOrigin.withOrigin(respond: HostFeatureTests.respond) { home in
            try await TestOrigin.withOrigin(respond: HostFeatureTests.respond) { other in
                let directory = try TemporaryDirectory()
                let api = try HostFeatureTests.host(at: home)
                try await feature.run(api, other.url("/x"), headers: HostFeatureTests.call, in: directory.path)
                #expect(HostFeatureTests.sent(other.requests.first) == ["-", "-", "-", "mine"])
                #expect(home.requests.isEmpty)
            }
        }
    }

    @Test("A redirect to another origin carries no secrets", arguments: Feature.allCases)
    func redirected(_ feature: Feature) async throws {
        try await TestOrigin.withOrigin(respond: HostFeatureTests.respond) { other in
            let place = other.url("/there")
            try await TestOrigin.withOrigin { request in
                _ = try await request.collectBody()
                return .redirect(to: place, status: 307)
            } run: { home in
                let directory = try TemporaryDirectory()
                let api = try HostFeatureTests.host(at: home)
                try await feature.run(api, "x", headers: HostFeatureTests.call, in: directory.path)
                #expect(HostFeatureTests.sent(home.requests.first).prefix(2) == ["Basic bWU6cHc=", "secret"])
                let sent = try #require(other.requests.first)
                #expect(HostFeatureTests.sent(sent).prefix(3) == ["-", "-", "-"])
            }
        }
    }

    @Test(
        "An unacceptable status is the service's own error",
        arguments: Feature.allCases.filter(\.throwsErrors))
    func mapped(_ feature: Feature) async throws {
        try await TestOrigin.withOrigin(respond: HostFeatureTests.respond) { origin in
            let directory = try TemporaryDirectory()
            let api = try HostFeatureTests.host(at: origin) {
                $0.errors = .decoding(ServiceError.self)
            }
            await #expect(throws: ServiceError(reason: "no such post")) {
                try await feature.run(api, "missing", headers: [:], in: directory.path)
            }
            // An error before sending is mapped, too.
            let naming = api.with { $0.errors = ErrorMapper { ServiceError(reason: $0.code.rawValue) } }
            let count = origin.requests.count
            if feature != .startDownload {
                await #expect(throws: ServiceError(reason: "invalidURL")) {
                    try await feature.run(naming, "../../x", headers: [:], in: directory.path)
                }
            }
            #expect(origin.requests.count == count)
        }
    }

    @Test("An event stream reconnects with the last identifier and the host's headers")
    func reconnection() async throws {
        try await TestOrigin.withOrigin { request in
            if request.headers["Last-Event-ID"] == "2" { return OriginResponse(204) }
            let text = "event: add\nid: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: cut"
            return OriginResponse(200, headers: ["Content-Type": "text/event-stream"], body: .text(text))
        } run: { origin in
            var options = EventStreamOptions()
            options.sleep = { _ in }
            let api = try HostFeatureTests.host(at: origin)
            var found: [ServerSentEvent] = []
            for try await event in api.events("feed", options: options) { found.append(event) }
            #expect(
                found == [
                    ServerSentEvent(event: "add", data: "a", id: "1"), ServerSentEvent(data: "b", id: "2"),
                ])
            #expect(origin.requests.map { $0.headers["Last-Event-ID"] } == [nil, "2"])
            #expect(origin.requests.map { $0.headers["X-Api-Key"] } == ["secret", "secret"])
            #expect(
                origin.requests.map { $0.headers["Accept"] } == ["text/event-stream", "text/event-stream"])
        }
    }

    @Test("An event stream has the method and the fields of its request, and is a POST with a body")
    func eventRequests() async throws {
        try await TestOrigin.withOrigin { _ in
            OriginResponse(200, headers: ["Content-Type": "text/event-stream"], body: .text("data: a\n\n"))
        } run: { origin in
            let api = try HostFeatureTests.host(at: origin)
            let request = try HTTPRequest(
                method: .patch, url: origin.url("/feed"), headers: [.accept: "text/event-stream;v=2"])
            for try await _ in api.events(request, body: .text("a")) { break }
            for try await _ in api.events("feed", body: .text("a")) { break }
            for try await _ in api.events("feed", method: .put, body: .text("a")) { break }
            #expect(origin.requests.map(\.method) == [.patch, .post, .put])
            #expect(origin.requests.first?.headers["Accept"] == "text/event-stream;v=2")
        }
    }

    @Test("A cached response that is not accepted is skipped, and the network's response follows")
    func skippedPreview() async throws {
        let counter = Counter()
        try await TestOrigin.withOrigin { _ in
            counter.add()
            return counter.count == 1
                ? CacheScene.stale("gone", "max-age=60").with { $0.status = 404 } : CacheScene.answer("back")
        } run: { origin in
            let api = try HostFeatureTests.host(at: origin)
            #expect(try await api.get("x").statusCode == 404)
            let strict = api.with { $0.validatesStatus = true }
            var found: [String] = []
            for try await delivery in strict.deliveries(for: "x") { found.append(delivery.exchange.text) }
            #expect(found == ["back"])
            // Without validation it is delivered as a preview.
            #expect(counter.count == 2)
        }
    }

    @Test("Managers and queues store no host secrets, and the next process adds them again")
    func stored() async throws {
        try await TestOrigin.withOrigin(respond: HostFeatureTests.respond) { origin in
            let directory = try TemporaryDirectory()
            let api = try HostFeatureTests.host(at: origin)
            let (downloads, outbox) = (FilePath("\(directory.path)/d"), FilePath("\(directory.path)/q"))
            var limits = DownloadLimits()
            limits.concurrentFiles = 1
            let manager = try await DownloadManager(
                session: api.session, directory: downloads, limits: limits)
            let id = try await manager.add("x", of: api, to: .file(FilePath("\(directory.path)/missing/f")))
            await manager.pause(id)
            await manager.close()
            let keeping = OfflineQueueOptions(sendsRequests: false)
            let queue = try await OfflineQueue(session: api.session, directory: outbox, options: keeping)
            try await queue.submit("note", of: api, body: .text("x"))
            #expect(await queue.entries.first?.secretFields == ["Cookie", "X-Api-Key"])
            await queue.close()
            var names = 0
            for name in try FileManager.default.subpathsOfDirectory(atPath: directory.path) {
                guard let data = FileManager.default.contents(atPath: "\(directory.path)/\(name)") else {
                    continue
                }
                names += 1
                let text = String(decoding: data, as: UTF8.self)
                for secret in ["\"secret\"", "c=1", "bWU6cHc", "pw"] {
                    #expect(!text.contains(secret), "\(name)")
                }
            }
            #expect(names >= 2)
            let next = try await OfflineQueue(
                session: api.session, directory: outbox, credentials: OfflineCredentials(api))
            try await next.drained
            await next.close()
            let note = try #require(origin.requests.first { $0.target == "/v2/note" })
            #expect(note.headers["X-Api-Key"] == "secret" && note.headers["Cookie"] == "c=1")
            var fields: HTTPHeaders = [.cookie: "own"]
            api.addHeaders(to: &fields, for: try HTTPURL(origin.url("/v2/x")))
            let key = try #require(HTTPField.Name("X-Api-Key"))
            #expect(fields[.cookie] == "own" && fields[key] == "secret")
            var others = HTTPHeaders()
            api.addHeaders(to: &others, for: try HTTPURL("https://other.example/v2/x"))
            #expect(others.isEmpty)
        }
    }
}

extension Result where Failure == any Error {
    /// Returns the result of an asynchronous function.
    fileprivate static func of(_ body: () async throws -> Success) async -> Result {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
