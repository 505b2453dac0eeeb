import Martlet
import MartletTesting
import MartletTestSupport
import Testing

/// Each part of the public API that accepts user code, with its tests. They show that the code cannot block other calls
/// or outlive its own call.
@Suite("Public API that accepts user code")
struct UserCodeLocationsTests {
    /// The protection of a place, and its tests.
    enum Row {
        /// A call waits for the code in a separate task. All cases run in ``UserCodeTests``.
        case call(UserHook)
        /// Something other than a call waits for the code. All cases run below.
        case outside(OutsideHook)
        /// The code is synchronous and runs within calls. It blocks its thread and cannot be raced. The tests below
        /// check that no lock is held, and that errors are thrown if it can throw.
        case synchronous(SynchronousHook)
        /// The caller's own task awaits the code within the closure that receives a response. It cannot be abandoned,
        /// because the closure may refer to values that do not outlive the function. It ends when it responds to the
        /// cancellation of its task. Errors and invalidation run in ``UserCodeTests``.
        case callersTask
        /// The code is a plain function of a value. It runs before a call or after its end, in the API function that it
        /// was given to. There is nothing to block.
        case value
        /// The code runs only with a trait, or nothing waits for it.
        case elsewhere(String)
    }

    static let table: [String: Row] = [
        "AuthenticationSettings.bearer": .elsewhere("CoderTests: a token closure that uses its own session."),
        "AuthenticationSettings.Handler": .call(.handler),
        "BodySink.abandon": .callersTask,
        "BodySink.finish": .callersTask,
        "BodySink.write": .callersTask,
        "ClosureSink.init": .callersTask,
        "CookieJar.remove": .value,
        "DecodedCache.Decode": .outside(.decode),
        "DecodedCache.init": .synchronous(.cost),
        "DownloadManager.background": .outside(.prepare),
        "DownloadManager.init": .outside(.prepare),
        "ClosureResponseDecoder.init": .value,
        "ErrorMapper.decoding": .synchronous(.mapper),
        "ErrorMapper.init": .synchronous(.mapper),
        "ErrorMapper.problem": .synchronous(.mapper),
        "HTTPResponseHead.headers": .value,
        "HTTPResponseHead.source": .value,
        "HTTPResponseHead.status": .value,
        "EventStreamOptions.init": .value,
        "FeatureKey.middleware": .synchronous(.feature),
        "FeatureKey.position": .value,
        "HTTPBody.jsonLines": .call(.body),
        "HTTPBody.multipart": .value,
        "HTTPBody.once": .call(.body),
        "HTTPBody.stream": .call(.body),
        "HTTPEndpoint.body": .value,
        "HTTPEndpoint.encoding": .value,
        "HTTPEndpoint.headers": .value,
        "HTTPEndpoint.method": .value,
        "HTTPEndpoint.options": .value,
        "HTTPEndpoint.parameters": .value,
        "HTTPEndpoint.path": .value,
        "HTTPEndpoint.response": .value,
        "HTTPEndpoint.validatesStatus": .value,
        "HTTPHost.download": .synchronous(.downloadProgress),
        "HTTPHost.save": .synchronous(.downloadProgress),
        "HTTPHost.stream": .callersTask,
        "HTTPHost.upload": .synchronous(.uploadProgress),
        "HTTPHost.with": .value,
        "FilePathConvertible.filePath": .value,
        "ClosureMiddleware.init": .elsewhere("It is an HTTPMiddleware whose handle calls the closure."),
        "HTTPMiddleware.handle": .call(.after),
        "HTTPMiddleware.observe": .synchronous(.observe),
        "HTTPPathSegment.pathSegment": .value,
        "HTTPSender.send": .elsewhere("Only the verbs of the sender itself await it, in the caller's task."),
        "HTTPSession.host": .value,
        "HTTPTarget.httpTarget": .value,
        "HTTPSession.download": .synchronous(.downloadProgress),
        "HTTPSession.save": .synchronous(.downloadProgress),
        "HTTPSession.stream": .callersTask,
        "HTTPSession.upload": .synchronous(.uploadProgress),
        "HTTPSession.upgrade": .callersTask,
        "HTTPSession.webSocket": .callersTask,
        "HTTPSession.uploadResumably": .elsewhere("The progress is reported as for HTTPSession.download."),
        "HTTPSession.with": .value,
        "MultipartForm.init": .value,
        "MultipartForm.stream": .call(.part),
        "OAuthClient.init": .elsewhere("OAuthClientTests: it runs as a part of a token request."),
        "OfflineCredentials.authorize": .outside(.authorize),
        "OfflineCredentials.init": .outside(.authorize),
        "OfflineCredentials.refresh": .outside(.renew),
        "OfflineQueue.init": .outside(.authorize),
        "ParameterEncoding.with": .value,
        "ProxySettings.selector": .synchronous(.selector),
        "PublicSuffixRule.init": .elsewhere(
            "A function of a name, called without a lock while a handshake looks at a certificate."),
        "Response.setBody": .call(.responseBody),
        "PublicSuffixes.isComplete": .synchronous(.publicSuffix),
        "PublicSuffixes.prepare": .call(.suffixes),
        "PublicSuffixes.publicSuffix": .synchronous(.publicSuffix),
        "QueryEncoding.serializer": .synchronous(.serializer),
        "RequestOptions.init": .value,
        "RequestOptions.onInterimResponse": .synchronous(.interim),
        "Resolver.addresses": .call(.resolver),
        "ResponseDecoder.acceptableContentTypes": .value,
        "ResponseDecoder.decode": .value,
        "ResponseDecoder.map": .value,
        "ResponseValidator.custom": .call(.headValidator),
        "SessionConfiguration.logger": .synchronous(.logger),
        "SessionConfiguration.networkConditions": .elsewhere(
            "A task of the session's own follows the sequence. No call waits for it."),
        "SessionConfiguration.tracer": .elsewhere("CallSpanTests"),
        "SettingKey.defaultValue": .value,
        "SessionDelegate.respond": .call(.answer),
        "SessionDelegate.bodyBytesReceived": .elsewhere("It is called by the task that calls bodyReceived."),
        "SessionDelegate.bodyReceived": .call(.bodyReceived),
        "SessionDelegate.bodySent": .call(.bodySent),
        "SessionDelegate.metricsCollected": .call(.collected),
        "SessionDelegate.completed": .call(.completed),
        "SessionDelegate.destination": .call(.destination),
        "SessionDelegate.downloadFinished": .call(.downloadFinished),
        "SessionDelegate.replacementBody": .call(.newBody),
        "SessionDelegate.received": .call(.received),
        "SessionDelegate.redirect": .call(.redirect),
        "SessionDelegate.mayStore": .elsewhere(
            "SessionDelegateTests: it runs as UserCode does for a call, on behalf of a transfer that calls share."
        ),
        "SessionDelegate.receivesBodyBytes": .value,
        "SessionDelegate.transferResumed": .elsewhere("A task of its own, which nothing waits for."),
        "SessionDelegate.backgroundFinished": .elsewhere("A task of its own, which nothing waits for."),
        "SessionDelegate.sessionInvalidated": .outside(.invalidated),
        "TokenProvider.refresh": .call(.refresh),
        "TokenProvider.token": .call(.token),
        "TrustPolicy.custom": .call(.trust),
        "TrustPolicy.evaluated": .call(.trust),
        "SessionConfiguration.metricsFactory": metrics,
        "UploadManager.init": .elsewhere("UploadManagerTests"),
        "WebSocket.send": .callersTask,
        "WebSocketOptions.init": .value,
        "WebSocketReconnectionPolicy.init": .value,
        "WebSocketReconnectionPolicy.reconnects": .value,
    ]

