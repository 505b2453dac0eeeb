import Martlet
import MartletTesting
import MartletTestSupport
import Synchronization
import Testing

/// A feature at a position of the pipeline that counts its calls.
private protocol Counted: FeatureKey where Value == Passes? {}

extension Counted {
    static var defaultValue: Passes? { nil }

    static func middleware(for passes: Passes?) -> (any HTTPMiddleware)? { passes }
}

private enum AtRequest: Counted {
    static var position: StagePosition { .request }
}

private enum AtAuthentication: Counted {
    static var position: StagePosition { .authentication }
}

private enum AtCookies: Counted {
    static var position: StagePosition { .cookies }
}

private enum AtCache: Counted {
    static var position: StagePosition { .cache }
}

/// A middleware that counts the responses that pass through it.
private final class Passes: HTTPMiddleware {
    private let responses = Mutex<[(source: HTTPExchange.Source, cacheStatus: String?)]>([])

    var count: Int { responses.withLock { $0.count } }
    var last: (source: HTTPExchange.Source, cacheStatus: String?)? { responses.withLock { $0.last } }

    func handle(
        _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
    ) async throws -> HTTPCall.Response {
        let response = try await next(request)
        responses.withLock { $0.append((response.source, response.cacheStatus)) }
        return response
    }
}

@Suite("Third-party features")
struct FeatureTests {
    @Test(
        "Each call passes features at every position, whichever setting was assigned first",
        arguments: [true, false])
    func besideOwn(isFirst: Bool) async throws {
        try await TestOrigin.withOrigin { request in
            guard request.headers["Authorization"] != nil else {
                return OriginResponse(401, headers: ["WWW-Authenticate": "Basic realm=\"x\""])
            }
            return OriginResponse(
                headers: ["Cache-Control": "max-age=600", "Set-Cookie": "a=b"], body: .text("x"))
        } run: { origin async throws in
            let passes = (0..<4).map { _ in Passes() }
            let session = HTTPSession.own { configuration in
                func setFeatures() {
                    configuration[AtRequest.self] = passes[0]
                    configuration[AtAuthentication.self] = passes[1]
                    configuration[AtCookies.self] = passes[2]
                    configuration[AtCache.self] = passes[3]
                }
                if isFirst { setFeatures() }
                configuration.authentication.handler = { _ in .basic(user: "u", password: "p") }
                configuration.cookies = CookieJar()
                configuration.cache = .memoryOnly(.mebibytes(1), options: .withoutPressure)
                if !isFirst { setFeatures() }
            }
            #expect(try await session.get(origin.url()).text == "x")
            // The two features after the credentials also see the repeated request.
            #expect(passes.map(\.count) == [1, 1, 2, 2])
            #expect(try await session.get(origin.url()).source == .cache)
            // The stored response belongs to these credentials, which the handler supplies after a challenge.
            #expect(passes.map(\.count) == [2, 2, 4, 4])
            #expect(passes[3].last?.source == .cache)
            #expect(passes[3].last?.cacheStatus?.contains("hit") == true)
        }
    }

    @Test("A feature at the authentication position leaves URL credentials to Martlet")
    func besideURLCredentials() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.headers["Authorization"] ?? "none")
        } run: { origin async throws in
            let passes = Passes()
            let session = HTTPSession.own { $0[AtAuthentication.self] = passes }
            let exchange = try await session.get("http://u:p@127.0.0.1:\(origin.port)/")
            #expect(exchange.text == "Basic dTpw")
            #expect(passes.count == 1)
        }
    }
}
