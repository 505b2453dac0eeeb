public import MartletCore
public import MartletConditions

/// The options of an ``OfflineQueue``.
public struct OfflineQueueOptions: Sendable {
    /// The limits on stored requests and on concurrent sends.
    public var limits: OfflineLimits
    /// The delay between two attempts.
    public var backoff: OfflineBackoff
    /// The time after which a request is no longer sent and becomes a dead letter; seven days by default.
    public var timeToLive: Duration
    /// The maximum time for the body of a final response; 60 s by default. Then the connection is closed, and the event
    /// contains the bytes received so far: the status decides the outcome.
    public var responseBodyTime: Duration
    /// Whether a response after a redirect that changed the method counts; `false` by default.
    ///
    /// A 302 or 303 after a POST may lead to its result, or to a sign-in page. By default neither counts as a delivery:
    /// the request is dead, or uncertain if it must not be sent twice. With `true`, success after a 303, or after a 302
    /// within the origin, is a delivery. Redirects that keep the method (307, 308, by default 301) need no setting.
    public var acceptsRedirectedResults: Bool
    /// Secret fields in addition to `Authorization`, `Cookie` and `Proxy-Authorization`: they are not stored.
    public var secretFields: Set<HTTPField.Name>
    /// The options of requests. The queue sets retries, the validator, the cache mode and `Idempotency-Key` itself.
    /// They are not stored: ``RequestOptions/onInterimResponse`` is called for each attempt of this process.
    public var request: RequestOptions
    /// The monitor that reports a returned or changed network path, so that unreachable requests are retried
    /// immediately; that of the system by default, `nil` for none. It never delays a request.
    public var networkMonitor: NetworkMonitor?
    /// Whether the queue sends its requests; `true` by default. With `false` it only stores them; they do not expire.
    public var sendsRequests: Bool

    /// Creates options; the properties document the defaults.
    public init(
        limits: OfflineLimits = OfflineLimits(), backoff: OfflineBackoff = OfflineBackoff(),
        timeToLive: Duration = .seconds(7 * 24 * 3600), responseBodyTime: Duration = .seconds(60),
        acceptsRedirectedResults: Bool = false, secretFields: Set<HTTPField.Name> = [],
        request: RequestOptions = RequestOptions(), networkMonitor: NetworkMonitor? = .system,
        sendsRequests: Bool = true
    ) {
        (self.limits, self.backoff, self.timeToLive) = (limits, backoff, timeToLive)
        (self.responseBodyTime, self.acceptsRedirectedResults) = (responseBodyTime, acceptsRedirectedResults)
        (self.secretFields, self.request, self.networkMonitor) = (secretFields, request, networkMonitor)
        self.sendsRequests = sendsRequests
    }
}

/// The limits of an ``OfflineQueue``. Numbers below 1 count as 1.
public struct OfflineLimits: Hashable, Sendable {
    /// The maximum number of stored requests, including dead letters and uncertain ones; 100,000 by default.
    public var requests: Int
    /// The maximum size of bodies and records together; 2 GiB by default. Files that were not copied do not count.
    public var bytes: ByteCount
    /// The maximum number of concurrent sends, each of another lane; 6 by default.
    public var lanes: Int
    /// The maximum size of a body in the record of its request; 16 KiB by default. A larger body has its own file.
    public var inlineBodyLimit: ByteCount

    /// Creates limits; the properties document the defaults.
    public init(
        requests: Int = 100_000, bytes: ByteCount = .gibibytes(2), lanes: Int = 6,
        inlineBodyLimit: ByteCount = .kibibytes(16)
    ) { (self.requests, self.bytes, self.lanes, self.inlineBodyLimit) = (requests, bytes, lanes, inlineBodyLimit) }
}

/// The delay of a lane of an ``OfflineQueue`` after a failed attempt: a random part of a span that doubles with each
/// attempt (full jitter), or the time in `Retry-After` if that is longer.
public struct OfflineBackoff: Hashable, Sendable {
    /// The span after the first failure; a second by default.
    public var initialDelay: Duration
    /// The maximum span; five minutes by default.
    public var maximumDelay: Duration
    /// The maximum time to wait for a `Retry-After`, also used if the server asks for longer; an hour by default.
    public var maximumRetryAfter: Duration

    /// Creates a backoff; the properties document the defaults.
    public init(
        initialDelay: Duration = .seconds(1), maximumDelay: Duration = .seconds(300),
        maximumRetryAfter: Duration = .seconds(3600)
    ) {
        (self.initialDelay, self.maximumDelay, self.maximumRetryAfter) = (initialDelay, maximumDelay, maximumRetryAfter)
    }

    /// Returns an exponential backoff, with the parameter names of ``RetryPolicy/Backoff``.
    public static func exponential(from initial: Duration, upTo maximum: Duration) -> OfflineBackoff {
        OfflineBackoff(initialDelay: initial, maximumDelay: maximum)
    }

