import Martlet
import Synchronization
import SystemPackage

/// A delegate that records its calls and returns the replies that the test sets.
final class RecordingDelegate: SessionDelegate {
    typealias Challenged = @Sendable (AuthenticationChallenge) async throws -> ChallengeDisposition
    typealias Redirected = @Sendable (HTTPRequest) async throws -> HTTPRequest?
    typealias Received = @Sendable (HTTPResponse) async throws -> ResponseDisposition

    private let notes = Mutex<[String]>([])
    private let challenged: Challenged
    private let redirected: Redirected
    private let received: Received
    private let body: @Sendable () -> HTTPBody?
    private let place: FilePath?
    /// The number of received body bytes.
    let receivedCount = Mutex(0)
    /// The last upload progress.
    let sent = Mutex<TransferProgress?>(nil)
    /// The error of the last failed call.
    let failure = Mutex<(any Error)?>(nil)
    /// The collected metrics.
    let metrics = Mutex<[HTTPMetrics]>([])

    init(
        challenged: @escaping Challenged = { _ in .performDefaultHandling },
        redirected: @escaping Redirected = { $0 },
        received: @escaping Received = { _ in .allow }, body: @escaping @Sendable () -> HTTPBody? = { nil },
        place: FilePath? = nil
    ) {
        self.challenged = challenged
        self.redirected = redirected
        self.received = received
        self.body = body
        self.place = place
    }

    /// The recorded calls, in order.
    var calls: [String] { notes.withLock { $0 } }

    private func note(_ text: String) {
        notes.withLock { $0.append(text) }
    }

    func respond(to challenge: AuthenticationChallenge, in context: CallContext) async throws
        -> ChallengeDisposition
    {
        note("challenge \(challenge.failureCount)")
        return try await challenged(challenge)
    }

    func redirect(
        by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest,
        in context: CallContext
    ) async throws -> HTTPRequest? {
        note("redirect \(response.status.code) \(request.path ?? "") to \(proposed.path ?? "")")
        return try await redirected(proposed)
    }

    func replacementBody(for request: HTTPRequest, in context: CallContext) async throws -> HTTPBody? {
        note("new body")
        return body()
    }

    func received(_ response: HTTPResponse, in context: CallContext) async throws -> ResponseDisposition {
        note("received \(response.status.code)")
        return try await received(response)
    }

    func destination(
        of response: HTTPResponse, proposed: FilePath, in context: CallContext
    ) async throws -> FilePath? {
        note("destination")
        return place
    }

    func bodySent(_ progress: TransferProgress, in context: CallContext) async {
        sent.withLock { $0 = progress }
    }

    func bodyReceived(_ byteCount: Int, in context: CallContext) async {
        receivedCount.withLock { $0 += byteCount }
    }

    func downloadFinished(at path: FilePath, in context: CallContext) async {
        note("downloaded \(path.lastComponent?.string ?? "")")
    }

    func metricsCollected(_ metrics: HTTPMetrics, in context: CallContext) async {
        self.metrics.withLock { $0.append(metrics) }
    }

    func completed(_ result: CallResult, in context: CallContext) async {
        switch result {
        case .succeeded(let exchange): note("answered \(exchange.statusCode)")
        case .failed(let error):
            failure.withLock { $0 = error }
            note(
                error is CancellationError
                    ? "cancelled" : "failed \((error as? HTTPError)?.code.rawValue ?? "")")
        }
    }

    func sessionInvalidated() async { note("invalidated") }
}
