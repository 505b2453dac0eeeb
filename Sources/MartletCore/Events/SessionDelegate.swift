/// A delegate that makes decisions for the calls of a session, and is notified of their progress.
///
/// Every function has a default that changes nothing. The call waits for its delegate: a slow delegate slows down the
/// call and, by the TCP window, the peer. Only these functions run concurrently with the call: ``bodySent(_:in:)``,
/// ``transferResumed(of:at:expecting:)`` and ``backgroundFinished(in:)``. If a decision throws an error, the call
/// throws it. The functions may make calls, also on the same session and to the same host.
///
/// Each function runs in its own task. When the call is cancelled, the session is invalidated or the total timeout
/// expires, the task is cancelled, and the call does not wait for it; notices of the end of the call get one second.
///
/// A session and its views hold the delegate as long as they live; a view may have its own. A call that cannot start,
/// because its URL is invalid or the session was invalidated, is not reported.
///
/// Certificates and the credentials of proxies have no functions here: see the custom policy of ``TrustPolicy``, which
/// runs in the handshake, and ``ProxySettings``.
public protocol SessionDelegate: Sendable {
    // MARK: Decisions

    /// Replies to a server's challenge that the call's own credentials do not satisfy.
    ///
    /// The default, ``ChallengeDisposition/performDefaultHandling``, calls the ``AuthenticationSettings/handler``.
    func respond(to challenge: AuthenticationChallenge, in context: CallContext) async throws -> ChallengeDisposition

    /// Returns the request that follows a redirect: the proposed one (the default), another one, or `nil` to return the
    /// redirect as the call's response.
    ///
    /// Called only for redirects that the ``RedirectPolicy`` follows. If the returned request has another origin than
    /// the proposed one, it is sent without credentials and cookies. A request's URL is `HTTPRequest.httpURL`.
    /// - Parameters:
    ///   - response: The redirect; its body has not been read.
    ///   - request: The request that was redirected.
    ///   - proposed: The request that would follow.
    func redirect(
        by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest, in context: CallContext
    ) async throws -> HTTPRequest?

    /// Returns a new body for a request that must be sent again although its body could be read only once. With `nil`
    /// (the default) the call returns the current response.
    func replacementBody(for request: HTTPRequest, in context: CallContext) async throws -> HTTPBody?

    /// Decides about a response whose head was received; ``ResponseDisposition/allow`` by default.
    func received(_ response: HTTPResponse, in context: CallContext) async throws -> ResponseDisposition

    /// Returns the path for a download; `nil` (the default) for the caller's path.
    ///
    /// Called before the first byte is written. The file is renamed to this path when it is complete. An existing file
    /// is replaced only if the caller allowed it.
    func destination(of response: HTTPResponse, proposed: FilePath, in context: CallContext) async throws -> FilePath?

    /// Decides whether a response that the session's cache could store is stored; `true` by default.
    ///
    /// Called before the first byte is stored, once for a transfer that several calls share, and also for a response
    /// that is fetched in the background. After `false` the response is not stored, and the stored response that it
    /// would have replaced is removed. Not called for a stored response that the server confirms with 304.
    func mayStore(_ response: HTTPResponse, to request: HTTPRequest) async -> Bool

    // MARK: Notices

    /// Receives the progress of the request's body. Intermediate states may be skipped; the last one never is.
    func bodySent(_ progress: TransferProgress, in context: CallContext) async

    /// Receives the number of new bytes of the response's body, after decoding of content codings.
    func bodyReceived(_ byteCount: Int, in context: CallContext) async

    /// Whether ``bodyBytesReceived(_:in:)`` is called, checked for each piece; `false` by default, which saves a copy.
    var receivesBodyBytes: Bool { get }

    /// Receives the bytes that the last ``bodyReceived(_:in:)`` counted, if ``receivesBodyBytes`` is `true`.
    func bodyBytesReceived(_ bytes: [UInt8], in context: CallContext) async

