import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import SystemPackage

/// The places in a call that wait for user code.
enum UserHook: String, CaseIterable, Sendable {
    case before, after, responseBody, handler, token, refresh, answer, redirect, newBody, received,
        bodyReceived
    case destination, downloadFinished, completed
    case validator, headValidator, suffixes, emptyBody, body, part, bodySent, collected, resolver, trust

    /// The hooks that decide about a response while its body may still be on the connection.
    static let holding: [UserHook] = [
        .after, .responseBody, .handler, .refresh, .answer, .redirect, .received, .destination,
        .headValidator,
        .suffixes,
    ]
    /// The hooks that are notified and do not change the call.
    static let told: [UserHook] = [.downloadFinished, .completed, .bodySent, .collected]
    /// The hooks whose result the call needs.
    static let asking = allCases.filter { !told.contains($0) }
    /// The hooks that can throw.
    static let throwing: [UserHook] = [
        .before, .after, .responseBody, .handler, .token, .refresh, .answer, .redirect, .newBody, .received,
        .destination,
        .validator, .headValidator, .emptyBody, .body, .part, .resolver,
    ]
    /// The hooks that run in a task of the connection or the upload and not in the call's task.
    static let beside: [UserHook] = [.body, .part, .resolver, .trust]
}

/// The error that user code throws in tests.
struct UserFailure: Error, Hashable {}

/// User code in one hook of a session, and the calls that reach it.
final class UserScene: Sendable {
    /// Whether the code is making calls of its own, for which hooks do nothing.
    @TaskLocal static var isInside = false

    let hook: UserHook
    /// The number of times that the code was entered.
    let entered = Counter()
    /// The number of requests for the hook's path.
    let requests = Counter()
    /// The size in bytes of the responses for the hook.
    let byteCount: UInt64
    let directory: TemporaryDirectory
    private let code = Mutex<(@Sendable () async -> Void)?>(nil)
    private let blocks = Mutex<[OneShot<Void>]>([])
    private let isFailing = Mutex(false)

    init(_ hook: UserHook, byteCount: UInt64 = 10) throws {
        self.hook = hook
        self.byteCount = byteCount
        directory = try TemporaryDirectory()
    }

    /// Sets the code that runs in the hook.
    func run(_ body: @escaping @Sendable () async -> Void) {
        code.withLock { $0 = body }
    }

    /// Releases the code, which may retain the session that retains this scene.
    func clear() {
        code.withLock { $0 = nil }
    }

    /// Makes the code throw.
    func fail() {
        isFailing.withLock { $0 = true }
    }

    /// Waits until ``release()`` and ignores cancellation.
    func block() async {
        let block = OneShot<Void>()
        blocks.withLock { $0.append(block) }
        _ = await block.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
    }

    /// Lets the blocked code return.
    func release() {
        for block in blocks.withLock({ $0 }) { block.fulfill(()) }
    }

    /// The protocol options of the origin.
    var originOptions: OriginOptions { hook == .trust ? .tls() : .plain }

    /// Called by each user function that can throw.
    func ask(_ hook: UserHook) async throws {
        await enter(hook)
        if hook == self.hook, !UserScene.isInside, isFailing.withLock({ $0 }) { throw UserFailure() }
    }

    /// Called by each user function.
    func enter(_ hook: UserHook) async {
        guard hook == self.hook, !UserScene.isInside else { return }
        entered.add()
        guard let body = code.withLock({ $0 }) else { return }
        await UserScene.$isInside.withValue(true) { await body() }
    }

    func respond(to request: OriginRequest) async throws -> OriginResponse {
        // A body that was not read does not need a replacement.
        if [.newBody, .body, .part, .bodySent].contains(hook) { _ = try await request.collectBody() }
        if request.path != "/start" { return .text("side") }
        requests.add()
        let isKnown = ["Basic dTpw", "Bearer new"].contains(request.headers["Authorization"])
        var fields: OriginFields = [:]
        var status = 200
        switch hook {
        case .handler, .answer: (status, fields) = (401, ["WWW-Authenticate": "Basic realm=\"x\""])
        case .refresh: (status, fields) = (401, ["WWW-Authenticate": "Bearer"])
        case .redirect: (status, fields) = (302, ["Location": "/end"])
        case .newBody: (status, fields) = (307, ["Location": "/end"])
        case .suffixes: fields = ["Set-Cookie": "a=b"]
        default: break
        }
        if isKnown { (status, fields) = (200, [:]) }
        return OriginResponse(status, headers: fields, body: .pattern(byteCount))
    }

