import MartletContent
import MartletURL
public import Logging
import MartletTransport
#if Metrics
    public import CoreMetrics
#endif
#if Tracing
    public import Tracing
#endif

/// The library's version, as semantic versioning has it.
public let martletVersion = "0.1.0"

/// The settings of a session: what every call starts from. Each call can override what concerns it alone.
public struct SessionConfiguration: Sendable {
    /// The clocks of a call.
    public var timeouts = Timeouts()

    /// The largest body that is collected in memory, after content coding is undone; 16 MiB by default.
    ///
    /// It stops a server from filling the memory. Streaming and downloading to a file have no such limit.
    public var bufferedBodyLimit = ByteCount.mebibytes(16)

    /// Fields that every request has unless it sets them itself.
    ///
    /// `Host`, `Content-Length` and `Transfer-Encoding` depend on the single request and are not taken from here.
    public var headers = HTTPFields()

    /// What `User-Agent` says; `nil` sends none.
    public var userAgent: String? = "Martlet/\(martletVersion)"

    /// Whether content codings are asked for and undone as the body streams; `true` by default.
    ///
    /// They are gzip and deflate, and Brotli and Zstandard where Martlet was built with the package traits of these names.
    ///
    /// Nothing is undone that was not asked for: a request that sets `Accept-Encoding` itself gets the body as it came.
    public var decompressesResponses = true

    /// The bounds on what a compressed body may expand to.
    public var decompressionLimits = DecompressionLimits()

    /// How long the body of a request with `Expect: 100-continue` waits for the server's word; 1 s by default, as curl.
    public var continueTimeout = Duration.seconds(1)

    /// How many connections there may be, and for how long.
    public var pool = PoolLimits()

    /// How fast bodies may go, all together and for each host; as fast as they can by default.
    ///
    /// It is changed while calls run by ``HTTPSession/setBandwidthLimits(_:)``. A view has the limits of its session.
    public var bandwidth = BandwidthLimits.none

    /// What a response may look like before it is refused.
    public var wireLimits = WireLimits()

    /// What TLS demands and offers.
    public var tls = TLSSettings()

    /// Whether calls go through a proxy; by default as the environment says.
    ///
    /// A unix domain socket, where one is set, is where connections lead, proxy or not.
    public var proxy = ProxySettings.environment

    /// Whether redirects are followed; up to 20 by default.
    public var redirects = RedirectPolicy.follow()

    /// Whether calls that failed for a passing reason are made again; never by default.
    public var retry = RetryPolicy.never

    /// What each answer must be to be taken; `nil`, the default, takes any, and a status of 400 is an answer.
    ///
    /// It is asked when everything else is over: redirects were followed, and what could be tried again was.
    public var validator: ResponseValidator?

    /// The program's own steps in each call, the first outermost; none by default.
    public var middleware: [any HTTPMiddleware] = []

    /// What accompanies calls, is asked and told; nothing by default.
    public var delegate: (any SessionDelegate)?

    /// What turns the failures of calls into a service's own errors; nothing by default, and calls throw ``HTTPError``.
    ///
    /// It is asked for whatever a call that runs fails with. A URL that cannot be parsed is told to the caller as it is, and
    /// so is what an exchange in memory turns out to be, by ``HTTPExchange/validated()`` or its decoders; a host maps these,
    /// where it validates (``HTTPHost/validatesStatus``). Downloads in parts, event streams and the offline queue decide by
    /// what went wrong whether they go on, and do not ask it: they end with an ``HTTPError``.
    public var errorMapper: (any HTTPErrorMapping)?

    #if Metrics
        /// What calls are counted with; `nil` for the factory of the process, as it is when the session is made.
        ///
        /// There where Martlet is built with the package trait `Metrics`.
        public var metricsFactory: (any MetricsFactory)?
    #endif

    #if Tracing
        /// What makes the spans of calls; `nil` for the tracer of the process.
        ///
        /// There where Martlet is built with the package trait `Tracing`. Each request carries the fields by which its
        /// server can go on with the trace, such as `traceparent`.
        public var tracer: (any Tracer)?
    #endif

    /// Looks names up; the system's resolver by default, ``SystemResolver``.
    ///
    /// Views made by ``HTTPSession/with(_:)`` share the session's connections unless they assign another resolver.
    public var resolver: any Resolver {
        get { identifiedResolver.value }
        set { identifiedResolver = newValue is SystemResolver ? .systemResolver : Identified(newValue) }
    }
    private var identifiedResolver = Identified.systemResolver

    /// Addresses to use in place of a look-up, as curl's `--resolve`; the host `*` stands for any.
    public var resolveOverrides: [Endpoint: [SocketAddress]] = [:]

    /// Other places to connect to than the URL's, as curl's `--connect-to`; the first that applies counts. Names in the
    /// request and in TLS stay the URL's.
    public var connectRedirections: [ConnectRedirection] = []

    /// A unix domain socket to connect to in place of the network, as curl's `--unix-socket`; a leading `@` names one in
    /// the abstract space. `nil` by default.
    public var unixSocketPath: String?

    /// How the addresses of a host are raced (RFC 8305).
    public var connectRace = ConnectRaceSettings()

    /// What is set on each socket.
    public var socketOptions = SocketOptions()

    /// Who goes first when requests wait for a connection.
    public var priority = RequestPriority.normal

    /// Which of the requests of one priority goes first; first come, first served by default.
    public var order = WaitingOrder.firstComeFirstServed

    /// Where the session tells what it does; silent by default. Neither credentials nor bodies are ever logged.
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

    /// The defaults, and nothing of a call outlives it: nothing is written to disk, and TLS sessions are not resumed, so
    /// that servers cannot link one connection to another by them.
    public static var ephemeral: SessionConfiguration {
        var configuration = SessionConfiguration()
        configuration.tls.usesSessionTickets = false
        return configuration
    }

    /// What the dialer is told.
    var dialSettings: DialSettings {
        var settings = DialSettings(
            resolver: identifiedResolver, overrides: resolveOverrides, redirections: connectRedirections,
            unixSocketPath: unixSocketPath, race: connectRace, socket: socketOptions, tls: tls,
            connector: identifiedConnector)
        settings.tls.hosts = tls.hosts.inASCII { (try? URLHost(name: Array($0.utf8)[...]))?.text }
        settings.proxyAuthenticator = SessionProxyAuthenticator()
        settings.proxyUserAgent = headers[.userAgent] ?? userAgent
        return settings
    }
}

/// The five clocks of a call. Each is a named limit of its own; `nil` stops that clock.
///
/// The error of a clock that ran out names it, the phase the call was in, and how long it waited.
public struct Timeouts: Hashable, Sendable, Codable {
    /// How long to wait for a connection to become free when the limits forbid opening one; no limit by default, since
    /// each call before is bounded by its own clocks.
    public var poolWait: Duration?

    /// How long opening a connection may take: name, TCP, proxy and TLS together; 10 s by default (Go 30 s, curl 300 s).
    public var connect: Duration? = .seconds(10)

    /// How long the head of the response may take, from the last byte of the request on; 60 s by default.
    public var head: Duration? = .seconds(60)

    /// How long no byte may move while a body is sent or received; 60 s by default.
    public var idle: Duration? = .seconds(60)

    /// How long the whole call may take, the body included; no limit by default.
    public var total: Duration?

    /// The default clocks.
    public init() {}

    /// Clocks; what is not given has its default.
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

    /// Reads clocks; one that is missing is stopped.
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
