import Martlet
import MartletOffline
import MartletTesting
import MartletTestSupport
import Synchronization
import SystemPackage

/// A server with scripted responses, a directory, and queues on it.
final class OfflineScene: Sendable {
    typealias StreamedResponse = @Sendable (OriginRequest) async throws -> OriginResponse

    let directory: OfflineDirectory
    let origin: TestOrigin
    private let current: CurrentResponse

    private init(_ answer: @escaping StreamedResponse) async throws {
        directory = try OfflineDirectory()
        let current = CurrentResponse(answer)
        origin = try await TestOrigin.start { request in try await current.value(request) }
        self.current = current
    }

    private final class CurrentResponse: Sendable {
        private let answer: Mutex<StreamedResponse>
        init(_ answer: @escaping StreamedResponse) { self.answer = Mutex(answer) }
        var value: StreamedResponse {
            get { answer.withLock { $0 } }
            set { answer.withLock { $0 = newValue } }
        }
    }

    /// Runs a test in a new scene.
    static func run(
        answering answer: @escaping StreamedResponse = { _ in OriginResponse.text("taken") },
        _ body: (OfflineScene) async throws -> Void
    ) async throws {
        let scene = try await OfflineScene(answer)
        try await body(scene)
        await scene.origin.stop()
    }

    /// Replaces the response of the server from now on.
    func answer(_ answer: @escaping StreamedResponse) { current.value = answer }

    /// A session whose timeouts end only hangs.
    static var session: HTTPSession { HTTPSession(configuration: .ephemeral.patient()) }

    /// Delays of about a millisecond.
    static let soon = OfflineBackoff.exponential(from: .milliseconds(1), upTo: .milliseconds(2))
    /// Delays that no test outlasts.
    static let never = OfflineBackoff(initialDelay: .seconds(100_000), maximumDelay: .seconds(100_000))

    /// Opens a queue on the directory.
    func queue(
        session: HTTPSession = OfflineScene.session, credentials: OfflineCredentials? = nil,
        _ change: (inout OfflineQueueOptions) -> Void = { _ in }
    ) async throws -> OfflineQueue {
        var options = OfflineQueueOptions(backoff: OfflineScene.soon)
        change(&options)
        return try await OfflineQueue(
            session: session, directory: directory.directory, options: options, credentials: credentials)
    }

    /// Makes a request to the server.
    func request(_ method: HTTPRequest.Method = .post, _ path: String = "/notes") throws -> HTTPRequest {
        try HTTPRequest(method: method, url: origin.url(path))
    }
}
