public import Logging
#if Metrics
    public import CoreMetrics
#endif
#if Tracing
    public import Tracing
#endif

/// The library's version (semantic versioning).
public let martletVersion = "0.1.0"

/// The settings of a session, from which every call starts. ``RequestOptions`` overrides them for one call.
public struct SessionConfiguration: Sendable {
    /// The timeouts of a call.
    public var timeouts = Timeouts()

    /// The largest body that is collected, after content codings are decoded; 16 MiB by default.
    ///
    /// It keeps a server from filling the memory. Streaming and downloading to a file have no such limit.
    public var bufferedBodyLimit = ByteCount.mebibytes(16)

    /// Fields that every request has unless it sets them itself.
    ///
    /// `Host`, `Content-Length` and `Transfer-Encoding` depend on the single request and are not taken from here.
    public var headers = HTTPFields()

    /// The value of `User-Agent`; `nil` sends none.
    public var userAgent: String? = "Martlet/\(martletVersion)"

    /// Whether content codings are requested, and decoded as the body streams; `true` by default.
    ///
    /// They are gzip and deflate, and Brotli and Zstandard if Martlet was built with the package traits of these names.
    ///
    /// Only codings that were requested are decoded: a request that sets `Accept-Encoding` itself gets the body as it came.
    public var decompressesResponses = true

    /// The limits on the expansion of a compressed body.
    public var decompressionLimits = DecompressionLimits()
    /// How long the body of a request with `Expect: 100-continue` waits for the server's response; 1 s by default, as curl.
    public var continueTimeout = Duration.seconds(1)
    /// The limits on the number of connections and on their lifetime.
    public var pool = PoolLimits()

    /// The bandwidth limits of bodies, in total and for each host; none by default.
    ///
    /// ``HTTPSession/setBandwidthLimits(_:)`` changes them while calls run. A view has the limits of its session.
    public var bandwidth = BandwidthLimits.none

    /// The limits on the parts of a response.
    public var wireLimits = WireLimits()
    /// The TLS settings.
    public var tls = TLSSettings()

    /// The proxies of calls; by default those of the environment.
    ///
    /// If a unix domain socket is set, connections lead there, with or without a proxy.
    public var proxy = ProxySettings.environment

    /// Whether redirects are followed; up to 20 by default.
    public var redirects = RedirectPolicy.follow()
    /// Whether calls are retried after transient failures; never by default.
    public var retry = RetryPolicy.never

    /// The conditions under which a response is accepted; with `nil` (the default) any is, also one with a status of 400.
    ///
    /// They are checked at the end, after all redirects and retries.
    public var validator: ResponseValidator?

    /// The program's own steps in each call, the first outermost; none by default.
    public var middleware: [any HTTPMiddleware] = []
    /// Takes decisions in calls and is notified of their progress; `nil` by default.
    public var delegate: (any SessionDelegate)?

    /// Turns the failures of calls into a service's own errors; with `nil` (the default) calls throw ``HTTPError``.
    ///
    /// It receives every error of a running call. It does not receive a URL that cannot be parsed, nor the errors of
    /// ``HTTPExchange/validated()`` and of decoders, except those of a host that validates (``HTTPHost/validatesStatus``).
    /// Downloads in parts, event streams and the offline queue do not use it, because their errors decide whether they continue:
    /// they end with an ``HTTPError``.
    public var errorMapper: (any HTTPErrorMapping)?

    #if Metrics
        /// The factory of the metrics of calls; `nil` for that of the process when the session is made.
        ///
        /// Available if Martlet is built with the package trait `Metrics`.
        public var metricsFactory: (any MetricsFactory)?
    #endif

    #if Tracing
        /// The tracer of calls; `nil` for that of the process.
        ///
        /// Available if Martlet is built with the package trait `Tracing`. Each request carries the fields with which its
        /// server can continue the trace, such as `traceparent`.
        public var tracer: (any Tracer)?
    #endif

    /// Resolves names; the system's resolver by default, ``SystemResolver``.
    ///
    /// Views made by ``HTTPSession/with(_:)`` share the session's connections unless they assign another resolver.
    public var resolver: any Resolver {
        get { identifiedResolver.value }
        set { identifiedResolver = newValue is SystemResolver ? .systemResolver : Identified(newValue) }
    }
    private var identifiedResolver = Identified.systemResolver

