import MartletCredentials
public import SystemPackage

/// Accompanies the calls of a session: is asked what to do at certain points, and told what happens.
///
/// Every function has a default that changes nothing. The call waits for them: a slow delegate slows its call, and
/// bodies are held by the TCP window meanwhile. The exception is ``bodySent(_:in:)``, which runs beside the others. What a
/// function that asks throws is what the call throws. They may make calls of their own, on the same session and to the same
/// host as well.
///
/// Each runs in a task of its own. When the call is cancelled, the session is invalidated or the total clock runs out, the
/// task is cancelled, and the call ends without waiting for it. The functions that are told of the end of such a call have
/// one second.
///
/// A session holds its delegate for as long as it lives, and so do its views, unless they have one of their own. A call
/// that cannot even begin, because its URL is none or the session was invalidated, is not seen here.
///
/// Certificates are not asked about here: ``TrustPolicy`` has a policy of one's own for that, within the handshake. What a
/// proxy demands is answered by ``ProxySettings``. What a cache does is said by ``RequestOptions/cacheMode``, and downloads that
/// go on where they stopped have events of their own (`Download.events`): there are no functions for either.
public protocol SessionDelegate: Sendable {
    // MARK: Asked

    /// With what a server that asks who is calling is answered, where the call's own credentials are not the answer.
    ///
    /// By default, and for ``ChallengeAnswer/performDefault``, the ``AuthenticationSettings/handler`` is asked.
    func answer(to challenge: AuthenticationChallenge, in context: CallContext) async throws
        -> ChallengeAnswer

    /// The request that follows a redirect: the one proposed, another one, or `nil` for none, which makes the redirect the
    /// call's answer.
    ///
    /// Asked only about redirects that the ``RedirectPolicy`` follows. A request for another origin than the proposed
    /// one's leaves credentials and cookies behind.
    /// - Parameters:
    ///   - response: The redirect; its body has not been read.
    ///   - request: What was redirected.
    ///   - proposed: What would follow.
    func redirect(
        by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest,
        in context: CallContext
    ) async throws -> HTTPRequest?

    /// A body for a request that may have to be sent once more, though its own could be read only once; `nil`, the default, for
    /// none, which makes the answer at hand the call's.
    func newBody(for request: HTTPRequest, in context: CallContext) async throws -> HTTPBody?

    /// What becomes of an answer whose head has come; ``ResponseDisposition/allow`` by default.
    func received(_ response: HTTPResponse, in context: CallContext) async throws -> ResponseDisposition

    /// Where a download goes, asked before its first byte is written; `nil`, the default, for where the caller said.
    ///
    /// The file appears there when it is complete. A file that is there is replaced only if the caller allowed it.
    func destination(
        of response: HTTPResponse, proposed: FilePath, in context: CallContext
    ) async throws -> FilePath?

    // MARK: Told

    /// How far the request's body has gone: the newest state, not every one; the last one always comes.
    func bodySent(_ progress: TransferProgress, in context: CallContext) async

    /// So many more bytes of the answer's body were received; with content coding undone, where it is.
    func bodyReceived(_ byteCount: Int, in context: CallContext) async

    /// A download is complete and published under its name.
    func downloadFinished(at path: FilePath, in context: CallContext) async

    /// When the parts of a call that was answered happened; comes before ``completed(_:in:)``.
    func collected(_ metrics: HTTPMetrics, in context: CallContext) async

    /// A call ended; nothing of it follows.
    func completed(_ result: CallResult, in context: CallContext) async

    /// The session was invalidated, and its last call has ended. Told once, to the delegate of the session or view that was
    /// invalidated.
    func sessionInvalidated() async
}

/// What a delegate says to a challenge.
public enum ChallengeAnswer: Sendable {
    /// Send the request again with these.
    case credentials(Credentials)
    /// Ask the ``AuthenticationSettings/handler``, if there is one.
    case performDefault
    /// Leave it: the 401 is the answer.
    case leave
}

/// What becomes of an answer whose head has come.
public enum ResponseDisposition: Hashable, Sendable {
    /// The call goes on.
    case allow
    /// The call is cancelled.
    case cancel
    /// The body is written to a file, under the rules of a download, and the call ends with an empty one. Nothing else of a
    /// download changes by it. The file's folder must exist.
    case becomeDownload(to: FilePath, overwrites: Bool = false)
}

/// How a call ended.
public enum CallResult: Sendable {
    /// With an answer. Its body is what was collected; it is empty where it was streamed or written to a file.
    case answered(HTTPExchange)
    /// With an error; `CancellationError` where it was cancelled.
    case failed(any Error)
}

extension SessionDelegate {
    /// The handler's answer.
    public func answer(
        to challenge: AuthenticationChallenge, in context: CallContext
    ) async throws -> ChallengeAnswer { .performDefault }

    /// The request proposed.
    public func redirect(
        by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest,
        in context: CallContext
    ) async throws -> HTTPRequest? { proposed }

    /// None.
    public func newBody(for request: HTTPRequest, in context: CallContext) async throws -> HTTPBody? { nil }

    /// The call goes on.
    public func received(
        _ response: HTTPResponse, in context: CallContext
    ) async throws -> ResponseDisposition { .allow }

    /// Where the caller said.
    public func destination(
        of response: HTTPResponse, proposed: FilePath, in context: CallContext
    ) async throws -> FilePath? { nil }

    /// Nothing.
    public func bodySent(_ progress: TransferProgress, in context: CallContext) async {}

    /// Nothing.
    public func bodyReceived(_ byteCount: Int, in context: CallContext) async {}

    /// Nothing.
    public func downloadFinished(at path: FilePath, in context: CallContext) async {}

    /// Nothing.
    public func collected(_ metrics: HTTPMetrics, in context: CallContext) async {}

    /// Nothing.
    public func completed(_ result: CallResult, in context: CallContext) async {}

    /// Nothing.
    public func sessionInvalidated() async {}
}
