import MartletContent
public import MartletCore
public import MartletNetwork

/// How an ``OfflineQueue`` works.
public struct OfflineQueueOptions: Sendable {
    /// How much it holds and does at once.
    public var limits: OfflineLimits
    /// How long it waits between two tries.
    public var backoff: OfflineBackoff
    /// The time after which a request is no longer sent and becomes a dead letter; seven days by default.
    public var expires: Duration
    /// The longest time that the body of a final response may take; 60 s by default.
    ///
    /// The status decides what becomes of the request. A body that takes longer is cut, the connection is closed, and the
    /// event carries the bytes that have arrived.
    public var responseBodyTime: Duration
    /// Whether a response after a redirect that changed the method counts as the response to the request; `false` by default.
    ///
    /// A 302 or 303 after a POST may lead to the result of the request, or to a page that asks the user to sign in. By
    /// default neither is a delivery: the request becomes a dead letter, or uncertain where it must not be sent twice. With
    /// `true`, success after a 303, or after a 302 within the origin, is a delivery. Redirects that keep the method
    /// (307, 308, and 301 by default) are always followed with the body and need no such setting.
    public var acceptsRedirectedResults: Bool
    /// Fields that are secret, besides `Authorization`, `Cookie` and `Proxy-Authorization`: they are not stored.
    public var secretFields: Set<HTTPField.Name>
    /// How its requests are sent otherwise than the session does it. Retries, the validator, the cache's mode and
    /// `Idempotency-Key` are the queue's own and not taken from here.
    public var request: RequestOptions
    /// Who tells that the network's path has come back, or is another, so that what could not be reached is tried at once; that
    /// of the system by default, `nil` for nobody. Nothing is held back for what it says.
    public var networkMonitor: NetworkMonitor?
    /// Whether the queue sends its requests; `true` by default. With `false` it only keeps them, and none expires.
    public var isSending: Bool

    /// Options; see the properties for what is so by default.
    public init(
        limits: OfflineLimits = OfflineLimits(), backoff: OfflineBackoff = OfflineBackoff(),
        expires: Duration = .seconds(7 * 24 * 3600), responseBodyTime: Duration = .seconds(60),
        acceptsRedirectedResults: Bool = false, secretFields: Set<HTTPField.Name> = [],
        request: RequestOptions = RequestOptions(), networkMonitor: NetworkMonitor? = .system,
        isSending: Bool = true
    ) {
        self.limits = limits
        self.backoff = backoff
        self.expires = expires
        self.responseBodyTime = responseBodyTime
        self.acceptsRedirectedResults = acceptsRedirectedResults
        self.secretFields = secretFields
        self.request = request
        self.networkMonitor = networkMonitor
        self.isSending = isSending
    }
}

/// How much an ``OfflineQueue`` holds and does at once. Numbers below 1 count as 1.
public struct OfflineLimits: Hashable, Sendable {
    /// How many requests it holds, dead letters and uncertain ones included; 100,000 by default. The one beyond is refused.
    public var requests: Int
    /// How many bytes their bodies and records have together; 2 GiB by default. Files that were not copied do not count.
    public var bytes: ByteCount
    /// How many requests are sent at once, each of another lane; 6 by default.
    public var lanes: Int
    /// How much of a body is written into the record of its request; 16 KiB by default. More is a file beside it.
    public var inlineBody: ByteCount

    /// Limits; see the properties for what they are by default.
    public init(
        requests: Int = 100_000, bytes: ByteCount = .gibibytes(2), lanes: Int = 6,
        inlineBody: ByteCount = .kibibytes(16)
    ) {
        self.requests = requests
        self.bytes = bytes
        self.lanes = lanes
        self.inlineBody = inlineBody
    }
}

/// How long a lane of an ``OfflineQueue`` waits after a try that failed: a random part of a span that doubles from try to try
/// (full jitter), or what `Retry-After` says where that is longer.
public struct OfflineBackoff: Hashable, Sendable {
    /// The span after the first failure; a second by default.
    public var first: Duration
    /// The longest span; five minutes by default.
    public var longest: Duration
    /// The longest `Retry-After` that is obeyed, and what is waited for in place of a longer one; an hour by default.
    public var longestRetryAfter: Duration

