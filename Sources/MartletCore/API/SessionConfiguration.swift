public import Logging
#if Metrics
    public import CoreMetrics
#endif
#if Tracing
    public import Tracing
#endif

/// The library's version, by semantic versioning.
public let martletVersion = "0.1.0"

/// The settings of a session, the defaults of every call. ``RequestOptions`` overrides them for one call.
public struct SessionConfiguration: Sendable {
    /// The timeouts of a call, such as those for connecting and for the response head.
    public var timeouts = Timeouts()
    /// The maximum size of a collected body, after content codings are decoded; 16 MiB by default.
    ///
    /// The limit prevents a server from exhausting the memory. Streams and downloads to a file have no such limit.
    public var bufferedBodyLimit = ByteCount.mebibytes(16)
    /// Fields that are added to every request, unless the request sets them.
    ///
    /// `Host`, `Content-Length` and `Transfer-Encoding` depend on each request and are not taken from here. A field
    /// that cannot be sent makes every call throw; see ``HTTPHeaders``.
    public var headers = HTTPHeaders()
    /// The encoding of the parameters that calls append to the query of their URL.
    public var queryEncoding = QueryEncoding()
    /// The value of `User-Agent`; with `nil` the field is not sent.
    public var userAgent: String? = "Martlet/\(martletVersion)"
    /// Whether content codings are requested, and decoded as the body streams; `true` by default.
    ///
    /// The codings are gzip and deflate; with the package traits `Brotli` and `Zstandard` also these. If a request sets
    /// `Accept-Encoding` itself, its response is decoded only with ``RequestOptions/decompresses``.
    public var decompressesResponses = true
    /// The limits on the expansion of a compressed body.
    public var decompressionLimits = DecompressionLimits()
    /// The maximum wait of `Expect: 100-continue` for a 100 before the body is sent anyway; 1 s by default, as in curl.
    public var continueTimeout = Duration.seconds(1)
    /// The limits on the number of connections and on their lifetime.
    public var pool = PoolLimits()
    /// The bandwidth limits of bodies, in total and for each host; none by default.
    ///
    /// ``HTTPSession/setBandwidthLimits(_:)`` changes them while calls run. A view has the limits of its session.
    public var bandwidth = BandwidthLimits.none
    /// The minimum time between two requests to one origin, for example in a crawler; none by default.
    ///
    /// Requests are sent in the order in which they arrive, and the total timeout includes the wait. Responses from the
    /// cache are not delayed. A view has the interval of its session; ``HTTPSession/setRequestInterval(_:for:)``
    /// changes that of one origin.
    public var requestInterval = Duration.zero
    /// The limits on the parts of a response.
    public var wireLimits = WireLimits()
    /// The TLS settings of connections to servers.
    public var tls = TLSSettings()
    /// The proxies of calls; by default those of the environment.
    ///
    /// Ignored if ``unixSocketPath`` is set: requests are then sent directly to that socket.
    public var proxy = ProxySettings.environment
    /// The policy for redirects; by default up to 20 are followed.
    public var redirects = RedirectPolicy.follow()
    /// The policy for retries after transient failures; by default nothing is retried.
    public var retry = RetryPolicy.never
    /// The conditions under which a response is accepted, checked after all redirects and retries. With `nil` (the
    /// default) any response is accepted, also one with a status of 400 or more.
    public var validator: ResponseValidator?
    /// The middleware of each call, before the cache; the first is the outermost. Empty by default.
    public var middleware: [any HTTPMiddleware] = []
    /// The middleware of each request to the network, after the cache, also of validations in the background. Empty by
    /// default.
    ///
    /// The cache stores the responses that this middleware returns, and does not see the fields that it adds to
    /// requests: if they identify a user, set a `cachePartition`. Calls that share a transfer run it once.
    public var networkMiddleware: [any HTTPMiddleware] = []
    /// The delegate, which makes decisions in calls and is notified of their progress; `nil` by default.
    public var delegate: (any SessionDelegate)?
    /// The encoder of the values of `HTTPBody.json(_:)`; by default JSON as `JSONEncoder` writes it, with sorted names.
    public var encoder = BodyEncoder()
    /// The decoder of `HTTPExchange.decode` and of streams; by default JSON as `JSONDecoder` reads it.
    public var decoder = BodyDecoder.json()
    /// The mapper from errors of calls to a service's own errors. With `nil` (the default) calls throw ``HTTPError``.
    ///
    /// The mapper receives every ``HTTPError`` of a call, also those of ``HTTPExchange/validated()`` and `decode`,
    /// except that of an invalid URL. Downloads in parts, event streams of a session and the offline queue do not use
    /// it: their own code decides by the ``HTTPError`` whether to continue, and they end with an ``HTTPError``.
    public var errors: ErrorMapper?

