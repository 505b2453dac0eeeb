import MartletTesting

import Martlet

/// The samples of the page for people who come from URLSession, compiled; a test compares the two texts.
enum URLSessionSamples {
    static func buffered(_ session: HTTPSession) async throws -> (Int, [UInt8]) {
        let exchange = try await session.get("https://api.example.com/users/1")
        let status = exchange.statusCode
        let bytes = exchange.body
        return (status, bytes)
    }

    static func decoded(_ session: HTTPSession) async throws -> User {
        let user: User = try await session.get("https://api.example.com/users/1").decode()
        return user
    }

    static func sent(_ session: HTTPSession, _ user: User, token: String) async throws -> [HTTPExchange] {
        var request = try HTTPRequest(method: .put, url: "https://api.example.com/users/1")
        request.headerFields[.authorization] = "Bearer \(token)"
        let response = try await session.send(request, body: .json(user))

        let timeouts = Timeouts(connect: .seconds(5), total: .seconds(120))
        let slow = try await session.send(request, options: .init(timeouts: timeouts))
        return [response, slow]
    }

    static func streamed(_ session: HTTPSession, _ request: HTTPRequest) async throws {
        try await session.stream(request) { response, body in
            for try await line in body.lines {
                print(response.status, line)
            }
        }
    }

    static func files(_ session: HTTPSession, _ request: HTTPRequest) async throws -> HTTPExchange {
        try await session.upload(.file("/data/movie.mp4"), to: request) { progress in
            print(progress.fractionCompleted ?? 0)
        }
        try await session.download(
            "https://example.org/model.gguf", to: "/models/model.gguf"
        ) { progress in
            print(progress.completedByteCount)
        }
        let task = await session.task(for: request, body: .file("/data/movie.mp4"))
        await task.pause()
        await task.resume()
        let result = try await task.value
        return result
    }

    static func watched(_ session: HTTPSession, _ request: HTTPRequest) async throws {
        for call in await session.tasks where call.url?.host == "old.example.com" {
            print(call.kind, call.state, call.downloadProgress.completedByteCount)
            call.cancel()
        }
        let task = await session.task(for: request, body: .file("/data/movie.mp4"))
        for await state in task.states {
            print(state)
        }
    }

    static func sharing() -> HTTPSession {
        var configuration = SessionConfiguration.default
        configuration.sharesTransfers = true
        return HTTPSession(configuration: configuration)
    }

    static func configured(token: String) -> [HTTPSession] {
        var configuration = SessionConfiguration.ephemeral
        configuration.headers[.acceptLanguage] = "de, en;q=0.5"
        configuration.timeouts.idle = .seconds(30)
        configuration.cookies = CookieJar()
        configuration.redirects = .doNotFollow
        let mine = HTTPSession(configuration: configuration)

        configuration.tls.trust = .system.adding(.file("/etc/corp/ca.pem"))
        configuration.authentication.credentials = .digest(user: "me", password: token)
        return [mine, HTTPSession(configuration: configuration)]
    }

    struct Guarded: SessionDelegate {
        func redirect(
            by response: HTTPResponse, from request: HTTPRequest,
            to proposed: HTTPRequest, in context: CallContext
        ) async throws -> HTTPRequest? {
            proposed.authority == request.authority ? proposed : nil
        }

        func respond(
            to challenge: AuthenticationChallenge, in context: CallContext
        ) async throws -> ChallengeDisposition {
            .credentials(.basic(user: "me", password: "secret"))
        }
    }

    static func failing(_ session: HTTPSession, _ request: HTTPRequest) async throws {
        do {
            _ = try await session.send(request)
        } catch let error as HTTPError where error.isConnectFailure {
            print("nothing was sent:", !error.wasSent)
        }
    }

    static func tested(_ session: HTTPSession) async throws -> String {
        let origin = try await TestOrigin.start { request in
            .text("Hello, \(request.path)")
        }
        let greeting = try await session.get(origin.url("/martlet")).text
        await origin.stop()
        return greeting
    }
}