    /// Addresses to use in place of a lookup, as curl's `--resolve`; the host `*` stands for any.
    public var resolveOverrides: [Endpoint: [SocketAddress]] = [:]
    /// Other places to connect to than the URL's, as curl's `--connect-to`; the first that applies is used. Names in the
    /// request and in TLS remain those of the URL.
    public var connectOverrides: [ConnectOverride] = []
    /// A unix domain socket to connect to in place of the network, as curl's `--unix-socket`; a leading `@` names one in
    /// the abstract space. `nil` by default.
    public var unixSocketPath: String?
    /// The race between the addresses of a host (RFC 8305).
    public var happyEyeballs = HappyEyeballsOptions()
    /// The options of each socket.
    public var socketOptions = SocketOptions()
    /// The priority among requests that wait for a connection.
    public var priority = RequestPriority.normal
    /// The order of waiting requests of one priority; first come, first served by default.
    public var queueOrder = QueueOrder.firstComeFirstServed

    /// The logger; silent by default. Neither credentials nor bodies are ever logged.
    public var logger = Logger(label: "martlet") { _ in SwiftLogNoOpLogHandler() }

    /// Connects in place of the network; set by a mock transport.
    package var connector: (any StreamConnector)? {
        get { identifiedConnector.value }
        set { identifiedConnector = newValue == nil ? .networkConnector : Identified(newValue) }
    }
    private var identifiedConnector = Identified.networkConnector

    /// The settings of features.
    var settings = SettingsStore()

    private init() {}

    /// The defaults.
    public static var `default`: SessionConfiguration { SessionConfiguration() }

    /// The defaults, except that nothing of a call outlives it: nothing is written to disk, and TLS sessions are not resumed, so
    /// that servers cannot link one connection to another by them.
    public static var ephemeral: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.tls.usesSessionTickets = false
        return configuration
    }

    var dialSettings: DialSettings {
        var settings = DialSettings(
            resolver: identifiedResolver, overrides: resolveOverrides, redirections: connectOverrides,
            unixSocketPath: unixSocketPath, race: happyEyeballs, socket: socketOptions, tls: tls,
            connector: identifiedConnector)
        settings.tls.hosts = tls.hosts.inASCII { (try? URLHost(name: Array($0.utf8)[...]))?.text }
        settings.proxyAuthenticator = SessionProxyAuthenticator()
        settings.proxyUserAgent = headers[.userAgent] ?? userAgent
        return settings
    }
}

/// The five timeouts of a call. Each is independent of the others; `nil` disables one.
///
/// The error of a timeout names it, the phase the call was in, and the time waited.
public struct Timeouts: Hashable, Sendable, Codable {
    /// The wait for a connection to become free if the limits forbid opening one; no limit by default, since
    /// each call before is bounded by its own timeouts.
    public var poolWait: Duration?
    /// Opening a connection: name, TCP, proxy and TLS together; 10 s by default (Go 30 s, curl 300 s).
    public var connect: Duration? = .seconds(10)
    /// The wait for the head of the response after the last byte of the request; 60 s by default.
    public var head: Duration? = .seconds(60)
    /// The time in which no byte moves while a body is sent or received; 60 s by default.
    public var idle: Duration? = .seconds(60)
    /// The whole call including the body; no limit by default.
    public var total: Duration?

    /// The default timeouts.
    public init() {}

    /// Creates timeouts; arguments that are not given have their defaults.
    public init(
        poolWait: Duration? = nil, connect: Duration? = .seconds(10), head: Duration? = .seconds(60),
        idle: Duration? = .seconds(60), total: Duration? = nil
    ) {
        self.poolWait = poolWait
        self.connect = connect
        self.head = head
        self.idle = idle
        self.total = total
    }

    private enum CodingKeys: String, CodingKey { case poolWait, connect, head, idle, total }

    /// Decodes timeouts; one that is missing is disabled.
    /// - Throws: `DecodingError.dataCorrupted` for a negative one.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        poolWait = try container.duration(.poolWait)
        connect = try container.duration(.connect)
        head = try container.duration(.head)
        idle = try container.duration(.idle)
        total = try container.duration(.total)
    }
}

