import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import SystemPackage

/// The places where a call waits for code of the program.
enum UserHook: String, CaseIterable, Sendable {
    case adapt, verdict, handler, token, refresh, answer, redirect, newBody, received, bodyReceived
    case destination, downloadFinished, completed, mapper

    /// Those that are asked about a response while its body may still be on the connection.
    static let holding: [UserHook] = [
        .verdict, .handler, .refresh, .answer, .redirect, .received, .destination,
    ]
    /// Those whose result the call needs.
    static let asking: [UserHook] = [
        .adapt, .verdict, .handler, .token, .refresh, .answer, .redirect, .newBody, .received, .bodyReceived,
        .destination,
    ]
}

/// Code of the program that runs in one hook of a session, and the calls that reach it.
final class UserScene: Sendable {
    /// Set while the code makes calls of its own, in which hooks do nothing.
    @TaskLocal static var isInside = false

    let hook: UserHook
    /// How many times the code was entered.
    let entered = Counter()
    /// How many requests for the hook's path came.
    let requests = Counter()
    /// The size of the responses that the hook is asked about.
    let byteCount: UInt64
    let folder: TemporaryFolder
    private let code = Mutex<(@Sendable () async -> Void)?>(nil)
    private let blocks = Mutex<[OneShot<Void>]>([])

    init(_ hook: UserHook, byteCount: UInt64 = 10) throws {
        self.hook = hook
        self.byteCount = byteCount
        folder = try TemporaryFolder()
    }

    /// Sets the code.
    func run(_ body: @escaping @Sendable () async -> Void) {
        code.withLock { $0 = body }
    }

    /// Waits until ``release()``, whatever is cancelled.
    func block() async {
        let block = OneShot<Void>()
        blocks.withLock { $0.append(block) }
        _ = await block.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
    }

    /// Lets the code that is blocked return.
    func release() {
        for block in blocks.withLock({ $0 }) { block.fulfil(()) }
    }

    /// What each function of the program calls.
    func enter(_ hook: UserHook) async {
        guard hook == self.hook, !UserScene.isInside else { return }
        entered.add()
        guard let body = code.withLock({ $0 }) else { return }
        await UserScene.$isInside.withValue(true) { await body() }
    }

    func respond(to request: OriginRequest) async throws -> OriginResponse {
        // A body of which nothing was read needs no other in its place.
        if hook == .newBody { _ = try await request.collectBody() }
        if request.path != "/start" { return .text("side") }
        requests.add()
        let isKnown = ["Basic dTpw", "Bearer new"].contains(request.fields["Authorization"])
        var fields: OriginFields = [:]
        var status = 200
        switch hook {
        case .handler, .answer: (status, fields) = (401, ["WWW-Authenticate": "Basic realm=\"x\""])
        case .refresh: (status, fields) = (401, ["WWW-Authenticate": "Bearer"])
        case .redirect: (status, fields) = (302, ["Location": "/end"])
        case .newBody: (status, fields) = (307, ["Location": "/end"])
        case .mapper: status = 500
        default: break
        }
        if isKnown { (status, fields) = (200, [:]) }
        return OriginResponse(status, fields: fields, body: .pattern(byteCount))
    }

    /// A session whose hooks are this scene's.
    func session(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        .own { configuration in
            switch hook {
            case .adapt, .verdict: configuration.interceptors = [Interceptor(scene: self)]
            case .handler:
                configuration.authentication.handler = { _ in
                    await self.enter(.handler)
                    return .basic(user: "u", password: "p")
                }
            case .token, .refresh:
                configuration.authentication.tokens = SingleFlightTokens(Provider(scene: self))
            case .mapper:
                configuration.validator = .success
                configuration.errorMapper = ErrorMapper { error in
                    await self.enter(.mapper)
                    return error
                }
            default: configuration.delegate = Delegate(scene: self)
            }
            change(&configuration)
        }
    }

    /// Makes the call that reaches the hook.
    @discardableResult
    func call(_ session: HTTPSession, _ origin: TestOrigin, total: Duration? = nil) async throws
        -> HTTPExchange
    {
        var options = RequestOptions()
        if let total { options.timeouts = .patient(total: total) }
        switch hook {
        case .newBody:
            let request = try HTTPRequest(method: .put, url: origin.url("/start"))
            let pieces = AsyncStream<[UInt8]> { continuation in
                continuation.yield([1, 2, 3])
                continuation.finish()
            }
            return try await session.send(request, body: .once(pieces, length: 3), options: options)
        case .destination, .downloadFinished:
            let request = try HTTPRequest(method: .get, url: origin.url("/start"))
            let path = FilePath(folder.path + "/file-\(entered.count)-\(CallNumbers.next())")
            return try await session.download(request, to: path, options: options)
        default: return try await session.get(origin.url("/start"), options: options)
        }
    }

    private struct Interceptor: HTTPInterceptor {
        let scene: UserScene

        func adapt(_ request: HTTPRequest, in context: CallContext) async throws -> HTTPRequest {
            await scene.enter(.adapt)
            return request
        }

        func verdict(on outcome: HTTPCallOutcome, in context: CallContext) async throws -> HTTPRetryVerdict {
            await scene.enter(.verdict)
            return .proceed
        }
    }

    private struct Provider: TokenProvider {
        let scene: UserScene

        func token() async throws -> String {
            await scene.enter(.token)
            return "old"
        }

        func refresh(after token: String) async throws -> String {
            await scene.enter(.refresh)
            return "new"
        }
    }

    private struct Delegate: SessionDelegate {
        let scene: UserScene

        func answer(
            to challenge: AuthenticationChallenge, in context: CallContext
        ) async throws -> ChallengeAnswer {
            await scene.enter(.answer)
            return .credentials(.basic(user: "u", password: "p"))
        }

        func redirect(
            by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest,
            in context: CallContext
        ) async throws -> HTTPRequest? {
            await scene.enter(.redirect)
            return proposed
        }

        func newBody(for request: HTTPRequest, in context: CallContext) async throws -> HTTPBody? {
            await scene.enter(.newBody)
            return .bytes([1, 2, 3])
        }

        func received(
            _ response: HTTPResponse, in context: CallContext
        ) async throws -> ResponseDisposition {
            await scene.enter(.received)
            return .allow
        }

        func bodyReceived(_ byteCount: Int, in context: CallContext) async {
            await scene.enter(.bodyReceived)
        }

        func destination(
            of response: HTTPResponse, proposed: FilePath, in context: CallContext
        ) async throws -> FilePath? {
            await scene.enter(.destination)
            return nil
        }

        func downloadFinished(at path: FilePath, in context: CallContext) async {
            await scene.enter(.downloadFinished)
        }

        func completed(_ result: CallResult, in context: CallContext) async {
            await scene.enter(.completed)
        }
    }

    private enum CallNumbers {
        private static let last = Mutex(0)

        static func next() -> Int {
            last.withLock { number in
                number += 1
                return number
            }
        }
    }
}
