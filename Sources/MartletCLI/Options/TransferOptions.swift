import Martlet

/// The options of one group of the command line, up to `--next`.
struct TransferOptions: Sendable {
    enum Destination: Hashable, Sendable {
        /// A file of this name, or standard output for `-`.
        case named(String)
        /// A file named after the last part of the URL's path.
        case remoteName
    }

    /// A part of the request body, in the order of the command line.
    enum DataPart: Hashable, Sendable {
        /// `-d`: text, or a file without its line breaks.
        case data(String)
        /// `--data-raw`: unchanged text.
        case raw(String)
        /// `--data-binary`: text, or an unchanged file.
        case binary(String)
        /// `--data-urlencode`: text that is percent-encoded.
        case encoded(String)
        /// `--json`: text, or an unchanged file. Joined to the previous part without a separator.
        case json(String)
    }

    enum Reading: Hashable, Sendable {
        case whole
        /// Line by line, each written as soon as it arrives.
        case lines
        /// As an event stream, each event a JSON object on a line.
        case events
    }

    /// Whether names and passwords are looked up in a netrc.
    enum NetrcUse: Hashable, Sendable {
        case none
        case optional
        case required
    }

    var global = GlobalOptions()
    var download = DownloadCommandOptions()
    var queue = QueueCommandOptions()
    var upload = UploadCommandOptions()
    var webSocket = WebSocketCommandOptions()
    /// The values of options as they were given, including those that were replaced later.
    var given: [(option: String, value: String)] = []

    // MARK: Request and destination

    var urls: [String] = []
    var destinations: [Destination] = []
    var uploads: [String] = []
    var method: String?
    var isHead = false
    var putsDataInQuery = false
    var data: [DataPart] = []
    var form: [FormPart] = []
    var formQuoting = MultipartQuoting.percent
    var headerLines: [String] = []
    var userAgent: String?
    var referer: String?
    var range: String?
    var continuation: Continuation?
    var timeCondition: TimeCondition?
    var comparedTagFile: String?
    var savedTagFile: String?
    var version = HTTPVersion.http11
    var isCompressed = false
    var isRaw = false
    var ignoresContentLength = false
    var keepsPath = false
    var disablesGlobbing = false

    // MARK: Output

    var includesHeads = false
    var headsFile: String?
    var writeOut: String?
    var failsOnStatus = false
    var keepsBodyOnFailure = false
    var outputDirectory: String?
    var usesRemoteNames = false
    var makesDirectories = false
    /// Whether `download` creates missing directories: with `--create-dirs`, `--dir` or `--output-dir`.
    var makesDownloadDirectories: Bool { makesDirectories || download.directory != nil }
    var preservesModificationTime = false
    /// The maximum size of a body, in bytes; `nil` for no limit.
    var sizeLimit: Int?
    var usesRemoteHeaderName = false
    var reading = Reading.whole

    var redirects = RedirectPolicy.curl(limit: 50)

    // MARK: Credentials

    /// `USER:PASSWORD`, or the user only.
    var user: String?
    var bearer: String?
    var offersBasic = false
    var offersDigest = false
    var netrc = NetrcUse.none
    var netrcFile: String?
    /// The cookies of `-b`, sent unchanged.
    var cookies: [String] = []
    var cookieFiles: [String] = []
    var cookieOutput: String?
    var dropsSessionCookies = false
    /// The file of `--hsts`; empty for a store in memory.
    var hstsFile: String?

    var retries = RetryPlan()

    var cacheDirectory: String?
    var isOffline = false
    /// The time for which a stale response may replace an error, in seconds.
    var staleIfError: Int?

    // MARK: The connection

    var connectTimeout: Duration?
    var totalTimeout: Duration?
    var continueTimeout: Duration?
    /// The maximum rate in each direction, in bytes per second; `nil` for no limit.
    var rateLimit: Int?
    /// The rate below which a transfer is too slow, in bytes per second; 0 for never.
    var speedLimit = 0
    /// The period over which the speed is measured; zero for never.
    var speedTime = Duration.zero
    /// The session configuration that some options set directly.
    var session = SessionConfiguration.default
    var proxy = ProxyPlan.Options()

    // MARK: TLS

    var acceptsAnyCertificate = false
    var authorityFile: String?
    var authorityDirectory: String?
    var certificate: String?
    var privateKey: String?
    var passphrase: String?
    var isPKCS12 = false
    var pinnedKeys: String?
    var revocationLists: String?

    var dataType: String { hasJSON ? "application/json" : "application/x-www-form-urlencoded" }

    /// Whether `--json` was given, which sets two header fields.
    var hasJSON: Bool { data.contains { if case .json = $0 { true } else { false } } }
}

extension RedirectPolicy {
    /// A policy that initially follows no redirects. As in curl, redirects may lead to any host, and from https to
    /// http, because secrets are sent only to their origin.
    static func curl(limit: Int) -> RedirectPolicy {
        var policy = follow(limit: limit)
        policy.followsRedirects = false
        policy.allowsDowngrade = true
        return policy
    }
}
