@testable import MartletConditions
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Requests through a cache whose lock is held by another process")
struct CacheHeldLockTests {
    /// A request that is sent while the lock is held.
    enum Question: CaseIterable {
        case small, brief, large, unknownLength, validated, replacedByUnstorable, part
        case changing
    }

    private static func answer(_ request: OriginRequest) -> OriginResponse {
        guard request.method == .get else { return OriginResponse(204) }
        let fresh: OriginFields = ["Cache-Control": "max-age=600"]
        let isAskedAgain = request.headers.contains("If-None-Match")
        switch request.path {
        case "/brief": return OriginResponse(200, headers: fresh, body: .pattern(200_000))
        case "/large": return OriginResponse(200, headers: fresh, body: .pattern(6 << 20))
        case "/unknownLength":
            return OriginResponse(200, headers: fresh, body: .pattern(6 << 20)).with {
                $0.framing = .chunked()
            }
        case "/validated":
            let fields: OriginFields = ["ETag": "\"1\"", "Cache-Control": "max-age=0"]
            return isAskedAgain
                ? OriginResponse(304, headers: fields)
                : OriginResponse(200, headers: fields, body: .pattern(200_000))
        case "/replacedByUnstorable":
            return isAskedAgain
                ? OriginResponse(200, headers: ["Cache-Control": "no-store"], body: .pattern(100))
                : OriginResponse(
                    200, headers: ["ETag": "\"1\"", "Cache-Control": "max-age=0"], body: .pattern(200_000))
        default: return OriginResponse(200, headers: fresh, body: .pattern(1000))
        }
    }

    private static func ask(_ question: Question, _ session: HTTPSession, _ url: String) async throws {
        var options = RequestOptions()
        options.timeouts = Timeouts(total: .seconds(20))
        var request = try HTTPRequest(method: question == .changing ? .post : .get, url: url)
        if question == .part { request.headerFields[.range] = "bytes=0-99" }
        let exchange = try await session.send(request, options: options)
        let isRight = TestPattern.firstMismatch(in: exchange.body, at: 0) == nil
        #expect(isRight, "\(question)")
        switch question {
        case .brief, .validated: #expect(exchange.body.count == 200_000)
        case .large, .unknownLength: #expect(exchange.body.count == 6 << 20)
        case .replacedByUnstorable: break
        case .small, .part: #expect(exchange.body.count >= 100)
        case .changing: #expect(exchange.statusCode == 204)
        }
    }

    @Test(
        "Requests complete within their timeout while the lock is held, and the cache recovers",
        arguments: Question.allCases)
    func held(_ question: Question) async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin {
            CacheHeldLockTests.answer($0)
        } run: { origin async throws in
            let session = scene.session(try await scene.openedCache())
            let url = origin.url("/\(question)")
            // Stores a response that can be validated, removed or replaced.
            if question == .validated || question == .replacedByUnstorable || question == .changing {
                _ = try await session.get(url)
            }
            let files = LinuxFileSystem()
            let lock = try files.open("\(scene.path)/lock", for: .updating)
            // The cache itself may hold the lock briefly, to scan its directory or to store an earlier response.
            #expect(await eventually { (try? files.tryLock(lock)) == true })
            let tries = scene.files.count(of: .lock)
            for _ in 0..<5 { try await CacheHeldLockTests.ask(question, session, url) }
            // The lock is awaited once for a second. A few workers may try every half millisecond, for any number of
            // requests.
            #expect(scene.files.count(of: .lock) < tries + 9000)
            files.unlock(lock)
            let other = origin.url("/other")
            var isBack = false
            // A response is delivered without waiting for the lock, so it may be stored a moment later.
            let deadline = MonotonicTime.now().advanced(by: .seconds(60))
            while !isBack, MonotonicTime.now() < deadline {
                isBack = try await session.get(other).source == .cache
            }
            #expect(isBack)
            // The response that the unsafe request invalidated while the lock was held is removed, too.
            if question == .changing { #expect(try await session.get(url).source == .network) }
        }
    }
}
