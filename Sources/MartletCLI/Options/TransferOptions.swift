import Martlet

/// What the options of one group, up to `--next`, ask for.
struct TransferOptions: Sendable {
    /// Where a body goes.
    enum Destination: Hashable, Sendable {
        /// A file of this name, or standard output for `-`.
        case named(String)
        /// A file named after the last part of the URL's path.
        case remoteName
    }

    /// A piece of the body, in the order of the command line.
    enum DataPart: Hashable, Sendable {
        /// `-d`: text, or a file without its line breaks.
        case data(String)
        /// `--data-raw`: text.
        case raw(String)
        /// `--data-binary`: text, or a file as it is.
        case binary(String)
        /// `--data-urlencode`: encoded.
        case encoded(String)
        /// `--json`: text, or a file as it is, without a separator.
        case json(String)
    }

    /// How a body is read.
    enum Reading: Hashable, Sendable {
        /// As it comes.
        case whole
        /// Line by line, each written as soon as it is there.
        case lines
        /// As a stream of events, each a JSON object on a line.
        case events
    }

    /// Whether names and passwords are looked up in a netrc.
    enum NetrcUse: Hashable, Sendable {
        case none
        /// Where the URL has none.
        case optional
        /// Whatever the URL has.
        case required
    }

    // MARK: What and where

    var urls: [String] = []
    var destinations: [Destination] = []
    var uploads: [String] = []
    var method: String?
    var isHead = false
    var putsDataInQuery = false
    var data: [DataPart] = []
    var form: [FormPart] = []
    var formQuoting = MultipartQuoting.percent
    /// Lines of `-H`, without those that came from files.
    var headerLines: [String] = []
    var userAgent: String?
    var referer: String?
    var range: String?
    var continuation: Continuation?
    var timeCondition: TimeCondition?
    /// The file of `--etag-compare`.
    var comparedTagFile: String?
    /// The file of `--etag-save`.
    var savedTagFile: String?
    var version = HTTPVersion.http11
    var isCompressed = false
    var isRaw = false
    var ignoresContentLength = false
    var keepsPath = false
    var takesBracesLiterally = false

    // MARK: What comes out

    var includesHeads = false
    var headsFile: String?
    var writeOut: String?
    var failsOnStatus = false
    var keepsBodyOnFailure = false
    var outputFolder: String?
    var usesRemoteNames = false
    var makesFolders = false
    /// Whether files get the time of `Last-Modified`.
    var keepsRemoteTime = false
    var sizeLimit: Int?

    /// Whether `-O` names files as the response proposes.
    var heedsProposedNames = false
    /// How the body is read.
    var reading = Reading.whole

    // MARK: Redirects

    var followsRedirects = false
    /// `nil` for any number.
    var redirectLimit: Int? = 50
    var statusesThatKeepMethod: Set<Int> = []
    var trustsOtherOrigins = false
    var redirectSchemes = Set(HTTPURL.Scheme.allCases)

    // MARK: Who is calling

    /// `USER:PASSWORD`, or the user alone.
    var user: String?
    var bearer: String?
    var offersBasic = false
    var offersDigest = false
    var netrc = NetrcUse.none
    var netrcFile: String?

    // MARK: Cookies

    /// Cookies of `-b` as they are sent.
    var cookies: [String] = []
    /// Files of `-b`.
    var cookieFiles: [String] = []
    var cookieOutput: String?
    var dropsSessionCookies = false

    // MARK: Retries

    var retries = RetryPlan()

    // MARK: The cache

    var cacheFolder: String?
    var isOffline = false
    /// Seconds.
    var staleIfError: Int?

    // MARK: The connection

    var connectTimeout: Duration?
    var totalTimeout: Duration?
    var continueTimeout: Duration?
    /// Bytes a second, either way; `nil` for as fast as it goes.
    var rateLimit: Int?
    /// Bytes a second below which a transfer is too slow; 0 for never.
    var speedLimit = 0
    /// For how long it must be; zero for never.
    var speedTime = Duration.zero
    var overrides: [Endpoint: [SocketAddress]] = [:]
    var redirections: [ConnectRedirection] = []
    var unixSocketPath: String?
    var interface: String?
    var families = ConnectRaceSettings.Families.any
    var attemptDelay: Duration?
    var keepAliveInterval: Duration? = .seconds(60)

    var proxy = ProxyPlan.Wish()

    // MARK: TLS

    var acceptsAnyCertificate = false
    var authorityFile: String?
    var authorityFolder: String?
    var certificate: String?
    var privateKey: String?
    var passphrase: String?
    var isPKCS12 = false
    var pinnedKeys: String?
    var revocationLists: String?
    var minimumTLS = TLSVersion.tls12
    var maximumTLS = TLSVersion.tls13
    var cipherList: String?
    var cipherSuites: String?
    var offersProtocols = true
    var usesTickets = true

    /// Whether `--json` was given, which sets two fields.
    var hasJSON: Bool {
        data.contains { if case .json = $0 { true } else { false } }
    }
}
