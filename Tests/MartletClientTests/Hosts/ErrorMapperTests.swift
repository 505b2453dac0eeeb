import FoundationEssentials
import Martlet
import MartletTesting
import SystemPackage
import Testing

@Suite("Service-specific errors", .timeLimit(.minutes(20)))
struct ErrorMapperTests {
    private struct ServiceError: Error, Codable, Equatable {
        var reason: String
    }

    private struct Named: Error, Equatable {
        var code: HTTPError.Code
    }

    private static let naming = ErrorMapper { Named(code: $0.code) }

    private static let rejecting: OriginHandler.Respond = { request in
        request.path == "/ok"
            ? .text("fine") : .json(text: #"{"reason":"no such post"}"#, status: 404)
    }

    @Test("A host's mapper receives the body of a response, and the call throws its error")
    func body() async throws {
        try await TestOrigin.withOrigin(respond: ErrorMapperTests.rejecting) { origin in
            let api = try HTTPSession.own().host(origin.base)
                .with { $0.errors = ErrorMapper.decoding(ServiceError.self) }
            let expected = ServiceError(reason: "no such post")
            await #expect(throws: expected) { try await api.get("posts/1") }
            await #expect(throws: expected) { try await api.post("posts", parameters: ["a": 1]) }
            await #expect(throws: expected) {
                try await api.stream("posts") { _, _ in Issue.record("called") }
            }
            await #expect(throws: expected) { try await api.upload(.text("x"), to: "posts") }
            let directory = try TemporaryDirectory()
            await #expect(throws: expected) {
                try await api.download("posts", to: FilePath("\(directory.path)/f"))
            }
            let task = try await api.task("posts")
            await #expect(throws: expected) { try await task.value }
            #expect(try await api.get("ok").text == "fine")
            #expect(try directory.contents() == [])
        }
    }

    @Test("A mapper may decode the response itself: the errors of that decoding do not reach it again")
    func decodingMapper() async throws {
        let mapper = ErrorMapper { error in
            for range in [400..<500, 500..<600] {
                if let value = try? error.exchange?.decode(ServiceError.self, status: range) { return value }
                if let value = try? error.exchange?.decode(using: .json(ServiceError.self), status: range) {
                    return value
                }
            }
            _ = try? error.exchange?.validated()
            return error
        }
        try await TestOrigin.withOrigin { _ in
            .text("<p>broken</p>", status: 500)
        } run: { origin async throws in
            let session = HTTPSession.own { $0.errors = mapper }
            let exchange = try await session.get(origin.url())
            await #expect(throws: HTTPError.self) { try await exchange.validated(.success) }
            #expect(throws: HTTPError.self) { try exchange.validated() }
            #expect(throws: HTTPError.self) { try exchange.decode(ServiceError.self) }
            #expect(throws: HTTPError.self) { try exchange.decode(using: .json(ServiceError.self)) }
            await #expect(throws: HTTPError.self) { try await session.get(origin.url(), validate: .success) }
            let api = try session.host(origin.base).with { $0.errors = mapper }
            await #expect(throws: HTTPError.self) { try await api.get("a") }
        }
    }

    private enum ServiceFailure: Error, Equatable {
        case missing(String)
        case other(Int?)
    }

    @Test("A mapping closure receives the decoded error body and the original error")
    func madeError() async throws {
        try await TestOrigin.withOrigin { request in
            switch request.path {
            case "/ok": .text("fine")
            case "/broken": .text("gateway", status: 502)
            default: .json(text: #"{"reason":"\#(request.path)"}"#, status: 404)
            }
        } run: { origin async throws in
            let api = try HTTPSession.own().host(origin.base).with {
                $0.errors = .decoding(ServiceError.self) { problem, error in
                    switch problem.reason {
                    case "/post": ServiceFailure.missing(problem.reason)
                    case "/status": ServiceFailure.other(error.status)
                    default: error
                    }
                }
            }
            await #expect(throws: ServiceFailure.missing("/post")) { try await api.get("post") }
            await #expect(throws: ServiceFailure.other(404)) { try await api.get("status") }
            for path in ["else", "broken"] {
                let error = await #expect(throws: HTTPError.self) { try await api.get(path) }
                #expect(error?.code == .unacceptableStatus)
            }
            #expect(try await api.get("ok").text == "fine")
        }
    }

    @Test("A body that cannot be decoded as the error type leaves the error unchanged")
    func otherBody() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("gateway", status: 502)
        } run: { origin async throws in
            let api = try HTTPSession.own().host(origin.base)
                .with { $0.errors = ErrorMapper.decoding(ServiceError.self) }
            let error = await #expect(throws: HTTPError.self) { try await api.get("x") }
            #expect(error?.code == .unacceptableStatus)
            #expect(error?.exchange?.text == "gateway")
        }
    }

    @Test(
        "Without a mapper a status is a normal response, and status validation can be set with and without a mapper")
    func validation() async throws {
        try await TestOrigin.withOrigin(respond: ErrorMapperTests.rejecting) { origin in
            let api = try HTTPSession.own().host(origin.base)
            #expect(!api.validatesStatus)
            #expect(try await api.get("x").statusCode == 404)
            let strict = api.with { $0.validatesStatus = true }
            let error = await #expect(throws: HTTPError.self) { try await strict.get("x") }
            #expect(error?.code == .unacceptableStatus)
            #expect(error?.exchange?.statusCode == 404)
            let lax = api.with {
                $0.errors = ErrorMapperTests.naming
                $0.validatesStatus = false
            }
            #expect(try await lax.get("x").statusCode == 404)
        }
    }

    @Test("Errors of the network and of the request are mapped as well")
    func otherErrors() async throws {
        let port = try await TestOrigin.withOrigin(respond: ErrorMapperTests.rejecting) { $0.port }
        let api = try HTTPSession.own().host(named: "127.0.0.1", port: port, isSecure: false)
            .with { $0.errors = ErrorMapperTests.naming }
        await #expect(throws: Named(code: .connectFailed)) { try await api.get("x") }
        await #expect(throws: Named(code: .invalidURL)) { try await api.get("//other.example/x") }
        await #expect(throws: Named(code: .invalidRequest)) {
            try await api.get("x", query: ["a": .number(.nan)])
        }
        await #expect(throws: Named(code: .invalidURL)) { try await api.task("//x") }
        await #expect(throws: Named(code: .invalidRequest)) {
            try await api.request(method: .connect, "x")
        }
    }

    @Test("A session's mapper applies to its calls and its hosts, unless a host has its own")
    func session() async throws {
        try await TestOrigin.withOrigin { request in
            if request.path == "/cut" {
                return OriginResponse(body: .text("0123456789")).with { $0.headers = ["Content-Length": "20"] }
                    .with { $0.closesConnection = true }
            }
            return .text("", status: 500)
        } run: { origin async throws in
            let session = HTTPSession.own { $0.errors = ErrorMapperTests.naming }
            await #expect(throws: Named(code: .truncated)) { try await session.get(origin.url("/cut")) }
            // A session's own calls return any status as a response.
            #expect(try await session.get(origin.url("/x")).statusCode == 500)
            let api = try session.host(origin.base)
            await #expect(throws: Named(code: .unacceptableStatus)) { try await api.get("x") }
            let own = api.with { $0.errors = ErrorMapper { _ in ServiceError(reason: "own") } }
            await #expect(throws: ServiceError(reason: "own")) { try await own.get("x") }
        }
    }

    @Test("The rejection of a collected response is mapped like that of a stream")
    func rejections() async throws {
        try await TestOrigin.withOrigin { _ in
            .text("no", status: 422)
        } run: { origin async throws in
            let session = HTTPSession.own {
                $0.validator = .success
                $0.errors = ErrorMapperTests.naming
            }
            let expected = Named(code: .unacceptableStatus)
            let request = try HTTPRequest(method: .get, url: origin.url())
            await #expect(throws: expected) { try await session.get(origin.url()) }
            await #expect(throws: expected) {
                try await session.stream(request) { _, _ in Issue.record("called") }
            }
            let task = await session.task(for: request)
            await #expect(throws: expected) { try await task.value }
            let api = try HTTPSession.own { $0.validator = .success }.host(origin.base).with {
                $0.errors = ErrorMapperTests.naming
                $0.validatesStatus = false
            }
            await #expect(throws: expected) { try await api.get("x") }
            await #expect(throws: expected) {
                try await api.stream("x") { _, _ in Issue.record("called") }
            }
            let own = RequestOptions(validator: .custom { _ in throw ServiceError(reason: "own") })
            await #expect(throws: ServiceError(reason: "own")) {
                try await session.get(origin.url(), options: own)
            }
        }
    }

    @Test("A cancelled call throws CancellationError, and the caller's own errors are unchanged")
    func foreignErrors() async throws {
        try await TestOrigin.withOrigin(respond: ErrorMapperTests.rejecting) { origin in
            let api = try HTTPSession.own().host(origin.base)
                .with { $0.errors = ErrorMapperTests.naming }
            await #expect(throws: ServiceError(reason: "mine")) {
                try await api.stream("ok") { _, _ in throw ServiceError(reason: "mine") }
            }
            let cancelled = Task {
                unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
                return try await api.get("ok")
            }
            await #expect(throws: CancellationError.self) { try await cancelled.value }
        }
    }
}