    #if Metrics
        /// The factory of the metrics of calls; `nil` for the factory of `MetricsSystem` when the session is created.
        ///
        /// Available if Martlet is built with the package trait `Metrics`.
        public var metricsFactory: (any MetricsFactory)?
    #endif

    #if Tracing
        /// The tracer of calls; `nil` for the process's tracer.
        ///
        /// Available if Martlet is built with the package trait `Tracing`. Each request has header fields with which
        /// the server can continue the trace, such as `traceparent`.
        public var tracer: (any Tracer)?
    #endif

    /// The resolver of host names; by default the system's resolver, ``SystemResolver``.
    ///
    /// Views made by ``HTTPSession/with(_:)`` share the session's connections unless they assign another resolver.
    public var resolver: any Resolver {
        get { identifiedResolver.value }
        set { identifiedResolver = newValue is SystemResolver ? .systemResolver : Identified(newValue) }
    }
    private var identifiedResolver = Identified.systemResolver
    /// Addresses to use instead of a lookup, as with curl's `--resolve`. The host `*` matches any host.
    public var resolveOverrides: [Endpoint: [SocketAddress]] = [:]
    /// Hosts and ports to connect to instead of the URL's, as with curl's `--connect-to`. The first match is used. The
    /// request and TLS still use the host of the URL.
    public var connectOverrides: [ConnectOverride] = []
    /// The Unix socket to connect to instead of the network, as with curl's `--unix-socket`; `nil` by default. A
    /// leading `@` selects the abstract namespace.
    public var unixSocketPath: String?
    /// The options of Happy Eyeballs, the race between the addresses of a host (RFC 8305).
    public var happyEyeballs = HappyEyeballsOptions()
    /// The socket options of each connection.
    public var socketOptions = SocketOptions()
    /// The class of the traffic, as a hint to the network; `nil` (the default) for ordinary traffic.
    public var serviceClass: ServiceClass?
    /// The priority among requests that wait for a connection; by default that of ``serviceClass``, as in
    /// ``RequestOptions/serviceClass``, and normal without one.
    public var priority: RequestPriority {
        get { ownPriority ?? serviceClass?.priority ?? .normal }
        set { ownPriority = newValue }
    }
    private var ownPriority: RequestPriority?
    /// The order of waiting requests with the same priority; first come, first served by default.
    public var queueOrder = QueueOrder.firstComeFirstServed

    /// The logger; silent by default. Credentials and bodies are never logged.
    public var logger = Logger(label: "martlet") { _ in SwiftLogNoOpLogHandler() }

    /// A replacement for network connections, set by a mock transport.
    package var connector: (any StreamConnector)? {
        get { identifiedConnector.value }
        set { identifiedConnector = newValue == nil ? .networkConnector : Identified(newValue) }
    }
    private var identifiedConnector = Identified.networkConnector
    /// The settings that features add.
    var settings = SettingsStore()

    private init() {}

    /// The default configuration.
    public static var `default`: SessionConfiguration { SessionConfiguration() }

    /// The default configuration without TLS session resumption, by which servers could link connections to each other.
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
        settings.socket.serviceClass = serviceClass
        settings.tls.hosts = tls.hosts.inASCII { (try? URLHost(name: Array($0.utf8)[...]))?.text }
        settings.proxyAuthenticator = SessionProxyAuthenticator()
        settings.proxyUserAgent = headers[.userAgent] ?? userAgent
        return settings
    }
}

/// The settings of one call that override those of its host and its session.
///
/// An option that is not set (`nil`, the default) is taken from the host, then from the session: ``merged(over:)``.
///
/// ```swift
/// let response = try await session.get(url, options: .init { $0.priority = .high })
/// ```
public struct RequestOptions: Sendable {
    /// The timeouts. An assigned timeout overrides the session's; none is assigned by default.
    public var timeouts = Timeouts()
    /// The priority among requests that wait for a connection.
    public var priority: RequestPriority?
    /// The order of waiting requests with the same priority.
    public var queueOrder: QueueOrder?
    /// The maximum size of a body collected in memory. Streams have no limit unless this is set.
    public var bodyLimit: ByteCount?
    /// Whether content codings are requested and decoded.
    ///
    /// A request's own `Accept-Encoding` is sent unchanged, and the body of the response is then decoded only if this
    /// is `true`. Codings are neither requested nor decoded for range requests.
    public var decompresses: Bool?
    /// The version in the request line; `nil` for HTTP/1.1. With HTTP/1.0, connections are not reused and bodies need
    /// a length.
    public var version: HTTPVersion?

