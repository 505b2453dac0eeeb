import Martlet

/// The samples of the page for people who come from async-http-client, compiled; a test compares the two texts.
enum AsyncHTTPClientSamples {
    static func buffered() async throws -> [UInt8] {
        let session = HTTPSession()
        var options = RequestOptions()
        options.timeouts.total = .seconds(30)
        options.bodyLimit = .mebibytes(1)
        let exchange = try await session.get(
            "https://api.example.com/users/1", options: options)
        let body = exchange.body
        return body
    }

    static func sent(_ session: HTTPSession, token: String) async throws -> (HTTPExchange, HTTPSession) {
        var request = try HTTPRequest(method: .post, url: "https://api.example.com/notes")
        request.headerFields[.authorization] = "Bearer \(token)"
        let posted = try await session.send(request, body: .text("a note"))
        let impatient = session.with { $0.timeouts.total = .seconds(2) }
        return (posted, impatient)
    }

    static func streamed(_ session: HTTPSession, _ request: HTTPRequest) async throws {
        try await session.stream(request) { response, body in
            for try await chunk in body {
                print(response.status, chunk.count)
            }
        }
        try await session.download(
            "https://example.org/model.gguf", to: "/models/model.gguf"
        ) { progress in
            print(progress.completedByteCount)
        }
    }

    static func opened(_ session: HTTPSession) async throws {
        let open = try await session.open("https://origin.internal/file")
        for try await chunk in open.body {
            print(open.status, chunk.count)
        }
    }

    static func bodies(_ pieces: AsyncStream<[UInt8]>) -> [HTTPBody] {
        let again = HTTPBody.stream(length: 3) { pieces }
        let once = HTTPBody.once(pieces, length: 3)
        return [again, once]
    }

    static func configured() throws -> [HTTPSession] {
        var configuration = SessionConfiguration.default
        configuration.tls.trust = .only(.file("/etc/corp/ca.pem"))
        configuration.redirects = .follow(limit: 5)
        configuration.timeouts.connect = .seconds(5)
        configuration.timeouts.idle = .seconds(30)
        configuration.pool.connectionsPerHost = 8
        configuration.proxy = try .http("http://proxy.example:3128")
        let tuned = HTTPSession(configuration: configuration)

        configuration.logger = Logger(label: "client")
        return [tuned, HTTPSession(configuration: configuration)]
    }

    static func quick(_ session: HTTPSession) async throws -> Int {
        let quick = Task(executorPreference: HTTPSession.loopExecutor) {
            try await session.get("https://api.example.com/users/1").statusCode
        }
        let code = try await quick.value
        return code
    }
}
