import Martlet

/// The samples of the guides, compiled and never run; a test compares them with the pages.
enum GuideSamples {
    struct Payment: Encodable {
        var amount: Int
    }

    static func handle(_ line: String) {}
    static func preload(_ link: String) {}

    static func interim(_ session: HTTPSession) async throws {
        let options = RequestOptions {
            $0.onInterimResponse = { response in
                let fields = response.headerFields
                for field in fields where field.name.canonicalName == "link" {
                    preload(field.value)
                }
            }
        }
        let page = try await session.get("https://example.org/", options: options)
        print(page.text)
    }

    static func work() async {}
    static func rows() -> AsyncStream<[UInt8]> { AsyncStream { $0.finish() } }

    static func json() async throws {
        struct User: Codable, Sendable {
            var id: Int?
            var name: String
        }

        let session = HTTPSession()
        let user: User = try await session.get("https://api.example.com/users/1").decode()
        let ada = User(name: "Ada")
        let made: User = try await session.post(
            "https://api.example.com/users", json: ada
        ).decode()
        print(user, made)
    }

    static func host(_ session: HTTPSession, _ token: String) async throws {
        struct APIProblem: Error, Decodable { var title: String }

        let api = try session.host("https://api.example.com/v2") {
            $0.encoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.decoder = .json(keys: .snakeCase, dates: .iso8601)
            $0.authentication = .bearer(token) {
                try await session.get("https://id.example.com/token").validated().text
            }
            $0.errors = .decoding(APIProblem.self)
        }
        let users: [User] = try await api.get(
            "users", query: ["tag": ["swift", "linux"], "limit": 20]
        ).decode()
        print(users)
    }

    static func problem(_ session: HTTPSession) throws -> HTTPHost {
        struct APIProblem: Error, Decodable {
            var title: String
        }

        let api = try session.host("https://api.example.com/v2") {
            $0.errors = .decoding(APIProblem.self)
        }
        return api
    }

    static func token(_ session: HTTPSession, _ token: String) throws -> HTTPHost {
        let api = try session.host("https://api.example.com/v2") {
            $0.authentication = .bearer(token) {
                try await session.get("https://id.example.com/token").validated().text
            }
        }
        return api
    }

    static func limits() async throws {
        var configuration = SessionConfiguration.default
        configuration.timeouts.total = .seconds(60)
        configuration.retry = .transient(maximumAttempts: 4)
        let patient = HTTPSession(configuration: configuration)
        let fast = try await patient.get("https://example.org/", timeout: .seconds(2))
        print(fast)
    }