    /// The names of fields that the session or Martlet would add, and that are not sent.
    public var omittedFields: Set<HTTPField.Name> {
        get { box?.content.omittedFields ?? [] }
        set { rare.omittedFields = newValue }
    }

    /// Whether the body is passed on as received: chunk framing and content codings are not decoded. `nil` for `false`.
    public var returnsRawBody: Bool?
    /// Whether the response's `Content-Length`, which may be wrong, is ignored; `nil` for `false`.
    ///
    /// The body then ends with the connection, unless it is chunked. Missing bytes cannot be detected, so the cache is
    /// not used. The connection is not reused.
    public var ignoresContentLength: Bool?

    /// The trailers after a chunked body (RFC 9110 §6.5). They are sent only if the body has no known length.
    public var trailers: HTTPHeaders {
        get { box?.content.trailers ?? HTTPHeaders() }
        set { rare.trailers = newValue }
    }

    /// The proxies. ``ProxySettings/environment`` is the environment at the time when the session was created.
    public var proxy: ProxySettings? {
        get { box?.content.proxy }
        set { rare.proxy = newValue }
    }

    /// The policy for redirects.
    public var redirects: RedirectPolicy? {
        get { box?.content.redirects }
        set { rare.redirects = newValue }
    }

    /// The policy for retries after transient failures.
    public var retry: RetryPolicy? {
        get { box?.content.retry }
        set { rare.retry = newValue }
    }

    /// The request's `Idempotency-Key`, by which a server recognizes a repetition; `nil` for none. With a key, requests
    /// of any method are retried. All attempts of the call use the same key.
    public var idempotencyKey: IdempotencyKey? {
        get { box?.content.idempotencyKey }
        set { rare.idempotencyKey = newValue }
    }

    /// The conditions under which the response is accepted; ``ResponseValidator/anything`` for no conditions.
    public var validator: ResponseValidator? {
        get { box?.content.validator }
        set { rare.validator = newValue }
    }

    /// A closure that receives each interim response (1xx, RFC 9110 §15.2) when it arrives, also while the body of the
    /// request is being sent; `nil` (the default) for none.
    ///
    /// It is called once for each response, including 100, in order, and before the call returns; also before a
    /// redirect or a retry. It runs in the task that receives the response, which holds a connection, so it must return
    /// quickly. It may cancel the call. A response from the cache has none; of calls that share a transfer, only the
    /// one that started it receives them. A download in segments may call the closure concurrently. Responses of a
    /// proxy to CONNECT are not reported. With a closure, a million 104 are accepted; such options cannot be encoded.
    public var onInterimResponse: (@Sendable (HTTPResponse) -> Void)? {
        get { box?.content.onInterimResponse }
        set { rare.onInterimResponse = newValue }
    }

    /// The class of the call's traffic, as a hint to the network. It overrides ``SessionConfiguration/serviceClass``.
    ///
    /// A connection gets the class of each call that uses it, so that calls of different classes can share connections.
    /// Unless ``priority`` is set, the class also sets the call's priority in the queue for a connection: low for
    /// ``ServiceClass/background``, normal for ``ServiceClass/bestEffort``, and high for all others.
    public var serviceClass: ServiceClass? {
        get { box?.content.serviceClass }
        set { rare.serviceClass = newValue }
    }

    /// The bandwidth limit of the call's bodies, in addition to the limits of the session; none by default.
    public var bandwidth: BandwidthLimit {
        get { box?.content.bandwidth ?? .none }
        set { rare.bandwidth = newValue }
    }

    /// The group of calls whose common bandwidth limit replaces ``bandwidth``.
    package var bandwidthGroup: BandwidthGroup? {
        get { box?.content.bandwidthGroup }
        set { rare.bandwidthGroup = newValue }
    }