/// The settings of one call that override those of its session. Those that are `nil` are the session's.
public struct RequestOptions: Sendable {
    /// The timeouts.
    public var timeouts: Timeouts?
    /// The priority among requests that wait for a connection.
    public var priority: RequestPriority?
    /// The order among waiting requests of one priority.
    public var queueOrder: QueueOrder?
    /// The largest body that is collected in memory. Streams have no limit unless this is set.
    public var bodyLimit: ByteCount?

    /// Whether content codings are requested and decoded.
    ///
    /// A request with its own `Accept-Encoding` keeps it, and gets the body as it came, unless this is `true`. Codings are
    /// neither requested nor decoded for ranges.
    public var decompresses: Bool?

    /// The version in the request line; HTTP/1.1 by default. Under HTTP/1.0 the connection is not reused, and a body needs
    /// a length.
    public var version = HTTPVersion.http11

    /// Fields of the session, or of Martlet's own, that are not sent.
    public var omittedFields: Set<HTTPField.Name> {
        get { box?.content.omittedFields ?? [] }
        set { rare.omittedFields = newValue }
    }

    /// Whether the body is passed on as it is on the wire: chunk framing and content codings are not decoded.
    public var returnsRawBody = false

    /// Whether the response's `Content-Length` is ignored: its body ends with the connection, unless it is chunked;
    /// `false` by default.
    ///
    /// It is for servers that announce a wrong length. Missing bytes cannot be noticed then, so the cache is not used, and the
    /// connection is not reused.
    public var ignoresContentLength = false

    /// Fields that follow a chunked body (RFC 9110 §6.5). They are sent only if the body has no known length.
    public var trailers: HTTPFields {
        get { box?.content.trailers ?? HTTPFields() }
        set { rare.trailers = newValue }
    }

    /// The proxies. ``ProxySettings/environment`` is the environment that the session read when it was made.
    public var proxy: ProxySettings? {
        get { box?.content.proxy }
        set { rare.proxy = newValue }
    }

    /// Whether redirects are followed.
    public var redirects: RedirectPolicy? {
        get { box?.content.redirects }
        set { rare.redirects = newValue }
    }

    /// Whether the call is retried after transient failures.
    public var retry: RetryPolicy? {
        get { box?.content.retry }
        set { rare.retry = newValue }
    }

    /// The request's `Idempotency-Key`, by which a server recognizes a repetition: requests with it are retried whatever their
    /// method. All attempts of the call have the same; `nil` for none.
    public var idempotencyKey: IdempotencyKey? {
        get { box?.content.idempotencyKey }
        set { rare.idempotencyKey = newValue }
    }

    /// The conditions under which the response is accepted; ``ResponseValidator/anything`` for none.
    public var validator: ResponseValidator? {
        get { box?.content.validator }
        set { rare.validator = newValue }
    }

    /// The bandwidth limit of the call's bodies, besides the limits of the session; none by default.
    public var bandwidth: BandwidthLimit {
        get { box?.content.bandwidth ?? .none }
        set { rare.bandwidth = newValue }
    }

    /// The calls that share one bandwidth limit with this one, in place of ``bandwidth``.
    package var bandwidthGroup: BandwidthGroup? {
        get { box?.content.bandwidthGroup }
        set { rare.bandwidthGroup = newValue }
    }

    /// Whether a request may be sent again on a fresh connection when a reused one turns out dead, though its
    /// method is not idempotent; `false` by default (RFC 9110 §9.2.2).
    ///
    /// A request with an `Idempotency-Key` field may be in any case, and one of which no byte was written always is.
    public var allowsResendingNonIdempotentMethods = false

    /// The options that few calls set and that take more than a byte: options are copied often, and held by the frames of waiting
    /// calls.
    private struct Rare: Sendable {
        var omittedFields: Set<HTTPField.Name> = []
        var trailers = HTTPFields()
        var proxy: ProxySettings?
        var redirects: RedirectPolicy?
        var retry: RetryPolicy?
        var idempotencyKey: IdempotencyKey?
        var validator: ResponseValidator?
        var bandwidth = BandwidthLimit.none
        var bandwidthGroup: BandwidthGroup?
        var settings = SettingsStore()
    }

    /// One reference to them, so that a copy of options is cheap.
    private final class Box: Sendable {
        let content: Rare

