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

    // MARK: What and where

    var urls: [String] = []
    var destinations: [Destination] = []
    var uploads: [String] = []
    var method: String?
    var isHead = false
    var putsDataInQuery = false
    var data: [DataPart] = []
    /// Lines of `-H`, without those that came from files.
    var headerLines: [String] = []
    var userAgent: String?
    var referer: String?
    var range: String?
    var version = HTTPVersion.http11
    var isCompressed = false
    var isRaw = false
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
    var sizeLimit: Int?

    // MARK: The connection

    var connectTimeout: Duration?
    var totalTimeout: Duration?
    var continueTimeout: Duration?
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