    /// Returns the delay after consecutive failures, at least 1; `random` is between 0 and 1.
    func delay(failures: Int, random: Double) -> Duration {
        RetryRule.fullJitter(initialDelay, upTo: maximumDelay, retry: failures, random: random)
    }
}

/// The closures that add the parts of a queue's requests that are not stored.
///
/// Each runs in its own task, and may make calls. Closing the queue cancels the task, without waiting for it.
public struct OfflineCredentials: Sendable {
    /// Adds the credentials to a request before it is sent. A change of `Idempotency-Key` is ignored.
    ///
    /// After a redirect to another origin, the fields that it added or changed are not sent, except `Accept`,
    /// `Accept-Language`, `Accept-Encoding`, `User-Agent` and `Content-Type`.
    public var authorize: @Sendable (HTTPRequest) async throws -> HTTPRequest
    /// Gets new credentials after a 401, once for all requests; `nil` if ``authorize`` always returns current ones.
    public var refresh: (@Sendable () async throws -> Void)?

    /// Creates credentials from closures.
    public init(
        refresh: (@Sendable () async throws -> Void)? = nil,
        authorize: @escaping @Sendable (HTTPRequest) async throws -> HTTPRequest
    ) { (self.refresh, self.authorize) = (refresh, authorize) }
}

/// The action for a request that cannot be sent now.
public struct OfflineFallback: Sendable {
    let queue: OfflineQueue?
    let submission: OfflineSubmission
    /// Stores the request in the queue that was opened last for the session, in the lane of its origin. The program
    /// must have opened that queue, and must retain it:
    /// `let outbox = try await OfflineQueue(session: session, directory: "/var/lib/app/outbox")`.
    public static let enqueue = OfflineFallback(queue: nil, submission: OfflineSubmission())

    /// Stores the request in a queue.
    /// - Parameter queue: The queue; `nil` for the one that was opened last for the session.
    public static func enqueue(in queue: OfflineQueue? = nil, as submission: OfflineSubmission) -> OfflineFallback {
        OfflineFallback(queue: queue, submission: submission)
    }

    /// Stores the request in a queue, in a lane and with a name.
    public static func enqueue(in queue: OfflineQueue? = nil, lane: String? = nil, tag: String? = nil)
        -> OfflineFallback
    { OfflineFallback(queue: queue, submission: OfflineSubmission(lane: lane, tag: tag)) }

    /// Returns the queue of a request.
    /// - Throws: An ``HTTPError`` with the code `.invalidRequest` if none is open.
    func queue(of session: HTTPSession, for request: HTTPRequest) throws(HTTPError) -> OfflineQueue {
        if let queue = queue ?? session.companion(as: OfflineQueue.self) { return queue }
        let url = try HTTPSession.url(of: request)
        throw HTTPError(
            .invalidRequest, phase: .preparing,
            message: "no offline queue is open for this session; open one before, "
                + "and keep it: let outbox = try await OfflineQueue(session: session, directory: …); "
                + "or name a queue: whenOffline: .enqueue(in: outbox)", method: request.method, url: url)
    }
}

extension HTTPSession {
    /// Sends a request; if that is not possible now, a queue stores it and sends it later.
    ///
    /// The request is stored before it is sent, so that it survives the process. It waits for its turn in its lane; if
    /// the lane waits after a failure, it is queued immediately.
    ///
    /// - Parameters:
    ///   - target: The URL, or a request with a method and header fields. For a URL: GET, or POST with a body.
    ///   - timeout: The maximum duration of the first attempt.
    ///   - options: The options of the first attempt; later ones use those of the queue. The key
    ///     ``RequestOptions/idempotencyKey`` is that of all attempts.
    /// - Returns: The response with any status; or a ticket, if there was no connection or the queue retries after the
    ///   response. The events of the ``OfflineQueue`` then report the outcome.
    /// - Throws: The errors of ``OfflineQueue/submit(_:query:body:headers:as:)``; `.invalidRequest` if no queue is open
    ///   for the session; the error of a request that must not be sent again; `CancellationError`, after which the
    ///   request may have been sent. After an error nothing is stored.
    public nonisolated func send(
        _ target: some HTTPTarget, query: ParameterValue = .null, body: HTTPBody = .none,
        headers: HTTPHeaders = HTTPHeaders(), timeout: Duration? = nil, options: RequestOptions = RequestOptions(),
        whenOffline fallback: OfflineFallback
    ) async throws -> OfflineOutcome {
        let request = try request(for: target, query: query, body: body, headers: headers)
        let queue = try fallback.queue(of: self, for: request)
        let options = options.limited(to: timeout)
        return try await queue.send(
            request, body: body, options: options, as: fallback.submission, HostPart(target))
    }
}
