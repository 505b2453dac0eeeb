import Martlet
import MartletTesting
import MartletTransport
import Synchronization
import SystemPackage

/// Asynchronous user code that no call waits for, but a queue, a manager, a cache or the caller.
enum OutsideHook: String, CaseIterable, Sendable {
    case authorize, renew, prepare, decode, invalidated

    /// The hooks that can throw, after which the same call continues later or fails.
    static let throwing: [OutsideHook] = [.authorize, .prepare, .decode]
}

/// User code in one of these hooks, and the work that reaches it.
final class OutsideScene: Sendable {
    let hook: OutsideHook
    let entered = Counter()
    private let directory: TemporaryDirectory
    private let code = Mutex<(@Sendable () async -> Void)?>(nil)
    private let blocks = Mutex<[OneShot<Void>]>([])
    private let isFailing = Mutex(false)

    init(_ hook: OutsideHook) throws {
        self.hook = hook
        directory = try TemporaryDirectory()
    }

    func run(_ body: @escaping @Sendable () async -> Void) { code.withLock { $0 = body } }
    func fail() { isFailing.withLock { $0 = true } }

    /// Waits until ``release()`` and ignores cancellation.
    func block() async {
        let block = OneShot<Void>()
        blocks.withLock { $0.append(block) }
        _ = await block.wait(until: .distantFuture, on: EventLoop.sharedOrStalled)
    }

    func release() {
        for block in blocks.withLock({ $0 }) { block.fulfill(()) }
    }

    private func enter(_ hook: OutsideHook) async {
        guard hook == self.hook else { return }
        entered.add()
        guard let body = code.withLock({ $0.take() }) else { return }
        await body()
    }

    private func ask(_ hook: OutsideHook) async throws {
        await enter(hook)
        if hook == self.hook, isFailing.withLock({ $0 }) { throw UserFailure() }
    }

    func respond(to request: OriginRequest) -> OriginResponse {
        if request.path != "/start" { return .text("side") }
        return hook == .renew && request.headers["Authorization"] != "new" ? OriginResponse(401) : .text("ok")
    }

    func session() -> HTTPSession {
        .own { configuration in
            configuration.pool.connectionsPerHost = 1
            switch hook {
            case .invalidated: configuration.delegate = Delegate(scene: self)
            default: break
            }
        }
    }

    /// Does the work that reaches the hook, until the code has returned or the running task is cancelled. Then closes
    /// everything that was opened.
    func work(_ session: HTTPSession, _ origin: TestOrigin) async throws {
        switch hook {
        case .authorize, .renew:
            let isRenewed = Counter()
            let credentials = OfflineCredentials(
                refresh: {
                    await self.enter(.renew)
                    isRenewed.add()
                },
                authorize: { request in
                    try await self.ask(.authorize)
                    var request = request
                    request.headerFields[.authorization] = isRenewed.count > 0 ? "new" : "old"
                    return request
                })
            let queue = try await OfflineQueue(
                session: session, directory: FilePath(directory.path + "/queue"), credentials: credentials)
            let request = try HTTPRequest(method: .post, url: origin.url("/start"))
            try await queue.submit(request, body: .text("a"))
            var isDelivered = false
            waiting: for await event in queue.events {
                switch event {
                case .delivered:
                    isDelivered = true
                    break waiting
                case .postponed: break waiting
                default: continue
                }
            }
            await queue.close()
            if !isDelivered { throw UserFailure() }
        case .prepare:
            let manager = try await DownloadManager(
                session: session, directory: FilePath(directory.path + "/downloads")
            ) { _, _ in try await self.ask(.prepare) }
            let id = try await manager.add(origin.url("/start"), to: FilePath(directory.path + "/file"))
            var isFinished = false
            for await state in manager.states(of: id) where state.hasEnded {
                if case .finished = state { isFinished = true }
                break
            }
            await manager.close()
            if !isFinished { throw UserFailure() }
        case .decode:
            let cached = session.with { $0.cache = .memoryOnly() }
            let cache = try DecodedCache<Int>(session: cached, cost: { _ in 1 }) { exchange in
                try await self.ask(.decode)
                return exchange.body.count
            }
            _ = try await cache.value(for: origin.url("/start"))
        case .invalidated: await session.invalidateAndCancel()
        }
    }

    private struct Delegate: SessionDelegate {
        let scene: OutsideScene

        func sessionInvalidated() async { await scene.enter(.invalidated) }
    }
}