    /// A backoff; see the properties for what is so by default.
    public init(
        first: Duration = .seconds(1), longest: Duration = .seconds(300),
        longestRetryAfter: Duration = .seconds(3600)
    ) {
        self.first = first
        self.longest = longest
        self.longestRetryAfter = longestRetryAfter
    }

    /// How long to wait.
    /// - Parameters:
    ///   - failures: How many tries failed in a row, 1 or more.
    ///   - random: Between 0 and 1.
    func delay(failures: Int, random: Double) -> Duration {
        let longest = max(.zero, longest)
        var span = min(max(.zero, first), longest)
        // Doubled so often at most that no span of any use is left out, and none overflows.
        for _ in 1..<max(2, min(failures, 40)) where failures > 1 && span < longest {
            span = min(span * 2, longest)
        }
        return span * min(max(random, 0), 1)
    }
}

/// Who adds to a queue's requests what is not stored with them.
///
/// Each closure runs in a task of its own, and may make calls. When the queue is closed the task is cancelled, and the queue
/// ends without waiting for it.
public struct OfflineCredentials: Sendable {
    /// Adds the credentials to a request that is about to be sent. Its `Idempotency-Key` stays what it was, whatever comes back.
    public var authorize: @Sendable (HTTPRequest) async throws -> HTTPRequest
    /// Gets new credentials, when a server has answered 401 to what ``authorize`` made: once for all requests that were sent
    /// with the old ones. `nil` where asking ``authorize`` again is enough.
    public var refresh: (@Sendable () async throws -> Void)?

    /// Credentials by closures.
    public init(
        refresh: (@Sendable () async throws -> Void)? = nil,
        authorize: @escaping @Sendable (HTTPRequest) async throws -> HTTPRequest
    ) {
        self.refresh = refresh
        self.authorize = authorize
    }
}

/// What becomes of a request that cannot be sent now.
public struct OfflineFallback: Sendable {
    let queue: OfflineQueue?
    let submission: OfflineSubmission

    /// The queue that was opened for the session keeps it, in the lane of its origin.
    public static let freeze = OfflineFallback(queue: nil, submission: OfflineSubmission())

    /// A queue keeps it.
    /// - Parameters:
    ///   - queue: Which one; `nil` for the one that was opened last for the session.
    ///   - submission: How it stands there.
    public static func freeze(
        in queue: OfflineQueue? = nil, as submission: OfflineSubmission
    ) -> OfflineFallback { OfflineFallback(queue: queue, submission: submission) }

    /// A queue keeps it, in a lane and under a name.
    public static func freeze(
        in queue: OfflineQueue? = nil, lane: String? = nil, tag: String? = nil
    ) -> OfflineFallback {
        OfflineFallback(queue: queue, submission: OfflineSubmission(lane: lane, tag: tag))
    }
}

extension HTTPSession {
    /// Sends a request; where that cannot be done now, a queue keeps it and sends it later.
    ///
    /// It is written to the queue's directory before it is sent, so that a process that ends in between does not lose it. It
    /// waits for its turn in its lane; if the lane waits, since what came before could not be sent, it is frozen at once.
    ///
    /// - Parameter options: How the first try is made; later ones are made as the queue's options say. Retries are the
    ///   queue's.
    /// - Returns: The answer, whatever its status, and the queue keeps nothing; or a ticket, where no connection could be
    ///   opened, or the answer was one after which a queue tries again (``OfflineQueue``): its events tell the rest.
    /// - Throws: As ``OfflineQueue/submit(_:body:as:)``; an ``MartletCore/HTTPError`` where the request may or may not have
    ///   taken effect and must not be sent again: the queue keeps nothing of it then. `CancellationError` when the task is
    ///   cancelled: the queue keeps nothing of it, and it may have been sent.
    public nonisolated func send(
        _ request: HTTPRequest, body: HTTPBody = .none, options: RequestOptions = RequestOptions(),
        whenOffline fallback: OfflineFallback
    ) async throws -> OfflineOutcome {
        guard let queue = fallback.queue ?? companion(as: OfflineQueue.self) else {
            throw HTTPError(
                .invalidRequest, phase: .preparing,
                message: "no offline queue is open for this session, to freeze the request in")
        }
        return try await queue.send(request, body: body, options: options, as: fallback.submission)
    }
}