    /// Whether a request whose method is not idempotent may be sent again on a new connection after a reused one turned
    /// out to be closed. `nil` for `false` (RFC 9110 §9.2.2).
    ///
    /// A request with an `Idempotency-Key`, or of which no byte was written, may be sent again without this option.
    public var allowsResendingNonIdempotentMethods: Bool?

    /// The options that few calls set. They are stored apart, because options are copied often.
    fileprivate struct Rare: Sendable {
        var omittedFields: Set<HTTPField.Name> = []
        var trailers = HTTPHeaders()
        var proxy: ProxySettings?
        var redirects: RedirectPolicy?
        var retry: RetryPolicy?
        var idempotencyKey: IdempotencyKey?
        var validator: ResponseValidator?
        var onInterimResponse: (@Sendable (HTTPResponse) -> Void)?
        var serviceClass: ServiceClass?
        var bandwidth = BandwidthLimit.none
        var bandwidthGroup: BandwidthGroup?
        var settings = SettingsStore()
    }

    /// One reference to the rare options, so that a copy of options is cheap.
    private final class Box: Sendable {
        let content: Rare

        init(_ content: Rare) { self.content = content }
    }

    private var box: Box?

    /// Used only by setters. Getters read ``box``, so that reading an option that is not set allocates nothing.
    private var rare: Rare {
        get { box?.content ?? Rare() }
        set { box = Box(newValue) }
    }

    var hasTrailers: Bool { box.map { !$0.content.trailers.isEmpty } ?? false }

    /// Whether the options of the call itself require a stage.
    var hasStages: Bool { box.map { $0.content.retry != nil || $0.content.settings.hasStages } ?? false }

    /// The settings that features add.
    var settings: SettingsStore {
        get { box?.content.settings ?? SettingsStore() }
        set { rare.settings = newValue }
    }

    /// Creates options that override nothing.
    public init() {}

    /// Creates options with a closure that sets some of them.
    public init(_ change: (inout RequestOptions) -> Void) { change(&self) }

    /// Creates options that override the given settings.
    public init(
        timeouts: Timeouts = Timeouts(), priority: RequestPriority? = nil, bodyLimit: ByteCount? = nil,
        decompresses: Bool? = nil, redirects: RedirectPolicy? = nil, retry: RetryPolicy? = nil,
        idempotencyKey: IdempotencyKey? = nil, validator: ResponseValidator? = nil
    ) {
        (self.timeouts, self.priority) = (timeouts, priority)
        (self.bodyLimit, self.decompresses) = (bodyLimit, decompresses)
        guard redirects != nil || retry != nil || idempotencyKey != nil || validator != nil else { return }
        rare = Rare(redirects: redirects, retry: retry, idempotencyKey: idempotencyKey, validator: validator)
    }

    /// Returns these options; options that are not set here are taken from `base`, such as the options of a host.
    ///
    /// Timeouts, the directions of ``bandwidth``, the fields of ``trailers`` by name, and the settings of features are
    /// merged one by one. ``omittedFields`` are those of both. A policy (``redirects``, ``retry``, ``proxy``,
    /// ``validator``, credentials) and a closure are replaced as a whole.
    public func merged(over base: RequestOptions) -> RequestOptions {
        var merged = self
        merged.timeouts = timeouts.merged(over: base.timeouts)
        merged.priority = priority ?? base.priority
        merged.queueOrder = queueOrder ?? base.queueOrder
        merged.bodyLimit = bodyLimit ?? base.bodyLimit
        merged.decompresses = decompresses ?? base.decompresses
        merged.version = version ?? base.version
        merged.returnsRawBody = returnsRawBody ?? base.returnsRawBody
        merged.ignoresContentLength = ignoresContentLength ?? base.ignoresContentLength
        merged.allowsResendingNonIdempotentMethods =
            allowsResendingNonIdempotentMethods ?? base.allowsResendingNonIdempotentMethods
        switch (box, base.box) {
        case (let own?, let other?): merged.box = Box(own.content.merged(over: other.content))
        case (nil, let other): merged.box = other
        case (_?, nil): break
        }
        return merged
    }
}

