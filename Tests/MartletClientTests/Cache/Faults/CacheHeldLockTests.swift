@testable import MartletNetwork
import Martlet
import MartletStorage
import MartletTesting
import MartletTestSupport
import MartletTransport
import Testing

@testable import MartletCaching
@testable import MartletCore

@Suite("Requests past a cache whose lock another process keeps")
struct CacheHeldLockTests {
    /// A request that is made while the lock is kept.
    enum Question: CaseIterable {
        case small, brief, large, unknownLength, validated, replacedByUnstorable, part
        case changing
    }

    private static func answer(_ request: OriginRequest) -> OriginResponse {
        guard request.method == .get else { return OriginResponse(204) }
        let fresh: OriginFields = ["Cache-Control": "max-age=600"]
        let isAskedAgain = request.fields.contains("If-None-Match")
        switch request.path {
        case "/brief": return OriginResponse(200, fields: fresh, body: .pattern(200_000))
        case "/large": return OriginResponse(200, fields: fresh, body: .pattern(6 << 20))
        case "/unknownLength":
            return OriginResponse(200, fields: fresh, body: .pattern(6 << 20)).with {
                $0.framing = .chunked()
            }
        case "/validated":
            let fields: OriginFields = ["ETag": "\"1\"", "Cache-Control": "max-age=0"]
            return isAskedAgain
                ? OriginResponse(304, fields: fields)
                : OriginResponse(200, fields: fields, body: .pattern(200_000))
        case "/replacedByUnstorable":
            return isAskedAgain
                ? OriginResponse(200, fields: ["Cache-Control": "no-store"], body: .pattern(100))
                : OriginResponse(
                    200, fields: ["ETag": "\"1\"", "Cache-Control": "max-age=0"], body: .pattern(200_000))
        default: return OriginResponse(200, fields: fresh, body: .pattern(1000))
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

    @Test("Each has its response within its clocks, and the cache comes back", arguments: Question.allCases)
    func held(_ question: Question) async throws {
        let scene = try CacheFaultScene()
        try await TestOrigin.withOrigin {
            CacheHeldLockTests.answer($0)
        } run: { origin async throws in
            let session = scene.session(try await scene.openedCache())
            let url = origin.url("/\(question)")
            // So that there is something to validate, to remove or to replace.
            if question == .validated || question == .replacedByUnstorable || question == .changing {
                _ = try await session.get(url)
            }
            let files = LinuxFileSystem()
            let lock = try files.open("\(scene.path)/lock", for: .updating)
            // The cache may hold the lock for a moment itself: it scans its folder, or stores what it was asked for before.
            #expect(await eventually { (try? files.tryLock(lock)) == true })
            let tries = scene.files.count(of: .lock)
            for _ in 0..<5 { try await CacheHeldLockTests.ask(question, session, url) }
            // One wait of a second, in which a few workers may try every half millisecond, however much is asked for.
            #expect(scene.files.count(of: .lock) < tries + 9000)
            files.unlock(lock)
            let other = origin.url("/other")
            var isBack = false
            // A response does not wait for a folder that was held: it may be stored a moment after it was delivered.
            let deadline = MonotonicTime.now().advanced(by: .seconds(60))
            while !isBack, MonotonicTime.now() < deadline {
                isBack = try await session.get(other).source == .cache
            }
            #expect(isBack)
            // What an unsafe request made out of date while the lock was kept is gone, too.
            if question == .changing { #expect(try await session.get(url).source == .network) }
        }
    }
}
