public import FoundationEssentials

/// The error of a failed call: one type for all errors of Martlet.
///
/// The description, also as `localizedDescription`, names the request: `GET https://api.example.com/v2/posts?limit=20:
/// 404 Not Found (application/json, 58 bytes)`.
///
/// A cancelled call throws `CancellationError`, and a caller's closure its own error, never wrapped in an `HTTPError`.
public struct HTTPError: LocalizedError, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The kind of an error. Features add codes, so a `switch` needs a default. The codes of the core, by step:
    ///
    /// | step | codes |
    /// |---|---|
    /// | request, before anything is sent | `.invalidURL`, `.invalidRequest`, `.invalidHeader`, `.sessionInvalidated` |
    /// | body of the request | `.bodyNotReplayable`, `.bodyLengthMismatch`, `.bodySourceFailed`, `.fileFailed` |
    /// | connection | `.resolutionFailed`, `.connectFailed`, `.tlsFailed`, `.proxyFailed`, `.systemFailed` |
    /// | transfer | `.timedOut`, `.connectionLost`, `.emptyResponse`, `.truncated`, `.protocolViolation`, `.limitExceeded` |
    /// | redirects and credentials | `.tooManyRedirects`, `.redirectRejected`, `.linkRejected`, `.authenticationFailed` |
    /// | body of the response | `.bodyTooLarge`, `.contentDecodingFailed`, `.bodyAlreadyRead`, `.cachedBodyCorrupted` |
    /// | digests and checksums | `.checksumMismatch` |
    /// | validation, decoding | `.unacceptableStatus`, `.unacceptableContentType`, `.unacceptableBody`, `.decodingFailed` |
    /// | files | `.fileExists`, `.fileFailed`, `.diskFull`, `.alreadyInProgress` |
    ///
    /// Downloads add `.representationChanged`, `.rangeRejected` and `.notResumable`; the policy for metered networks
    /// adds `.meteredNetwork`.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name of the code, such as `timedOut`.
        public var rawValue: String

        /// Creates a code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The name of the code, the same as ``rawValue``.
        public var description: String { rawValue }

        /// The URL cannot be parsed, or is not an absolute http or https URL.
        public static let invalidURL = Code(rawValue: "invalidURL")
        /// The request is invalid in HTTP, or contradicts itself; nothing was sent.
        public static let invalidRequest = Code(rawValue: "invalidRequest")
        /// The name or the value of a header field has a byte that HTTP does not allow; nothing was sent.
        public static let invalidHeader = Code(rawValue: "invalidHeader")
        /// The host's name could not be resolved.
        public static let resolutionFailed = Code(rawValue: "resolutionFailed")
        /// No address of the host could be connected to.
        public static let connectFailed = Code(rawValue: "connectFailed")
        /// The TLS handshake failed, or a certificate was rejected.
        public static let tlsFailed = Code(rawValue: "tlsFailed")
        /// A proxy did not connect to the server, or a proxy setting is invalid. ``HTTPError/underlying`` is a
        /// ``ProxyError`` or an ``HTTPURL/ParseError``.
        ///
        /// If the proxy cannot be reached, the code is the same as for a server: `.resolutionFailed`, `.connectFailed`
        /// or `.tlsFailed`. ``HTTPError/proxy`` then names the proxy.
        public static let proxyFailed = Code(rawValue: "proxyFailed")
        /// A timeout expired; ``HTTPError/timeout`` is the timeout.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The connection was lost during the exchange.
        public static let connectionLost = Code(rawValue: "connectionLost")
        /// The server closed the connection without a response, other than interim ones (1xx).
        public static let emptyResponse = Code(rawValue: "emptyResponse")
        /// The response ended before it was complete.
        public static let truncated = Code(rawValue: "truncated")
        /// The response is not HTTP, or violates the protocol.
        public static let protocolViolation = Code(rawValue: "protocolViolation")
        /// A part of the response exceeds the limit set for it.
        public static let limitExceeded = Code(rawValue: "limitExceeded")
        /// The body is larger than the limit for collected bodies.
        public static let bodyTooLarge = Code(rawValue: "bodyTooLarge")
        /// The body of a response was read before: it can be read only once.
        public static let bodyAlreadyRead = Code(rawValue: "bodyAlreadyRead")
        /// A body or a downloaded file does not match its digest or checksum.
        public static let checksumMismatch = Code(rawValue: "checksumMismatch")
        /// The content coding is corrupt, truncated, unknown, or expands beyond its limits.
        public static let contentDecodingFailed = Code(rawValue: "contentDecodingFailed")
        /// The status is not accepted by the validators.
        public static let unacceptableStatus = Code(rawValue: "unacceptableStatus")
        /// The content type is not accepted by the validators.
        public static let unacceptableContentType = Code(rawValue: "unacceptableContentType")
        /// The body of the response does not have the expected form; ``HTTPError/underlying`` is the error of the
        /// decoder, and ``HTTPError/exchange`` the response.
        public static let decodingFailed = Code(rawValue: "decodingFailed")
        /// The body is not accepted by the validators.
        public static let unacceptableBody = Code(rawValue: "unacceptableBody")
        /// More redirects than the policy allows; ``HTTPError/exchange`` is the last redirect.
        public static let tooManyRedirects = Code(rawValue: "tooManyRedirects")
        /// A redirect to an insecure, unsupported or invalid URL; ``HTTPError/exchange`` is the redirect.
        public static let redirectRejected = Code(rawValue: "redirectRejected")
        /// The server failed to prove that it knows the password (RFC 7616 §3.5), or a request of the token provider
        /// failed with the ``HTTPError`` in ``HTTPError/underlying``.
        public static let authenticationFailed = Code(rawValue: "authenticationFailed")
        /// A body that can be read only once had to be sent again.
        public static let bodyNotReplayable = Code(rawValue: "bodyNotReplayable")
        /// The source of the request's body returned more or fewer bytes than its declared length.
        public static let bodyLengthMismatch = Code(rawValue: "bodyLengthMismatch")
        /// The source of the request's body threw an error, which is ``HTTPError/underlying``.
        public static let bodySourceFailed = Code(rawValue: "bodySourceFailed")
        /// A file could not be read, written or published.
        public static let fileFailed = Code(rawValue: "fileFailed")
        /// The disk is full, or a quota or the limit on file sizes is reached.
        public static let diskFull = Code(rawValue: "diskFull")
        /// A file of that name exists and may not be replaced.
        public static let fileExists = Code(rawValue: "fileExists")
        /// The same file or directory is in use, by this process or another one.
        public static let alreadyInProgress = Code(rawValue: "alreadyInProgress")
        /// A stored body turned out to be corrupt after a part of it was delivered. Its cache entry was removed.
        /// Martlet itself repeats collected calls and downloads, but not streamed calls.
        public static let cachedBodyCorrupted = Code(rawValue: "cachedBodyCorrupted")
        /// The delegate ended the call with ``ResponseDisposition/cancel``; ``HTTPError/exchange`` has the head.
        public static let cancelledByDelegate = Code(rawValue: "cancelledByDelegate")
        /// The session was invalidated.
        public static let sessionInvalidated = Code(rawValue: "sessionInvalidated")
        /// The system could not provide a resource, such as a descriptor.
        public static let systemFailed = Code(rawValue: "systemFailed")
    }

    /// The phase of a call.
    public enum Phase: String, Hashable, Sendable {
        /// Nothing has happened on the network yet.
        case preparing
        /// Waiting for a connection to become free.
        case waitingForConnection
        /// Resolving the host's name.
        case resolving
        /// Opening a connection to the server or the proxy.
        case connecting
        /// Waiting for a proxy to open a tunnel to the server.
        case tunneling
        /// Performing the TLS handshake.
        case tlsHandshake
        /// Sending the request.
        case sending
        /// Waiting for the response's head.
        case awaitingHead
        /// Receiving the body.
        case receivingBody
        /// Using the connection after a switch of protocols (101).
        case upgraded
        /// Validating, decoding or storing the response.
        case processingResponse
    }

    /// The timeouts of ``Timeouts``.
    public enum Timeout: String, Hashable, Sendable {
        /// The timeout of ``Timeouts`` with this name.
        case poolWait, connect, head, idle, unread, total
    }

    /// The kind of the error.
    public var code: Code
    /// The phase of the call when the error occurred.
    public var phase: Phase
    /// A description of the error, with its position in the input if there is one.
    public var message: String
    /// Whether any byte of the request may have reached the server.
    public var wasSent: Bool
    /// The request, as far as it is known. A class: each stack frame that can receive an error reserves its size.
    private var request: FailedRequest?
    /// The proxy that failed, such as `http://proxy.example:3128`, without user or password; `nil` for another error.
    public var proxy: String?
    /// The timeout that expired, if one did.
    public var timeout: Timeout?
    /// The duration of the call, or of the wait that the timeout ended.
    public var elapsed: Duration?
    /// The number of attempts to send the request.
    public var attempts: Int
    /// The cause: a ``TLSError``, ``ConnectError``, ``ResolutionError``, ``ProxyError``, ``HTTPURL/ParseError`` (also
    /// for a `Location`), ``StorageError``, or the error of the body's source. The error of an invalid message has no
    /// public type: the code and the message describe it.
    public var underlying: (any Error)?
    /// All failed connection attempts, in the order they ended.
    public var connectErrors: [ConnectError]
    /// The response, if the error is about its status or body: the head, and the part of the body that was collected.
    public var exchange: HTTPExchange?
    /// The number of the call whose request failed; `nil` if no request did. It distinguishes errors of a call's own
    /// requests from those of calls that its middleware makes.
    var failedCall: UInt64?
    /// Whether an ``ErrorMapper`` has received the error. Each error is mapped once.
    var isMapped = false
    /// The connection of the failed request; `nil` if there was none, or if only ``exchange`` describes it.
    package var connection: FailedConnection?
    /// The file with a complete download that could not be renamed to its final name; `nil` if there is none. The
    /// caller has to remove it.
    public var unpublishedFile: FilePath?
    /// The number of stored bytes from which a download can resume; `nil` if none are stored.
    public var resumableByteCount: UInt64?

    /// Creates an error. Secrets of the URL are masked.
    public init(
        _ code: Code, phase: Phase, message: String, wasSent: Bool = false, method: HTTPRequest.Method? = nil,
        url: HTTPURL? = nil, status: Int? = nil, timeout: Timeout? = nil, elapsed: Duration? = nil, attempts: Int = 1,
        underlying: (any Error)? = nil, connectErrors: [ConnectError] = [], exchange: HTTPExchange? = nil,
        proxy: String? = nil
    ) {
        if method != nil || url != nil || status != nil {
            request = FailedRequest(method: method, url: url?.withoutSecrets, status: status, call: nil)
        }
        (self.code, self.phase, self.message, self.wasSent) = (code, phase, message, wasSent)
        (self.timeout, self.elapsed, self.attempts, self.proxy) = (timeout, elapsed, attempts, proxy)
        (self.underlying, self.connectErrors, self.exchange) = (underlying, connectErrors, exchange)
    }

    private typealias FailedCall = (number: UInt64, start: MonotonicTime, ended: MonotonicTime)

    private final class FailedRequest: Sendable {
        let method: HTTPRequest.Method?
        let url: HTTPURL?
        let status: Int?
        /// The call, which ended with this error; `nil` for an error outside of calls.
        let call: FailedCall?
        let hops: [HTTPHop]

        init(method: HTTPRequest.Method?, url: HTTPURL?, status: Int?, call: FailedCall?, hops: [HTTPHop] = []) {
            (self.method, self.url, self.status, self.call, self.hops) = (method, url, status, call, hops)
        }
    }

    /// The method of the request; `nil` if the error is not about a request.
    public var method: HTTPRequest.Method? { request?.method }

    /// The URL of the request, after redirects; `nil` without a request, or if the URL could not be parsed.
    ///
    /// It has no user info and no fragment, and values of the query items in ``HTTPURL/secretQueryNames`` are `***`.
    public var url: HTTPURL? { request?.url }

    /// The URL of the first request, with secrets masked as in ``url``; `nil` without redirects.
    public var originalURL: HTTPURL? {
        guard let url, let original = hops.first(where: { $0.reason == .redirect })?.url else { return nil }
        return original == url ? nil : original
    }

    /// The requests of the call before the failed one, in order, with secrets masked as in ``url``.
    public var hops: [HTTPHop] {
        let hops = request?.hops ?? []
        return hops.isEmpty ? exchange?.metrics.hops.map(\.withoutSecrets) ?? [] : hops
    }

    /// The origin of the request, such as `https://example.com:8443`.
    public var origin: String? { url?.origin.description }
    /// The status of the response; `nil` if no final head was received.
    public var status: Int? { exchange?.statusCode ?? request?.status }
    /// The number of the call, as in ``HTTPExchange/callNumber``; `nil` if no call was started.
    public var callNumber: UInt64? { request?.call?.number }

    /// The metrics of the failed call: its attempts, durations and byte counts, as far as they are known. The total is
    /// the time from the start of the call to the failure. `nil` if no call was started. The URLs of the hops are
    /// masked as in ``url``.
    public var metrics: HTTPMetrics? {
        var metrics = exchange?.metrics ?? connection?.metrics
        if let call = request?.call {
            let attempts = max(attempts, metrics?.attempts ?? 0)
            metrics = (metrics ?? HTTPMetrics()).ofCall(call.start, call.ended, attempts, hops)
        }
        metrics?.hops = hops
        return metrics
    }

    /// Returns the error with the missing details of its request added.
    /// - Parameter call: The call, which ends now.
    package func about(_ method: HTTPRequest.Method?, _ url: HTTPURL?, status: Int? = nil, call: Call? = nil)
        -> HTTPError
    {
        guard
            request?.url == nil || request?.method == nil || (status != nil && request?.status == nil)
                || (call != nil && request?.call == nil)
        else { return self }
        var error = self
        error.request = FailedRequest(
            method: self.method ?? method, url: self.url ?? url?.withoutSecrets, status: request?.status ?? status,
            call: request?.call ?? call.map { (number: $0.number, start: $0.start, ended: MonotonicTime.now()) },
            hops: request?.hops ?? [])
        return error
    }

    /// Returns the error with the earlier requests of its call if its URL is `target`, else the error unchanged.
    func following(_ hops: [HTTPHop], to target: HTTPURL) -> HTTPError {
        guard let request, request.url == target.withoutSecrets else { return self }
        var error = self
        error.request = FailedRequest(
            method: request.method, url: request.url, status: request.status, call: request.call,
            hops: hops.map(\.withoutSecrets))
        return error
    }

    /// Whether a timeout expired.
    public var isTimeout: Bool { code == .timedOut }

    /// Whether no connection could be opened, for any reason.
    public var isConnectFailure: Bool {
        switch code {
        case .resolutionFailed, .connectFailed, .proxyFailed: true
        // TLS can also fail later: by an invalid record, or by a certificate that is rejected after the handshake.
        case .tlsFailed: !isAfterHandshake
        case .timedOut: timeout == .connect
        default: false
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// The code, the phase and the description, for debuggers and `dump`.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description, "code": code.rawValue, "phase": phase.rawValue])
    }

    /// The method and the URL, without secrets, and the message; only the message if the URL is not known. After
    /// redirects, the URL of the first request follows as `(redirected from URL)`. At the end are the bytes that a
    /// download has kept, and the number of several attempts: `(2 attempts)`, or `(2 requests)` with redirects.
    public var description: String {
        let original = originalURL.map { "(redirected from \($0.absoluteString))" }
        let request = url.map { [method?.rawValue, $0.absoluteString, original].compactMap(\.self) } ?? []
        let count = attempts > 1 ? " (\(attempts) \(original == nil ? "attempts" : "requests"))" : ""
        let prefix = request.isEmpty ? "" : request.joined(separator: " ") + ": "
        let kept = resumableByteCount.map { "; \($0) bytes are kept" } ?? ""
        return prefix + (message.isEmpty ? code.rawValue : message) + kept + count
    }

    /// The same as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}