    /// Creates a session with this scene's hooks.
    func session(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        .own { configuration in
            switch hook {
            case .before, .after, .responseBody: configuration.middleware = [Middleware(scene: self)]
            case .handler:
                configuration.authentication.handler = { _ in
                    try await self.ask(.handler)
                    return .basic(user: "u", password: "p")
                }
            case .token, .refresh:
                configuration.authentication.tokens = SingleFlightTokens(Provider(scene: self))
            case .validator, .headValidator:
                configuration.validator = .custom { _ in try await self.ask(self.hook) }
            case .suffixes: configuration.cookies = CookieJar(publicSuffixes: Suffixes(scene: self))
            case .resolver: configuration.resolver = Names(scene: self)
            case .trust:
                configuration.tls.trust = .custom { _, _ in
                    await self.enter(.trust)
                    return .accept
                }
            case .body, .part, .emptyBody: break
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
        case .body, .emptyBody, .bodySent:
            let request = try HTTPRequest(method: .put, url: origin.url("/start"))
            let isEmpty = hook == .emptyBody
            let body = HTTPBody.stream(length: isEmpty ? 0 : 3) { Pieces(scene: self, isEmpty: isEmpty) }
            return try await session.send(request, body: body, options: options)
        case .part:
            let request = try HTTPRequest(method: .put, url: origin.url("/start"))
            let body = HTTPBody.multipart { $0.stream("a") { Pieces(scene: self, isEmpty: false) } }
            return try await session.send(request, body: body, options: options)
        case .resolver:
            return try await session.get("http://name.example:\(origin.port)/start", options: options)
        case .newBody:
            let request = try HTTPRequest(method: .put, url: origin.url("/start"))
            let pieces = AsyncStream<[UInt8]> { continuation in
                continuation.yield([1, 2, 3])
                continuation.finish()
            }
            return try await session.send(request, body: .once(pieces, length: 3), options: options)
        case .destination, .downloadFinished, .headValidator:
            let request = try HTTPRequest(method: .get, url: origin.url("/start"))
            let path = FilePath(directory.path + "/file-\(entered.count)-\(CallNumbers.next())")
            return try await session.save(request, to: path, overwrites: false, options: options)
        default: return try await session.get(origin.url("/start"), options: options)
        }
    }

    private struct Middleware: HTTPMiddleware {
        let scene: UserScene

        func handle(
            _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
        ) async throws -> HTTPCall.Response {
            try await scene.ask(.before)
            var response = try await next(request)
            try await scene.ask(.after)
            if scene.hook == .responseBody, !UserScene.isInside, let body = response.body {
                response.setBody(AskingBody(scene: scene, body: body))
            }
            return response
        }
    }

    /// A body that runs the code before its first piece.
    private struct AskingBody: AsyncSequence, Sendable {
        let scene: UserScene
        let body: ResponseBody

        struct Iterator: AsyncIteratorProtocol {
            let scene: UserScene
            var pieces: ResponseBody.Iterator
            var hasAsked = false

            mutating func next() async throws -> [UInt8]? {
                if !hasAsked {
                    hasAsked = true
                    try await scene.ask(.responseBody)
                }
                return try await pieces.next()
            }
        }

        func makeAsyncIterator() -> Iterator { Iterator(scene: scene, pieces: body.makeAsyncIterator()) }
    }

    private struct Provider: TokenProvider {
        let scene: UserScene

        func token() async throws -> String {
            try await scene.ask(.token)
            return "old"
        }

        func refresh(after token: String) async throws -> String {
            try await scene.ask(.refresh)
            return "new"
        }
    }

    private struct Delegate: SessionDelegate {
        let scene: UserScene

        func respond(
            to challenge: AuthenticationChallenge, in context: CallContext
        ) async throws -> ChallengeDisposition {
            try await scene.ask(.answer)
            return .credentials(.basic(user: "u", password: "p"))
        }

        func redirect(
            by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest,
            in context: CallContext
        ) async throws -> HTTPRequest? {
            try await scene.ask(.redirect)
            return proposed
        }

        func replacementBody(for request: HTTPRequest, in context: CallContext) async throws -> HTTPBody? {
            try await scene.ask(.newBody)
            return .bytes([1, 2, 3])
        }

        func received(
            _ response: HTTPResponse, in context: CallContext
        ) async throws -> ResponseDisposition {
            try await scene.ask(.received)
            return .allow
        }

        func bodySent(_ progress: TransferProgress, in context: CallContext) async {
            await scene.enter(.bodySent)
        }

        func metricsCollected(_ metrics: HTTPMetrics, in context: CallContext) async {
            await scene.enter(.collected)
        }

        func bodyReceived(_ byteCount: Int, in context: CallContext) async {
            await scene.enter(.bodyReceived)
        }

        func destination(
            of response: HTTPResponse, proposed: FilePath, in context: CallContext
        ) async throws -> FilePath? {
            try await scene.ask(.destination)
            return nil
        }

        func downloadFinished(at path: FilePath, in context: CallContext) async {
            await scene.enter(.downloadFinished)
        }

        func completed(_ result: CallResult, in context: CallContext) async {
            await scene.enter(.completed)
        }
    }

    private struct Suffixes: PublicSuffixes {
        let scene: UserScene
        let isComplete = false

        func publicSuffix(of name: String) -> Substring { name[...] }

        func prepare() async {
            await scene.enter(.suffixes)
        }
    }

    private struct Names: Resolver {
        let scene: UserScene

        func addresses(of host: String, port: Int) async throws(ResolutionError) -> [SocketAddress] {
            do {
                try await scene.ask(.resolver)
            } catch {
                throw ResolutionError(host: host, message: "\(error)")
            }
            return SocketAddress(literal: "127.0.0.1", port: port).map { [$0] } ?? []
        }
    }

    /// A body that runs the code before each piece.
    private struct Pieces: AsyncSequence, Sendable {
        let scene: UserScene
        let isEmpty: Bool

        struct AsyncIterator: AsyncIteratorProtocol {
            let scene: UserScene
            var isOver: Bool

            mutating func next(isolation actor: isolated (any Actor)?) async throws -> [UInt8]? {
                try await scene.ask([.emptyBody, .part].contains(scene.hook) ? scene.hook : .body)
                defer { isOver = true }
                return isOver ? nil : [1, 2, 3]
            }
        }

        func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(scene: scene, isOver: isEmpty)
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
