/// Takes decisions in the calls of a session, and is notified of their progress.
///
/// Every function has a default that changes nothing. The call waits for them: a slow delegate slows its call down, and the TCP
/// window slows the peer down. The exceptions run beside the others: ``bodySent(_:in:)``, ``transferResumed(of:at:expecting:)``
/// and ``backgroundFinished(in:)``. The call throws the errors of
/// functions that decide. They may make calls of their own, also on the same session and to the same host.
///
/// Each runs in its own task. When the call is cancelled, the session is invalidated or the total timeout expires, the
/// task is cancelled, and the call ends without waiting for it. The functions that are notified of the end of such a call have
/// one second.
///
/// A session keeps its delegate as long as it lives, and so do its views, unless they have one of their own. A call
/// that cannot begin, because its URL is invalid or the session was invalidated, is not reported.
///
/// There are no functions for certificates (``TrustPolicy`` has a custom policy, within the handshake) and for credentials of
/// proxies (``ProxySettings``).
public protocol SessionDelegate: Sendable {
    // MARK: Decisions

    /// Replies to a server's challenge that the call's own credentials do not answer.
    ///
    /// By default, and for ``ChallengeDisposition/performDefaultHandling``, the ``AuthenticationSettings/handler`` is asked.
    func respond(to challenge: AuthenticationChallenge, in context: CallContext) async throws -> ChallengeDisposition

    /// The request that follows a redirect: the proposed one (the default), another one, or `nil` for none, which makes the
    /// redirect the call's response.
    ///
    /// Called only for redirects that the ``RedirectPolicy`` follows. A request for another origin than that of the proposed
    /// one is sent without credentials and cookies.
    /// - Parameters:
    ///   - response: The redirect; its body has not been read.
    ///   - request: The request that was redirected.
    ///   - proposed: The request that would follow.
    func redirect(
        by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest, in context: CallContext
    ) async throws -> HTTPRequest?

    /// A body for a request that may have to be sent again, though its own could be read only once; with `nil` (the default)
    /// the present response is the call's.
    func replacementBody(for request: HTTPRequest, in context: CallContext) async throws -> HTTPBody?

    /// Decides about a response whose head has come; ``ResponseDisposition/allow`` by default.
    func received(_ response: HTTPResponse, in context: CallContext) async throws -> ResponseDisposition

    /// The path of a download, before its first byte is written; with `nil` (the default) that of the caller.
    ///
    /// The file gets this name when it is complete. An existing file is replaced only if the caller allowed it.
    func destination(of response: HTTPResponse, proposed: FilePath, in context: CallContext) async throws -> FilePath?

    /// Decides whether a response that the session's cache could store is stored; `true` by default.
    ///
    /// Called before the first byte is stored, once for a transfer that several calls share, and also for a response that
    /// is fetched in the background. After `false`, the response replaces none in the cache; one that it would have replaced is
    /// removed. Not called for a stored response that the server confirms with 304.
    func mayStore(_ response: HTTPResponse, to request: HTTPRequest) async -> Bool

    // MARK: Notices

    /// The progress of the request's body: the latest state, not every one; the last one is always reported.
    func bodySent(_ progress: TransferProgress, in context: CallContext) async

    /// More bytes of the response's body were received, after decoding of content codings.
    func bodyReceived(_ byteCount: Int, in context: CallContext) async

    /// Whether ``bodyReceived(_:in:)-([UInt8],_)`` is called; `false` by default, which saves a copy of each body. Read once for
    /// each piece.
    var receivesBodyBytes: Bool { get }

    /// The bytes that the last ``bodyReceived(_:in:)-(Int,_)`` counted, if ``receivesBodyBytes`` is `true`.
    func bodyReceived(_ bytes: [UInt8], in context: CallContext) async

    /// A transfer that outlives its calls, such as a download of several runs, resumes with bytes that earlier runs received.
    /// - Parameters:
    ///   - url: The URL, without user info.
    ///   - offset: The number of bytes that need not be received again.
    ///   - byteCount: The length of the whole; `nil` if it is not known.
    func transferResumed(of url: HTTPURL, at offset: UInt64, expecting byteCount: UInt64?) async

