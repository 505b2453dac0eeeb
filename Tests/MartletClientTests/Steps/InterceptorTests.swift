import Martlet
import MartletTesting
import Synchronization
import Testing

@Suite("Interceptors")
struct InterceptorTests {
    /// Signs each request with how many went before.
    private struct Signing: HTTPInterceptor {
        static let field = HTTPField.Name("X-Signature") ?? .accept

        func adapt(_ request: HTTPRequest, in context: CallContext) async throws -> HTTPRequest {
            var request = request
            request.headerFields[Signing.field] =
                "\(context.sentCount)/\(context.redirectCount) \(request.path ?? "")"
            return request
        }
    }

    @Test("M5: Each request that goes out is changed, those behind redirects too")
    func adapts() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a"
                ? .redirect(to: "/b") : .text(request.fields["X-Signature"] ?? "-")
        } run: { origin async throws in
            let session = HTTPSession.own { $0.interceptors = [Signing()] }
            #expect(try await session.get(origin.url("/a")).text == "1/1 /b")
            #expect(origin.requests.first?.fields["X-Signature"] == "0/0 /a")
        }
    }

    private struct Refusal: Error, Equatable {}

    private struct Refusing: HTTPInterceptor {
        func adapt(_ request: HTTPRequest, in context: CallContext) async throws -> HTTPRequest {
            throw Refusal()
        }
    }

    @Test("What one throws is what the call throws, and nothing is sent")
    func throwing() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("x")
        } run: { origin async throws in
            let session = HTTPSession.own { $0.interceptors = [Refusing()] }
            await #expect(throws: Refusal()) { try await session.get(origin.url()) }
            #expect(origin.connectionCount == 0)
        }
    }

    private struct Stubborn: HTTPInterceptor {
        func verdict(on outcome: HTTPCallOutcome, in context: CallContext) async throws -> HTTPRetryVerdict {
            guard case .response(let response) = outcome, response.status.code == 202 else { return .proceed }
            return .again()
        }
    }

    @Test("M5: One can have a request sent again, and a loop of it has an end")
    func again() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/ever"
                ? OriginResponse(202) : (request.number < 3 ? OriginResponse(202) : .text("done"))
        } run: { origin async throws in
            let session = HTTPSession.own { $0.interceptors = [Stubborn()] }
            let exchange = try await session.get(origin.url("/some"))
            #expect(exchange.text == "done")
            #expect(exchange.metrics.hops.map(\.reason) == [.interceptor, .interceptor])
            #expect(try await session.get(origin.url("/ever")).statusCode == 202)
            #expect(
                origin.requests.filter { $0.target == "/ever" }.count == 1 + CallContext.interceptorRetryLimit
            )
        }
    }

    private struct Rerouting: HTTPInterceptor {
        let target: HTTPURL

        func adapt(_ request: HTTPRequest, in context: CallContext) async throws -> HTTPRequest {
            HTTPRequest(method: request.method, url: target, headerFields: request.headerFields)
        }
    }

    @Test("A request that one sends elsewhere leaves the first origin's credentials behind")
    func rerouted() async throws {
        try await TestOrigin.withOrigin { request in
            .text(request.fields["Authorization"] ?? "-")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { _ in
                .text("home")
            } run: { home async throws in
                let target = try HTTPURL(foreign.url())
                let session = HTTPSession.own { configuration in
                    configuration.interceptors = [Rerouting(target: target)]
                    configuration.headers[.authorization] = "Bearer default"
                }
                var request = try HTTPRequest(method: .get, url: home.url())
                #expect(try await session.send(request).text == "-")
                request.headerFields[.authorization] = "Bearer mine"
                #expect(try await session.send(request).text == "-")
                #expect(home.connectionCount == 0)
            }
        }
    }

    private struct Moving: HTTPInterceptor {
        let authority: String?

        func adapt(_ request: HTTPRequest, in context: CallContext) async throws -> HTTPRequest {
            var request = request
            request.authority = authority
            return request
        }
    }

    @Test("Nor do the credentials of the session and of the URL go there, whatever redirects follow there")
    func reroutedCredentials() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/a"
                ? .redirect(to: "/b")
                : .text("\(request.fields["Authorization"] ?? "-") \(request.fields["Cookie"] ?? "-")")
        } run: { foreign async throws in
            try await TestOrigin.withOrigin { _ in
                .text("home")
            } run: { home async throws in
                let place = try HTTPRequest(method: .get, url: home.url()).authority ?? ""
                let moving = Moving(
                    authority: try HTTPRequest(method: .get, url: foreign.url()).authority)
                let plain = HTTPSession.own { configuration in
                    configuration.interceptors = [moving]
                    configuration.headers[.cookie] = "a=b"
                }
                let session = plain.with {
                    $0.authentication.credentials = .basic(user: "u", password: "p")
                }
                let own: HTTPFields = [.authorization: "Bearer mine"]
                for path in ["/a", "/b"] {
                    #expect(try await session.get(home.url(path)).text == "- -")
                    #expect(try await session.get(home.url(path), headers: own).text == "- -")
                    #expect(try await plain.get("http://u:p@\(place)\(path)").text == "- -")
                }
                #expect(home.connectionCount == 0)
            }
        }
    }

    private struct Calling: HTTPInterceptor {
        let session: HTTPSession
        let url: String

        func adapt(_ request: HTTPRequest, in context: CallContext) async throws -> HTTPRequest {
            var request = request
            request.headerFields[.authorization] = try await session.get(url).text
            return request
        }
    }

    @Test("One may make calls of its own")
    func calling() async throws {
        try await TestOrigin.withOrigin { request in
            request.path == "/token" ? .text("t0ken") : .text(request.fields["Authorization"] ?? "-")
        } run: { origin async throws in
            let plain = HTTPSession.own()
            let calling = Calling(session: plain, url: origin.url("/token"))
            let session = plain.with { $0.interceptors = [calling] }
            #expect(try await session.get(origin.url()).text == "t0ken")
        }
    }
}