        init(_ content: Rare) { self.content = content }
    }

    private var box: Box?

    /// For changes alone: to read an option that was not set, nothing is made.
    private var rare: Rare {
        get { box?.content ?? Rare() }
        set { box = Box(newValue) }
    }

    /// Whether the call itself adds a stage.
    var hasStages: Bool { box.map { $0.content.retry != nil || $0.content.settings.hasStages } ?? false }

    /// The settings of features.
    var settings: SettingsStore {
        get { box?.content.settings ?? SettingsStore() }
        set { rare.settings = newValue }
    }

    /// Creates options that override nothing.
    public init() {}

    /// Creates options that override what is given.
    public init(
        timeouts: Timeouts? = nil, priority: RequestPriority? = nil, bodyLimit: ByteCount? = nil,
        decompresses: Bool? = nil, redirects: RedirectPolicy? = nil, retry: RetryPolicy? = nil,
        idempotencyKey: IdempotencyKey? = nil, validator: ResponseValidator? = nil
    ) {
        self.timeouts = timeouts
        self.priority = priority
        self.bodyLimit = bodyLimit
        self.decompresses = decompresses
        guard redirects != nil || retry != nil || idempotencyKey != nil || validator != nil else { return }
        rare = Rare(redirects: redirects, retry: retry, idempotencyKey: idempotencyKey, validator: validator)
    }
}

/// The versions of HTTP that Martlet uses.
public enum HTTPVersion: String, Hashable, Sendable, Codable {
    /// HTTP/1.0 (RFC 1945), for servers that know nothing newer.
    case http10 = "1.0"
    /// HTTP/1.1 (RFC 9112).
    case http11 = "1.1"
}

/// The key by which a server recognizes repetitions of a request (`Idempotency-Key`,
/// draft-ietf-httpapi-idempotency-key-header).
public struct IdempotencyKey: Hashable, Sendable {
    /// The key; `nil` for one that is drawn for each call.
    package let text: String?
    /// A key of 128 random bits, drawn for each call.
    public static let random = IdempotencyKey(text: nil)

    /// A key of one's own.
    public static func value(_ text: String) -> IdempotencyKey { IdempotencyKey(text: text) }

    /// The fields with the key, unless they have one.
    func added(to fields: HTTPFields) -> HTTPFields {
        guard !fields.contains(.idempotencyKey) else { return fields }
        var fields = fields
        fields[.idempotencyKey] =
            text
            ?? (0..<2).map { _ in
                let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }.joined()
        return fields
    }
}

/// A number of bytes, written as `.mebibytes(16)`.
public struct ByteCount: Hashable, Sendable, Codable, Comparable, ExpressibleByIntegerLiteral {
    /// The number of bytes; a negative number counts as 0.
    public var bytes: Int { didSet { bytes = max(0, bytes) } }

    /// Creates a count; a negative number counts as 0.
    public init(_ bytes: Int) { self.bytes = max(0, bytes) }

    /// Creates a count from a literal.
    public init(integerLiteral value: Int) { self.init(value) }

    /// A number of bytes.
    public static func bytes(_ count: Int) -> ByteCount { ByteCount(count) }

    /// A number of times 1,024 bytes.
    public static func kibibytes(_ count: Int) -> ByteCount { ByteCount(product(count, 1 << 10)) }

    /// A number of times 1,048,576 bytes.
    public static func mebibytes(_ count: Int) -> ByteCount { ByteCount(product(count, 1 << 20)) }

    /// A number of times 1,073,741,824 bytes.
    public static func gibibytes(_ count: Int) -> ByteCount { ByteCount(product(count, 1 << 30)) }

    /// No limit.
    public static let unlimited = ByteCount(.max)

    /// Orders by number.
    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }

    /// Decodes a number of bytes.
    /// - Throws: `DecodingError.dataCorrupted` for a negative one.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        bytes = try container.decode(Int.self, forKey: .bytes)
        guard bytes >= 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .bytes, in: container, debugDescription: "a number of bytes must not be negative")
        }
    }

    private enum CodingKeys: String, CodingKey { case bytes }

    private static func product(_ count: Int, _ unit: Int) -> Int {
        let (value, overflow) = count.multipliedReportingOverflow(by: unit)
        return overflow ? .max : value
    }
}