    /// The transfers of a directory that outlive the process are over: finished, failed or cancelled. Called each time that
    /// this happens.
    func backgroundFinished(in directory: FilePath) async

    /// A download is complete and has its name.
    func downloadFinished(at path: FilePath, in context: CallContext) async

    /// The metrics of a call that has a response; comes before ``completed(_:in:)``.
    func metricsCollected(_ metrics: HTTPMetrics, in context: CallContext) async

    /// A call ended; nothing of it follows.
    func completed(_ result: CallResult, in context: CallContext) async

    /// The session was invalidated, and its last call has ended. Called once, on the delegate of the session or view that was
    /// invalidated.
    func sessionInvalidated() async
}

/// A delegate's reply to a challenge.
public enum ChallengeDisposition: Sendable {
    /// Send the request again with these credentials.
    case credentials(Credentials)
    /// Ask the ``AuthenticationSettings/handler``, if there is one.
    case performDefaultHandling
    /// Return the 401 as the response.
    case returnResponse
}

/// A delegate's decision about a response whose head has come.
public enum ResponseDisposition: Hashable, Sendable {
    /// The call continues.
    case allow
    /// The call ends with ``HTTPError/Code/cancelledByDelegate``, without its body; its connection is closed. It does not throw
    /// `CancellationError`, which means that the caller's own task was cancelled, and is not retried.
    case cancel
    /// The body is written to a file, under the rules of a download, and the call ends with an empty one. Nothing else of a
    /// download changes by it. The file's directory must exist.
    case becomeDownload(to: FilePath, overwrites: Bool = false)
}

/// The end of a call.
public enum CallResult: Sendable {
    /// A response. Its body is the collected one; it is empty if it was streamed or written to a file.
    case succeeded(HTTPExchange)
    /// An error; `CancellationError` if the call was cancelled.
    case failed(any Error)
}

extension SessionDelegate {
    /// Asks the handler.
    public func respond(to challenge: AuthenticationChallenge, in context: CallContext) async throws
        -> ChallengeDisposition
    { .performDefaultHandling }

    /// The proposed request.
    public func redirect(
        by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest, in context: CallContext
    ) async throws -> HTTPRequest? { proposed }

    /// None.
    public func replacementBody(for request: HTTPRequest, in context: CallContext) async throws -> HTTPBody? { nil }

    /// The call continues.
    public func received(_ response: HTTPResponse, in context: CallContext) async throws -> ResponseDisposition {
        .allow
    }

    /// The caller's path.
    public func destination(of response: HTTPResponse, proposed: FilePath, in context: CallContext) async throws
        -> FilePath?
    { nil }

    /// Does nothing.
    public func bodySent(_ progress: TransferProgress, in context: CallContext) async {}

    /// Does nothing.
    public func bodyReceived(_ byteCount: Int, in context: CallContext) async {}

    /// It is stored.
    public func mayStore(_ response: HTTPResponse, to request: HTTPRequest) async -> Bool { true }

    /// Bytes are counted, and not passed.
    public var receivesBodyBytes: Bool { false }

    /// Does nothing.
    public func bodyReceived(_ bytes: [UInt8], in context: CallContext) async {}

    /// Does nothing.
    public func transferResumed(of url: HTTPURL, at offset: UInt64, expecting byteCount: UInt64?) async {}

    /// Does nothing.
    public func backgroundFinished(in directory: FilePath) async {}

    /// Does nothing.
    public func downloadFinished(at path: FilePath, in context: CallContext) async {}

    /// Does nothing.
    public func metricsCollected(_ metrics: HTTPMetrics, in context: CallContext) async {}

    /// Does nothing.
    public func completed(_ result: CallResult, in context: CallContext) async {}

    /// Does nothing.
    public func sessionInvalidated() async {}
}