    static func settings(secret: String, primaryPin: String, backupPin: String) throws -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.tls.trust = .system.adding(.file("/etc/corp/ca.pem"))
        configuration.tls.trust = try .pinnedPublicKeys(primaryPin, backup: backupPin)
        configuration.tls.identity = try .pkcs12(
            file: "/etc/app/client.p12", passphrase: secret)
        return configuration
    }

    static func credentials(secret: String) -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.authentication.credentials = .basic(user: "me", password: secret)
        return configuration
    }

    static func proxy() throws -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.proxy = try .http("http://proxy.internal:3128")
        return configuration
    }

    static func middleware(secret: String, trace: String) -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.middleware = [
            KeyMiddleware(key: secret),
            ClosureMiddleware { request, _, next in
                var request = request
                request.headers["X-Trace"] = trace
                return try await next(request)
            },
        ]
        return configuration
    }

    static func sign(_ head: HTTPRequest) -> String { "" }

    static func networkMiddleware() -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.cache = .memoryOnly()
        configuration.networkMiddleware = [
            ClosureMiddleware { request, _, next in
                var request = request
                request.headers["X-Signature"] = sign(request.head)
                return try await next(request)
            }
        ]
        return configuration
    }

    static func cookies() async throws {
        var configuration = SessionConfiguration.default
        let jar = CookieJar(file: "/var/lib/app/cookies")
        configuration.cookies = jar
        let session = HTTPSession(configuration: configuration)
        _ = try await session.get("https://example.org/login")
        print(await jar.allCookies.count)
        try await jar.save()
    }

    static func errors(_ session: HTTPSession) async throws {
        do {
            _ = try await session.get("https://example.org/").validated()
        } catch let error as HTTPError where error.isTimeout {
            print("too slow:", error.phase, "sent:", error.wasSent)
        } catch let error as HTTPError where error.status == 404 {
            print(error)  // GET https://example.org/: 404 Not Found (text/html, 58 bytes)
        }
    }

    static func redirects(_ session: HTTPSession) async throws {
        var options = RequestOptions()
        options.redirects = .doNotFollow
        let moved = try await session.get("https://example.org/old", options: options)
        print(moved.status)
    }

    static func retries() -> HTTPSession {
        var configuration = SessionConfiguration.default
        configuration.retry = .transient(maximumAttempts: 4)
        let session = HTTPSession(configuration: configuration)
        return session
    }

    static func retriedPost(_ session: HTTPSession, _ payment: Payment) async throws {
        var options = RequestOptions()
        options.retry = .transient(maximumAttempts: 4)
        options.idempotencyKey = .random
        _ = try await session.post(
            "https://api.example.com/payments", body: .json(payment), options: options)
    }

    static func streams(_ session: HTTPSession) async throws {
        try await session.stream("https://example.org/large.bin") { response, body in
            for try await chunk in body {
                print(response.status, chunk.count)
            }
        }
        try await session.stream("https://example.org/log") { _, body in
            for try await line in body.lines { print(line) }
        }
        for try await line in session.lines(from: "https://example.org/log") {
            handle(line)
        }
    }

    static func uploads(_ session: HTTPSession, _ url: String, nickname: String?) async throws {
        _ = try await session.post(url, body: .text("Hello"))
        _ = try await session.post(url, body: .form(["name": "Ada", "language": "Swift"]))
        _ = try await session.post(
            url,
            body: .multipart {
                $0.field("title", "Sea")
                $0.file("photo", at: "/data/sea.jpg")
            })
        try await session.post(url, form: ["name": "Ada", "nickname": nickname])
        try await session.post(
            url, multipart: [.field("title", "Sea"), .file("photo", at: "/data/sea.jpg")])
        let body = HTTPBody.stream(length: nil, contentType: "text/csv") { rows() }
        _ = try await session.put(url, body: body)
    }

    static func task(_ session: HTTPSession, _ request: HTTPRequest) async {
        let task = await session.task(for: request, body: .file("/data/movie.mp4"))
        await task.pause()
        await task.resume()
        await task.cancel()
    }

    static func loop() async {
        await withTaskExecutorPreference(HTTPSession.loopExecutor) {
            await work()
        }
    }

    static func serviceErrors(_ session: HTTPSession) throws -> HTTPHost {
        struct Problem: Decodable {
            var title: String
        }

        enum ServiceError: Error {
            case conflict(etag: String?)
            case problem(String)
        }

        let service = try session.host("https://api.example.com/v2") {
            $0.errors = .decoding(Problem.self) { problem, error in
                switch error.status {
                case 409, 412: ServiceError.conflict(etag: error.exchange?.headers["ETag"])
                default: ServiceError.problem(problem.title)
                }
            }
        }
        return service
    }

    static func serviceMiddleware(_ session: HTTPSession, secret: String) throws -> HTTPHost {
        let api = try session.with { $0.middleware.append(KeyMiddleware(key: secret)) }
            .host("https://api.example.com/v2")
        return api
    }

    static func recordCalls() async throws {
        let recorder = HARRecorder()
        var configuration = SessionConfiguration.default
        configuration.delegate = recorder
        let session = HTTPSession(configuration: configuration)
        _ = try await session.get("https://example.org/")
        try await recorder.write(to: "calls.har")
    }
}

struct KeyMiddleware: HTTPMiddleware {
    let key: String

    func handle(
        _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
    ) async throws -> HTTPCall.Response {
        var request = request
        request.headers[.authorization] = "Key \(key)"
        let response = try await next(request)
        guard response.status == .serviceUnavailable else { return response }
        return try await next(request)
    }
}

struct BodyDigest: HTTPMiddleware {
    func handle(
        _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
    ) async throws -> HTTPCall.Response {
        let digest = DigestSink(.sha256)
        for try await piece in request.body.pieces { try await digest.write(piece) }
        try await digest.finish()
        var request = request
        request.headers["X-Content-SHA256"] = await digest.hexadecimal
        return try await next(request)
    }
}

actor HARRecorder: SessionDelegate {
    private var entries: [HAREntry] = []

    func completed(_ result: CallResult, in context: CallContext) {
        switch result {
        case .succeeded(let exchange):
            entries.append(HAREntry(exchange))
        case .failed(let error as HTTPError):
            if let exchange = error.exchange {
                entries.append(HAREntry(exchange, error: error))
            } else if let method = error.method, let url = error.url {
                entries.append(
                    HAREntry(
                        failed: HTTPRequest(method: method, url: url), url: url,
                        error: error, metrics: error.metrics ?? HTTPMetrics()))
            }
        case .failed: break  // cancelled, or an error of the program's own code
        }
    }

    func write(to path: String) throws {
        let file = try FileDescriptor.open(
            FilePath(path), .writeOnly, options: [.create, .truncate],
            permissions: .ownerReadWrite)
        try file.closeAfter { _ = try file.writeAll(HARLog.bytes(entries)) }
    }
}
