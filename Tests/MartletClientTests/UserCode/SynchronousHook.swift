import Logging
import Martlet
import MartletTesting
import Synchronization
import SystemPackage

#if Metrics
    import CoreMetrics
#endif

/// Synchronous user code that runs within calls.
///
/// It cannot wait without blocking its thread, so a call cannot be raced against it. The required property is that no
/// lock is held while it runs: it may use the session, and start tasks that make calls or invalidate it.
enum SynchronousHook: String, CaseIterable, Sendable {
    case observe, logger, selector, publicSuffix, uploadProgress, downloadProgress, serializer, cost, feature,
        mapper, interim
    #if Metrics
        case metrics
    #endif

    /// The hooks that can throw.
    static let throwing: [SynchronousHook] = [.serializer]
}

/// User code in one synchronous hook of a session, and the call that reaches it.
final class SynchronousScene: Sendable {
    let hook: SynchronousHook
    let entered = Counter()
    private let directory: TemporaryDirectory
    private let code = Mutex<(@Sendable () -> Void)?>(nil)
    private let isFailing = Mutex(false)

    init(_ hook: SynchronousHook) throws {
        self.hook = hook
        directory = try TemporaryDirectory()
    }

    /// Sets the code, which runs once.
    func run(_ body: @escaping @Sendable () -> Void) {
        code.withLock { $0 = body }
    }

    /// Makes the code throw.
    func fail() { isFailing.withLock { $0 = true } }

    func enter(_ hook: SynchronousHook) {
        guard hook == self.hook else { return }
        entered.add()
        code.withLock { $0.take() }?()
    }

    func ask(_ hook: SynchronousHook) throws {
        enter(hook)
        if hook == self.hook, isFailing.withLock({ $0 }) { throw UserFailure() }
    }

    func session(_ change: (inout SessionConfiguration) -> Void = { _ in }) -> HTTPSession {
        .own { configuration in
            switch hook {
            case .observe: configuration.middleware = [Middleware(scene: self)]
            case .logger:
                configuration.logger = Logger(label: "test") { _ in Handler(scene: self) }
                configuration.logger.logLevel = .trace
            case .selector:
                configuration.proxy = .selector { _ in
                    self.enter(.selector)
                    return nil
                }
            case .publicSuffix: configuration.cookies = CookieJar(publicSuffixes: Suffixes(scene: self))
            #if Metrics
                case .metrics: configuration.metricsFactory = Meters(scene: self)
            #endif
            case .mapper:
                configuration.validator = .status(599)
                configuration.errors = ErrorMapper { error in
                    self.enter(.mapper)
                    return error
                }
            case .feature: configuration[FeatureOfScene.self] = self
            case .uploadProgress, .downloadProgress, .serializer, .cost, .interim: break
            }
            change(&configuration)
        }
    }

    /// Makes the call that reaches the hook.
    func call(_ session: HTTPSession, _ origin: TestOrigin) async throws {
        // The public suffix hook is not called for an IP address.
        let url = hook == .publicSuffix ? "http://b.a.localhost:\(origin.port)/start" : origin.url("/start")
        switch hook {
        case .uploadProgress:
            let request = try HTTPRequest(method: .put, url: url)
            try await session.upload(.bytes([1, 2, 3]), to: request) { _ in self.enter(.uploadProgress) }
        case .downloadProgress:
            let request = try HTTPRequest(method: .get, url: url)
            let path = FilePath(directory.path + "/file-\(entered.count)")
            try await session.save(request, to: path, overwrites: false) { _ in
                self.enter(.downloadProgress)
            }
        case .serializer:
            var host = try HTTPHost(HTTPURL(origin.url("/")), session: session)
            host.encoding.query.serializer = { _ in
                try self.ask(.serializer)
                return "a=b"
            }
            _ = try await host.get("start", query: ["a": "b"])
        case .cost:
            let cache = try DecodedCache<Int>(
                session: session.with { $0.cache = .memoryOnly() },
                cost: { _ in
                    self.enter(.cost)
                    return 1
                }, decode: { $0.body.count })
            _ = try await cache.value(for: url)
        case .mapper: _ = try? await session.get(url)
        case .interim:
            let options = RequestOptions { $0.onInterimResponse = { _ in self.enter(.interim) } }
            _ = try await session.get(url, options: options)
        default: _ = try await session.get(url)
        }
    }

    private struct Middleware: ObservingMiddleware {
        let scene: SynchronousScene

        func observe(_ event: SessionEvent, in context: CallContext) { scene.enter(.observe) }
    }

    private enum FeatureOfScene: FeatureKey {
        static var defaultValue: SynchronousScene? { nil }

        static func middleware(for scene: SynchronousScene?) -> (any HTTPMiddleware)? {
            scene.map { scene in
                scene.enter(.feature)
                return Middleware(scene: scene)
            }
        }
    }

    private struct Handler: LogHandler {
        let scene: SynchronousScene
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { scene.enter(.logger) }
    }

    private struct Suffixes: PublicSuffixes {
        let scene: SynchronousScene

        var isComplete: Bool {
            scene.enter(.publicSuffix)
            return false
        }

        func publicSuffix(of name: String) -> Substring {
            scene.enter(.publicSuffix)
            return name[...]
        }
    }

    #if Metrics
        private final class Meters: MetricsFactory {
            let scene: SynchronousScene

            init(scene: SynchronousScene) { self.scene = scene }

            func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
                Instrument(scene: scene)
            }
            func makeRecorder(
                label: String, dimensions: [(String, String)], aggregate: Bool
            ) -> any RecorderHandler { Instrument(scene: scene) }
            func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
                Instrument(scene: scene)
            }
            func destroyCounter(_ handler: any CounterHandler) {}
            func destroyRecorder(_ handler: any RecorderHandler) {}
            func destroyTimer(_ handler: any TimerHandler) {}
        }

        private final class Instrument: CounterHandler, RecorderHandler, TimerHandler {
            let scene: SynchronousScene

            init(scene: SynchronousScene) { self.scene = scene }

            func increment(by amount: Int64) { scene.enter(.metrics) }
            func reset() { scene.enter(.metrics) }
            func record(_ value: Int64) { scene.enter(.metrics) }
            func record(_ value: Double) { scene.enter(.metrics) }
            func recordNanoseconds(_ duration: Int64) { scene.enter(.metrics) }
        }
    #endif
}
