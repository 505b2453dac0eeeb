import Martlet
import MartletTesting
import Testing

/// An example service with its endpoints, as an application would define them.
private enum Posts {
    struct Post: Codable, Equatable {
        var id: Int
        var title: String
    }

    struct ByID: HTTPEndpoint {
        typealias Response = Post
        var id: Int
        var path: String { "posts/\(id)" }
    }

    struct Search: HTTPEndpoint {
        typealias Response = [Post]
        var path: String { "posts" }
        var tags: [String]
        var parameters: ParameterValue { ["tags": .array(tags.map { .string($0) }), "limit": 20] }
    }

    struct Create: HTTPEndpoint {
        struct Draft: Encodable {
            var title: String
        }
        typealias Response = Post
        var method: HTTPRequest.Method { .post }
        var path: String { "posts" }
        var parameters: Draft
        var encoding: ParameterEncoding? { .json }
    }

    struct Remove: HTTPEndpoint {
        typealias Response = Void
        var id: Int
        var method: HTTPRequest.Method { .delete }
        var path: String { "posts/\(id)" }
    }

    struct Exists: HTTPEndpoint {
        var id: Int
        var method: HTTPRequest.Method { .head }
        var path: String { "posts/\(id)" }
        var validatesStatus: Bool { false }
        func response(from exchange: HTTPExchange) -> Bool { exchange.statusCode == 200 }
    }

    struct Raw: HTTPEndpoint {
        typealias Response = HTTPExchange
        var path: String
    }
}

@Suite("Typed endpoints", .timeLimit(.minutes(20)))
struct HTTPEndpointTests {
    private static let service: OriginHandler.Respond = { request in
        switch (request.method, request.target) {
        case (.get, "/v2/posts/1"): return .json(text: #"{"id":1,"title":"Sea"}"#)
        case (.head, "/v2/posts/1"), (.delete, "/v2/posts/1"): return OriginResponse(200)
        case (.get, "/v2/posts?limit=20&tags=a"): return .json(text: #"[{"id":2,"title":"a"}]"#)
        case (.post, "/v2/posts"):
            let body = try await request.collectText()
            guard request.headers["Content-Type"] == "application/json", body == #"{"title":"New"}"# else {
                return .text(body, status: 400)
            }
            return .json(text: #"{"id":3,"title":"New"}"#, status: 201)
        default: return .text("nothing", status: 404)
        }
    }

    @Test("A service's endpoints are called by their types")
    func calls() async throws {
        try await TestOrigin.withOrigin(respond: HTTPEndpointTests.service) { origin in
            let api = try HTTPSession.own().host(origin.url("/v2"))
            #expect(try await api.call(Posts.ByID(id: 1)) == Posts.Post(id: 1, title: "Sea"))
            #expect(try await api.call(Posts.Search(tags: ["a"])) == [Posts.Post(id: 2, title: "a")])
            #expect(
                try await api.call(Posts.Create(parameters: .init(title: "New")))
                    == Posts.Post(id: 3, title: "New"))
            try await api.call(Posts.Remove(id: 1))
            #expect(try await api.call(Posts.Exists(id: 1)))
            #expect(try await !api.call(Posts.Exists(id: 9)))
            #expect(try await api.call(Posts.Raw(path: "posts/1")).statusCode == 200)
        }
    }

    @Test(
        "An endpoint with another status throws, and a mapper makes the error service-specific"
    )
    func failures() async throws {
        try await TestOrigin.withOrigin(respond: HTTPEndpointTests.service) { origin in
            let api = try HTTPSession.own().host(origin.url("/v2"))
            let error = await #expect(throws: HTTPError.self) { try await api.call(Posts.Remove(id: 9)) }
            #expect(error?.code == .unacceptableStatus)
            #expect(error?.exchange?.text == "nothing")
            struct Missing: Error {}
            let own = api.with { $0.errors = ErrorMapper { _ in Missing() } }
            await #expect(throws: Missing.self) { try await own.call(Posts.ByID(id: 9)) }
            await #expect(throws: Missing.self) { try await own.call(Wrong()) }
            let wrong = await #expect(throws: HTTPError.self) { try await api.call(Wrong()) }
            #expect(wrong?.code == .decodingFailed && wrong?.underlying is DecodingError)
        }
    }

    private struct Wrong: HTTPEndpoint {
        typealias Response = [Int]
        var path: String { "posts/1" }
    }
}