    /// Handles that a transfer, such as a download, resumes after bytes that were received in earlier runs.
    /// - Parameters:
    ///   - url: The URL, without user info.
    ///   - offset: The number of bytes that need not be received again.
    ///   - byteCount: The total length; `nil` if it is not known.
    func transferResumed(of url: HTTPURL, at offset: UInt64, expecting byteCount: UInt64?) async

    /// Handles that all background transfers of a directory have ended. May be called more than once.
    func backgroundFinished(in directory: FilePath) async

    /// Handles that a download is complete and has its final name.
    func downloadFinished(at path: FilePath, in context: CallContext) async

    /// Receives the metrics of a call that has a response, before ``completed(_:in:)``.
    func metricsCollected(_ metrics: HTTPMetrics, in context: CallContext) async

    /// Handles the end of a call; no other function is called for it afterwards.
    func completed(_ result: CallResult, in context: CallContext) async

    /// Handles that the session was invalidated and its last call has ended. Called once, on the delegate of the
    /// session or view that was invalidated.
    func sessionInvalidated() async
}

/// A delegate's reply to a challenge.
public enum ChallengeDisposition: Sendable {
    /// Send the request again with these credentials.
    case credentials(Credentials)
    /// Call the ``AuthenticationSettings/handler``, if there is one.
    case performDefaultHandling
    /// Return the 401 as the response.
    case returnResponse
}

/// A delegate's decision about a response whose head was received.
public enum ResponseDisposition: Hashable, Sendable {
    /// Continue the call.
    case allow
    /// End the call with ``HTTPError/Code/cancelledByDelegate``, without its body, and close its connection. The error
    /// is not retried. It is not a `CancellationError`, which would mean that the caller's task was cancelled.
    case cancel
    /// Write the body to a file, under the rules of a download, and end the call with an empty body. The file's
    /// directory must exist. Other features of downloads do not apply.
    case becomeDownload(to: FilePath, overwrites: Bool = false)
}

/// The result of a call.
public enum CallResult: Sendable {
    /// The response. It has the collected body; the body is empty if it was streamed or written to a file.
    case succeeded(HTTPExchange)
    /// The error; `CancellationError` if the call was cancelled.
    case failed(any Error)
}

extension SessionDelegate {
    /// Selects the default handling.
    public func respond(to challenge: AuthenticationChallenge, in context: CallContext) async throws
        -> ChallengeDisposition
    { .performDefaultHandling }

    /// Returns the proposed request.
    public func redirect(
        by response: HTTPResponse, from request: HTTPRequest, to proposed: HTTPRequest, in context: CallContext
    ) async throws -> HTTPRequest? { proposed }

    /// Returns no body.
    public func replacementBody(for request: HTTPRequest, in context: CallContext) async throws -> HTTPBody? { nil }

    /// Continues the call.
    public func received(_ response: HTTPResponse, in context: CallContext) async throws -> ResponseDisposition {
        .allow
    }

    /// Returns the caller's path.
    public func destination(of response: HTTPResponse, proposed: FilePath, in context: CallContext) async throws
        -> FilePath?
    { nil }

    /// Ignores the event.
    public func bodySent(_ progress: TransferProgress, in context: CallContext) async {}

    /// Ignores the event.
    public func bodyReceived(_ byteCount: Int, in context: CallContext) async {}

    /// Stores the response.
    public func mayStore(_ response: HTTPResponse, to request: HTTPRequest) async -> Bool { true }

    /// The default, `false`: bytes are counted but not passed.
    public var receivesBodyBytes: Bool { false }

    /// Ignores the event.
    public func bodyBytesReceived(_ bytes: [UInt8], in context: CallContext) async {}

    /// Ignores the event.
    public func transferResumed(of url: HTTPURL, at offset: UInt64, expecting byteCount: UInt64?) async {}

    /// Ignores the event.
    public func backgroundFinished(in directory: FilePath) async {}

    /// Ignores the event.
    public func downloadFinished(at path: FilePath, in context: CallContext) async {}

    /// Ignores the event.
    public func metricsCollected(_ metrics: HTTPMetrics, in context: CallContext) async {}

    /// Ignores the event.
    public func completed(_ result: CallResult, in context: CallContext) async {}

    /// Ignores the event.
    public func sessionInvalidated() async {}
}