extension RequestOptions.Rare {
    fileprivate func merged(over base: Self) -> Self {
        var merged = self
        merged.omittedFields.formUnion(base.omittedFields)
        for field in base.trailers where !trailers.contains(field.name) { merged.trailers.append(field) }
        merged.proxy = proxy ?? base.proxy
        merged.redirects = redirects ?? base.redirects
        merged.retry = retry ?? base.retry
        merged.idempotencyKey = idempotencyKey ?? base.idempotencyKey
        merged.validator = validator ?? base.validator
        merged.onInterimResponse = onInterimResponse ?? base.onInterimResponse
        merged.serviceClass = serviceClass ?? base.serviceClass
        merged.bandwidth.upload = bandwidth.upload ?? base.bandwidth.upload
        merged.bandwidth.download = bandwidth.download ?? base.bandwidth.download
        merged.bandwidthGroup = bandwidthGroup ?? base.bandwidthGroup
        merged.settings = settings.merged(over: base.settings)
        return merged
    }
}

/// The versions of HTTP that Martlet uses.
public enum HTTPVersion: String, Hashable, Sendable, Codable {
    /// HTTP/1.0 (RFC 1945), for servers without HTTP/1.1.
    case http10 = "1.0"
    /// HTTP/1.1 (RFC 9112), the default.
    case http11 = "1.1"
}

/// The key by which a server recognizes repetitions of a request (`Idempotency-Key`,
/// draft-ietf-httpapi-idempotency-key-header).
public struct IdempotencyKey: Hashable, Sendable {
    /// The text of the key; `nil` if it is generated for each call.
    package let text: String?
    /// A key of 128 random bits, generated for each call.
    public static let random = IdempotencyKey()

    /// Creates a key with the given text.
    public init(_ text: String) { self.text = text }

    /// Returns a key with the given text.
    public static func value(_ text: String) -> IdempotencyKey { IdempotencyKey(text) }

    private init() { text = nil }

    /// Returns the fields with the key added, unless they contain one.
    func added(to fields: HTTPFields) throws(HTTPError) -> HTTPFields {
        guard !fields.contains(.idempotencyKey) else { return fields }
        var headers = HTTPHeaders(fields)
        headers[.idempotencyKey] =
            text
            ?? (0..<2).map { _ in
                let digits = String(UInt64.random(in: 0 ... .max), radix: 16)
                return String(repeating: "0", count: 16 - digits.count) + digits
            }.joined()
        return try headers.validated()
    }
}

/// A number of bytes, written as `.mebibytes(16)`.
public struct ByteCount: Hashable, Sendable, Codable, Comparable, ExpressibleByIntegerLiteral, CustomStringConvertible {
    /// The number of bytes; a negative number counts as 0.
    public var bytes: Int { didSet { bytes = max(0, bytes) } }

    /// Creates a count; a negative number counts as 0.
    public init(_ bytes: Int) { self.bytes = max(0, bytes) }

    /// Creates a count from a literal.
    public init(integerLiteral value: Int) { self.init(value) }

    /// Returns a count of bytes.
    public static func bytes(_ count: Int) -> ByteCount { ByteCount(count) }

    /// Returns a count of 1,024-byte units (KiB).
    public static func kibibytes(_ count: Int) -> ByteCount { ByteCount(product(count, 1 << 10)) }

    /// Returns a count of 1,048,576-byte units (MiB).
    public static func mebibytes(_ count: Int) -> ByteCount { ByteCount(product(count, 1 << 20)) }

    /// Returns a count of 1,073,741,824-byte units (GiB).
    public static func gibibytes(_ count: Int) -> ByteCount { ByteCount(product(count, 1 << 30)) }

    /// A count without a limit.
    public static let unlimited = ByteCount(.max)

    /// The count in the largest suitable unit, rounded down: `999 B`, `1.5 KiB`, `12.0 MiB`; or `unlimited`.
    public var description: String {
        if self == .unlimited { return "unlimited" }
        if bytes < 1024 { return "\(bytes) B" }
        var (value, units) = (Double(bytes) / 1024, ["KiB", "MiB", "GiB", "TiB"][...])
        while value >= 1024, units.count > 1 { (value, units) = (value / 1024, units.dropFirst()) }
        let tenths = Int((value * 10).rounded(.down))
        return "\(tenths / 10).\(tenths % 10) \(units[units.startIndex])"
    }

    /// Orders by number.
    public static func < (left: ByteCount, right: ByteCount) -> Bool { left.bytes < right.bytes }

    /// Decodes a count of bytes.
    /// - Throws: `DecodingError.dataCorrupted` for a negative number.
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

extension ServiceClass {
    /// The priority of calls of this class in the queue for a connection.
    var priority: RequestPriority {
        switch self {
        case .background: .low
        case .bestEffort: .normal
        default: .high
        }
    }
}