    private static var metrics: Row {
        #if Metrics
            .synchronous(.metrics)
        #else
            .elsewhere("SynchronousHook.metrics, with the trait Metrics")
        #endif
    }

    // MARK: Table

    @Test("The table has exactly the places that accept user code")
    func tableIsComplete() throws {
        let found = try UserCodeLocations.inSources()
        let missing = found.subtracting(Self.table.keys).sorted()
        let gone = Set(Self.table.keys).subtracting(found).sorted()
        #expect(missing.isEmpty, "places without a row: \(missing)")
        #expect(gone.isEmpty, "rows without a place: \(gone)")
    }

    @Test("Closures, sequences and requirements of public protocols are found in every form")
    func forms() {
        let source = """
            public protocol Hook: Sendable {
                func ask(_ request: Request) async throws -> StreamedResponse
                var isFast: Bool { get }
            }
            protocol Inner {
                func ask() -> StreamedResponse
            }
            public struct Settings: AsyncSequence {
                public typealias Handler = @Sendable (Challenge) async throws -> Credentials?
                public var serializer: (@Sendable (Value) throws -> String)?
                public var changes: (any AsyncSequence<Change, Never> & Sendable)?
                #if Metrics
                    public var metricsFactory: (any MetricsFactory)?
                #endif
                public var logger = Logger(label: "a")
                public func plain(_ value: Value) -> String { value.text { $0 -> $1 } }
                public init(
                    first: Int,
                    handler: @escaping @Sendable (Int) -> Void
                ) {}
                public static func once<Pieces: AsyncSequence & Sendable>(
                    _ pieces: Pieces
                ) -> Settings { Settings() }
                // public func commented(_ a: () -> Void)
                func internalOnly(_ a: () -> Void) {}
            }
            public extension Session {
                func with(_ change: (inout Settings) -> Void) -> Session { self }
            }
            """
        let expected: Set = [
            "Hook.ask", "Hook.isFast", "Settings.Handler", "Settings.serializer", "Settings.init",
            "Settings.changes", "Settings.metricsFactory", "Settings.logger", "Settings.once", "Session.with",
        ]
        #expect(UserCodeLocations.places(in: source) == expected)
    }

    // MARK: Synchronous code

