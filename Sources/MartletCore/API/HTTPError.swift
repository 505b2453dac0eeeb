public import SystemPackage

/// Why a call failed: one type for everything that Martlet itself has to say.
///
/// A cancelled call throws `CancellationError`, and a closure or decoder of the caller's its own error; neither is ever
/// wrapped in this one.
public struct HTTPError: Error, Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The kind of an error. Features add their own: a `switch` needs a default.
    public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
        /// The name of the code.
        public var rawValue: String

        /// A code by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The name of the code.
        public var description: String { rawValue }

        /// The URL cannot be parsed, or has a part that cannot be used.
        public static let invalidURL = Code(rawValue: "invalidURL")
        /// The request cannot be written as HTTP; nothing was sent.
        public static let invalidRequest = Code(rawValue: "invalidRequest")
        /// The host's name does not resolve.
        public static let resolutionFailed = Code(rawValue: "resolutionFailed")
        /// No address of the host could be connected to.
        public static let connectFailed = Code(rawValue: "connectFailed")
        /// The TLS handshake failed, or a certificate was refused.
        public static let tlsFailed = Code(rawValue: "tlsFailed")
        /// A proxy did not open a way to the server, or what was said about proxies cannot be used;
        /// ``HTTPError/underlying`` is a ``ProxyError``, or an ``HTTPURL/ParseError``.
        ///
        /// A proxy that cannot be reached is `.resolutionFailed`, `.connectFailed` or `.tlsFailed`, as a server that cannot
        /// be; ``HTTPError/proxy`` tells them apart.
        public static let proxyFailed = Code(rawValue: "proxyFailed")
        /// A clock ran out; ``HTTPError/clock`` says which.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The connection broke.
        public static let connectionLost = Code(rawValue: "connectionLost")
        /// The server closed the connection without a single byte of a response, but interim ones (1xx).
        public static let emptyResponse = Code(rawValue: "emptyResponse")
        /// The response ended before it was complete.
        public static let truncated = Code(rawValue: "truncated")
        /// The response is not HTTP, or breaks its rules.
        public static let protocolViolation = Code(rawValue: "protocolViolation")
        /// A part of the response exceeds the limit set for it.
        public static let limitExceeded = Code(rawValue: "limitExceeded")
        /// The body is larger than what may be collected.
        public static let bodyTooLarge = Code(rawValue: "bodyTooLarge")
        /// The content coding is corrupt, cut short, unknown, or expands beyond its bounds.
        public static let contentDecodingFailed = Code(rawValue: "contentDecodingFailed")
        /// The status was not one of those accepted.
        public static let unacceptableStatus = Code(rawValue: "unacceptableStatus")
        /// The content type was not one of those accepted.
        public static let unacceptableContentType = Code(rawValue: "unacceptableContentType")
        /// The body was not one of those accepted.
        public static let unacceptableBody = Code(rawValue: "unacceptableBody")
        /// More redirects than the policy allows; ``HTTPError/exchange`` is the last one.
        public static let tooManyRedirects = Code(rawValue: "tooManyRedirects")
        /// A redirect that must not be followed: from https to http, to another scheme, or to no place that makes sense;
        /// ``HTTPError/exchange`` is the redirect.
        public static let redirectRefused = Code(rawValue: "redirectRefused")
        /// The server failed to prove that it knows the password (RFC 7616 §3.5).
        public static let authenticationFailed = Code(rawValue: "authenticationFailed")
        /// A body that can be read only once would have to be sent again.
        public static let bodyNotReplayable = Code(rawValue: "bodyNotReplayable")
        /// The body's source gave more or less than its length.
        public static let bodyLengthMismatch = Code(rawValue: "bodyLengthMismatch")
        /// The source of the request's body threw; ``HTTPError/underlying`` is what.
        public static let bodySourceFailed = Code(rawValue: "bodySourceFailed")
        /// A file could not be read, written or published.
        public static let fileFailed = Code(rawValue: "fileFailed")
        /// The disk, a quota, or the limit on the size of files has no room for more.
        public static let diskFull = Code(rawValue: "diskFull")
        /// There is a file of that name, and it may not be replaced.
        public static let fileExists = Code(rawValue: "fileExists")
        /// The same file or folder is in use, by this process or another one.
        public static let alreadyInProgress = Code(rawValue: "alreadyInProgress")
        /// A stored body turned out damaged when a part of it had been delivered. Its entry was removed. The core sends the
        /// request of such a response again.
        public static let storedBodyDamaged = Code(rawValue: "storedBodyDamaged")
        /// The session was invalidated.
        public static let sessionInvalidated = Code(rawValue: "sessionInvalidated")
        /// The system refused a resource, such as a descriptor.
        public static let systemFailed = Code(rawValue: "systemFailed")
    }

    /// The step a call is in.
    public enum Phase: String, Hashable, Sendable {
        /// Nothing has happened on the network.
        case preparing
        /// Waiting for a connection to become free.
        case waitingForConnection
        /// Looking up the name.
        case resolving
        /// Connecting.
        case connecting
        /// Waiting for a proxy to open the way to the server.
        case tunnelling
        /// TLS handshake.
        case securing
        /// Sending the request.
        case sending
        /// Waiting for the response's head.
        case awaitingHead
        /// Receiving the body.
        case receivingBody
        /// Making sense of the response.
        case evaluating
    }

    /// The clocks of ``Timeouts``.
    public enum Clock: String, Hashable, Sendable {
        /// ``Timeouts/poolWait``.
        case poolWait
        /// ``Timeouts/connect``.
        case connect
        /// ``Timeouts/head``.
        case head
        /// ``Timeouts/idle``.
        case idle
        /// ``Timeouts/total``.
        case total
    }

    /// What happened.
    public var code: Code
    /// The step it happened in.
    public var phase: Phase
    /// What was wrong and where, in words.
    public var message: String
    /// Whether any byte of the request may have reached the server.
    public var wasSent: Bool
    /// The origin of the request, such as `https://example.com:8443`.
    public var origin: String?
    /// The proxy that the failure is about, such as `http://proxy.example:3128`, without user or password; `nil` where it
    /// is about the server, or nobody.
    public var proxy: String?
    /// The clock that ran out, where one did.
    public var clock: Clock?
    /// How long the call, or the wait that a clock ended, had lasted.
    public var elapsed: Duration?
    /// How many times the request was begun.
    public var attempts: Int
    /// The error of the layer below: a ``TLSError``, ``ConnectFailure``, ``ResolutionError``, ``ProxyError``,
    /// ``HTTPURL/ParseError`` (also of a `Location`), ``StorageError``, or one that the body's source threw. A fault of the message is one of no public type: its code and
    /// its words say all.
    public var underlying: (any Error)?
    /// All attempts to connect that failed, in the order they ended.
    public var connectFailures: [ConnectFailure]
    /// The response, where its status or its body is what was wrong: the head, and the body as far as it was collected.
    public var exchange: HTTPExchange?

    /// The call whose request failed; `nil` where code of the program made the error.
    var call: ObjectIdentifier?

    /// What is known of the connection that the failed request had; `nil` where it had none, and where a response came.
    package var connection: FailedConnection?

    /// Where the bytes of a download are that was complete and could not get its name; `nil` where nothing was kept. Whoever
    /// finds them there owns them, and removes them.
    public var keptFile: FilePath?

    /// How many bytes of a download are kept, for it to go on with; `nil` where the error is about none, or nothing is kept.
    public var keptByteCount: UInt64?

    /// An error.
    public init(
        _ code: Code, phase: Phase, message: String, wasSent: Bool = false, origin: String? = nil,
        clock: Clock? = nil, elapsed: Duration? = nil, attempts: Int = 1, underlying: (any Error)? = nil,
        connectFailures: [ConnectFailure] = [], exchange: HTTPExchange? = nil, proxy: String? = nil
    ) {
        self.proxy = proxy
        self.code = code
        self.phase = phase
        self.message = message
        self.wasSent = wasSent
        self.origin = origin
        self.clock = clock
        self.elapsed = elapsed
        self.attempts = attempts
        self.underlying = underlying
        self.connectFailures = connectFailures
        self.exchange = exchange
    }

    /// Whether a clock ran out.
    public var isTimeout: Bool { code == .timedOut }

    /// Whether no connection could be opened, for whatever reason.
    public var isConnectFailure: Bool {
        switch code {
        case .resolutionFailed, .connectFailed, .proxyFailed: true
        // TLS can fail later as well: by a record that is not authentic, or a certificate refused behind the handshake.
        case .tlsFailed: !isBehindHandshake
        case .timedOut: clock == .connect
        default: false
        }
    }

    /// The same as ``description``.
    public var debugDescription: String { description }

    /// What debuggers and `dump` show: the same as ``description``, and the phase.
    public var customMirror: Mirror {
        Mirror(self, children: ["description": description, "phase": phase.rawValue])
    }

    /// The code, the origin and the message. URLs in it are without credentials.
    public var description: String {
        let place = origin.map { " (\($0))" } ?? ""
        return "\(code.rawValue)\(place): \(message)"
    }
}