    @Test(
        "Synchronous code within a call can use the session and start calls",
        arguments: SynchronousHook.allCases)
    func asksSession(_ hook: SynchronousHook) async throws {
        let scene = try SynchronousScene(hook)
        try await TestOrigin.withOrigin { _ in
            OriginResponse(200, headers: ["Set-Cookie": "a=b; Domain=a.localhost"], body: .text("side")).with {
                $0.interim = [InterimResponse(102)]
            }
        } run: { origin async throws in
            let session = scene.session { $0.pool.connectionsPerHost = 1 }
            let nested = Counter()
            // The mapper's hook needs a call that fails, but the nested call must succeed.
            let lenient = session.with { $0.validator = nil }
            scene.run {
                // Each of these acquires a lock of the session and would deadlock if it were held.
                _ = session.poolStatus
                _ = session.runningCallCount
                _ = session.configuration
                Task { if (try? await lenient.get(origin.url("/side"))) != nil { nested.add() } }
            }
            try await scene.call(session, origin)
            #expect(scene.entered.count > 0)
            #expect(await eventually(within: TestTimeouts.long) { nested.count == 1 })
            await session.invalidateAndCancel()
        }
    }

    @Test(
        "Synchronous code within a call can start the session's invalidation",
        arguments: SynchronousHook.allCases)
    func startsInvalidation(_ hook: SynchronousHook) async throws {
        let scene = try SynchronousScene(hook)
        try await TestOrigin.withOrigin { _ in
            OriginResponse(200, headers: ["Set-Cookie": "a=b; Domain=a.localhost"], body: .text("side")).with {
                $0.interim = [InterimResponse(102)]
            }
        } run: { origin async throws in
            let session = scene.session()
            let returned = Counter()
            scene.run {
                Task {
                    await session.invalidateAndCancel()
                    returned.add()
                }
            }
            // The invalidation may be too late to cancel the call.
            try? await scene.call(session, origin)
            #expect(await eventually(within: TestTimeouts.long) { returned.count == 1 })
            #expect(session.runningCallCount == 0)
        }
    }

    @Test("An error of synchronous code is the error of the call", arguments: SynchronousHook.throwing)
    func synchronousThrows(_ hook: SynchronousHook) async throws {
        let scene = try SynchronousScene(hook)
        try await TestOrigin.withOrigin { _ in
            .text("side")
        } run: { origin async throws in
            let session = scene.session()
            scene.fail()
            await #expect(throws: UserFailure.self) { try await scene.call(session, origin) }
        }
    }

    // MARK: Code outside of calls

    @Test(
        "Code outside of calls can make a call when only one connection is allowed",
        arguments: OutsideHook.allCases.filter { $0 != .invalidated })
    func outsideNested(_ hook: OutsideHook) async throws {
        try await outside(hook) { scene, session, origin in
            let nested = Counter()
            scene.run {
                if (try? await session.get(origin.url("/side")))?.text == "side" { nested.add() }
            }
            try await scene.work(session, origin)
            #expect(nested.count == 1)
        }
    }

    @Test("Work that waits for code that never returns can be cancelled", arguments: OutsideHook.allCases)
    func outsideCancelled(_ hook: OutsideHook) async throws {
        try await outsideBlocked(hook) { _ in }
    }

    @Test(
        "A session can be invalidated while code outside of calls never returns",
        arguments: OutsideHook.allCases)
    func outsideInvalidated(_ hook: OutsideHook) async throws {
        try await outsideBlocked(hook) { session in
            await session.invalidateAndCancel()
            #expect(session.runningCallCount == 0)
        }
    }

    @Test(
        "An error of code outside of calls is thrown by the function that waits for it",
        arguments: OutsideHook.throwing)
    func outsideThrows(_ hook: OutsideHook) async throws {
        try await outside(hook) { scene, session, origin in
            scene.fail()
            await #expect(throws: UserFailure.self) { try await scene.work(session, origin) }
            #expect(scene.entered.count > 0)
        }
    }

    @Test("Code outside of calls can invalidate the session", arguments: OutsideHook.allCases)
    func outsideInvalidates(_ hook: OutsideHook) async throws {
        try await outside(hook) { scene, session, origin in
            let returned = Counter()
            scene.run {
                await session.invalidateAndCancel()
                returned.add()
            }
            let work = Task { try await scene.work(session, origin) }
            #expect(await eventually(within: TestTimeouts.long) { returned.count > 0 })
            work.cancel()
            _ = await work.result
            #expect(session.runningCallCount == 0)
        }
    }

    /// Starts work whose code never returns, runs the closure, cancels the work and waits for its end.
    private func outsideBlocked(_ hook: OutsideHook, _ body: (HTTPSession) async throws -> Void) async throws {
        try await outside(hook) { scene, session, origin in
            scene.run { await scene.block() }
            let work = Task { try await scene.work(session, origin) }
            #expect(await eventually(within: TestTimeouts.long) { scene.entered.count > 0 })
            try await body(session)
            work.cancel()
            _ = await work.result
            scene.release()
        }
    }

    private func outside(
        _ hook: OutsideHook,
        _ body: (OutsideScene, HTTPSession, TestOrigin) async throws -> Void
    ) async throws {
        let scene = try OutsideScene(hook)
        try await TestOrigin.withOrigin { request in
            scene.respond(to: request)
        } run: { origin async throws in
            try await body(scene, scene.session(), origin)
        }
    }
}
