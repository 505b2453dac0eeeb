import Martlet

/// Every option of `download`: its own, those it shares with `get`, and the others of `get`, which are refused by name.
enum DownloadOptionTable {
    /// The options by name and letter.
    static let commandOptions = CommandOptions(
        own + shared + refused, usage: "martlet download [options] URL… | -i FILE")

    /// What holds where nothing is said.
    static var defaults: OptionGroup {
        var group = OptionGroup()
        group.transfer.followsRedirects = true
        return group
    }

    private static let own: [CurlOption] = files + transfers + resumption + retries

    private static let files: [CurlOption] = [
        .value("output", "o", "FILE", "the file's name, for one URL; else the server's or the URL's") {
            (group, text) throws(UsageError) in
            guard text != "-" else {
                throw UsageError(
                    "option -o: a download becomes a file; “martlet get URL” writes to standard output")
            }
            guard !text.isEmpty else { throw UsageError("option -o: takes a file") }
            group.transfer.destinations.append(.named(text))
        },
        .value("dir", nil, "DIR", "the folder of the files; the working one by default") {
            (group, text) throws(UsageError) in
            guard !text.isEmpty else { throw UsageError("option --dir: takes a folder") }
            group.download.folder = text
        },
        .value("output-dir", nil, "DIR", "the same") { (group, text) throws(UsageError) in
            guard !text.isEmpty else { throw UsageError("option --output-dir: takes a folder") }
            group.download.folder = text
        },
        .value(
            "input-file", "i", "FILE",
            "a list: a URL a line, below it indented out=, checksum=, header= lines; - is standard input"
        ) { $0.download.lists.append($1) },
        .flag("fail-if-exists", nil, "fail where the file is there already, the default") {
            $0.download.collision = .fail
        },
        .flag("overwrite", nil, "replace a file that is there, once the new one is complete") {
            $0.download.collision = .overwrite
        },
        .flag("rename", nil, "name the file “name (1).ext” where it is there already") {
            $0.download.collision = .rename
        },
        .flag("remote-time", "R", "give the file the time of Last-Modified") {
            $0.download.keepsRemoteTime = true
        },
        .value(
            "checksum", nil, "NAME=HEX", "what the one URL must come to: sha256, sha512, sha1 or md5"
        ) { (group, text) throws(UsageError) in
            guard group.download.checksum == nil else {
                throw UsageError("option --checksum: goes with one URL; a list has a line for each")
            }
            group.download.checksum = try DownloadOptionTable.checksum(text, "option --checksum")
        },
    ]

    private static let transfers: [CurlOption] = [
        .value("segments", nil, "NUMBER", "connections for a file, 1 to 64 at the most; 4 by default") {
            (group, text) throws(UsageError) in
            group.download.segments = try OptionValues.number(text, in: 1...64, "--segments")
        },
        .value("max-files", nil, "NUMBER", "how many files come at once; 3 by default") {
            (group, text) throws(UsageError) in
            group.download.fileLimit = try OptionValues.number(
                text, in: DownloadWish.fileLimits, "--max-files")
        },
        .value("max-per-host", nil, "NUMBER", "how many of them come from one host; 2 by default") {
            (group, text) throws(UsageError) in
            group.download.fileLimitPerHost = try OptionValues.number(
                text, in: DownloadWish.fileLimits, "--max-per-host")
        },
        .value("limit-rate", nil, "BYTES", "bytes a second, all together; K, M, G may follow") {
            (group, text) throws(UsageError) in
            group.download.rate = try OptionValues.size(text, "--limit-rate")
        },
        .value("stall-timeout", nil, "SECONDS", "how long a connection may bring nothing; 30 by default") {
            (group, text) throws(UsageError) in
            group.download.stallTimeout = try OptionValues.seconds(text, "--stall-timeout")
        },
        .value("max-time", "m", "SECONDS", "how long a file may take; what has come is kept") {
            (group, text) throws(UsageError) in
            group.transfer.totalTimeout = try OptionValues.seconds(text, "-m")
        },
        .flag("location", "L", "follow redirects, the default; --no-location does not") {
            $0.transfer.followsRedirects = true
        },
        // That a status which is no success is a failure needs no asking for here.
        .flag("fail", "f") { _ in },
    ]

    private static let resumption: [CurlOption] = [
        .flag("continue", nil, "go on with what an earlier run left, the default") {
            $0.download.resumption = .automatic
        },
        .flag("restart", nil, "throw away what an earlier run left") { $0.download.resumption = .restart },
        .flag(
            "resume-unverified", nil,
            "go on also where nothing but the last 64 KiB tells that the file is the same"
        ) { $0.download.resumption = .unverified },
        .value("state", nil, "DIR", "a queue in a folder, which goes on where it was; see below") {
            (group, text) throws(UsageError) in
            guard !text.isEmpty else { throw UsageError("option --state: takes a folder") }
            group.download.stateFolder = text
        },
    ]

    private static let retries: [CurlOption] = [
        .value(
            "retry", nil, "NUMBER", "how many failures in a row are borne, without a new byte; 5 by default"
        ) { (group, text) throws(UsageError) in
            group.download.retryCount = try OptionValues.number(text, in: 0...1_000_000, "--retry")
        },
        .value(
            "retry-delay", nil, "SECONDS",
            "the longest wait after the first failure, doubled with each; 0.5 by default"
        ) { (group, text) throws(UsageError) in
            group.download.retryDelay = try OptionValues.seconds(text, "--retry-delay")
        },
        .flag("retry-connrefused", nil) { _ in },
    ]

    /// A checksum, `sha256=…`.
    static func checksum(_ text: String, _ place: String) throws(UsageError) -> Checksum {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first?.lowercased().filter { $0 != "-" } ?? ""
        guard parts.count == 2, let algorithm = DigestSink.Algorithm(rawValue: name) else {
            throw UsageError("\(place): “\(text)” is not sha256=HEX, nor of sha512, sha1 or md5")
        }
        do throws(HTTPError) {
            return try Checksum(algorithm, hexadecimal: String(parts[1]))
        } catch {
            throw UsageError("\(place): \(error.message)")
        }
    }
}

extension DownloadOptionTable {
    /// Options that mean here what they mean to `get`.
    static let shared = OptionTable.options(sharedNames, helps: helps)

    /// What the help says of them where it is another thing.
    private static let helps: [String: String] = [
        "create-dirs": "make the folders that are missing",
        "max-filesize": "refuse larger files; K, M, G may follow",
        "retry-max-time": "after how long no further try of a file begins",
        "connect-timeout": "how long opening a connection may take; 10 by default",
        "silent": "nothing on standard error",
        "verbose": "show what the session does, and every failure that passes",
        "fail-early": "stop at the first file that fails",
        "progress-bar": "bars; see below",
        "progress": "auto, bar, plain, json or none; see below",
    ]

    /// All other options of `get`. Those that it refuses itself keep their reason.
    static let refused = OptionTable.refusals(reasons, others: "makes no sense for a download")

    private static let sharedNames =
        "url header user-agent referer globoff create-dirs max-filesize"
        + " location-trusted max-redirs proto-redir"
        + " user basic digest anyauth oauth2-bearer netrc netrc-optional netrc-file"
        + " cookie cookie-jar junk-session-cookies retry-max-time"
        + " connect-timeout resolve connect-to unix-socket abstract-unix-socket interface ipv4 ipv6"
        + " happy-eyeballs-timeout-ms no-keepalive keepalive keepalive-time tcp-nodelay"
        + " proxy proxy-user proxy-basic proxy-digest proxy-anyauth noproxy proxytunnel socks5 socks5-hostname"
        + " socks5-basic proxy-cacert proxy-insecure"
        + " insecure cacert capath cert cert-type key key-type pass pinnedpubkey crlfile tlsv1 tlsv1.2 tlsv1.3"
        + " tls-max ciphers tls13-ciphers no-alpn no-sessionid http1.1"
        + " silent show-error verbose no-buffer disable fail-early progress-bar progress-meter no-progress-meter"
        + " progress version help config"

    private static let reasons: [String: String] = [
        "request": "a download is a GET",
        "range": "a download is of the whole file",
        "compressed": "a download is of the file as it is",
        "raw": "a download is of the file as it is",
        "path-as-is": "is not supported for downloads",
        "remote-name": "a file gets the server's or the URL's name without it",
        "remote-name-all": "a file gets the server's or the URL's name without it",
        "remote-header-name": "a file gets the name that the server proposes without it",
        "continue-at": "a download goes on by itself; --restart begins anew",
        "fail-with-body": "a status that is no success is a failure, and its body no file",
        "next": "a list (-i) has lines of its own for each URL",
        "parallel": "files come side by side; --max-files says how many",
        "parallel-max": "--max-files says how many files come at once",
        "parallel-immediate": "files come side by side; --max-files says how many",
        "speed-limit": "--stall-timeout says how long nothing may come",
        "speed-time": "--stall-timeout says how long nothing may come",
        "retry-all-errors": "downloads are tried again after passing failures alone",
        "time-cond": "what is there already is compared by itself",
        "etag-save": "what is there already is compared by itself",
        "etag-compare": "what is there already is compared by itself",
        "har": "is of get alone",
        "timeline": "is of get alone",
        "cache": "downloads pass the cache by",
        "offline": "downloads pass the cache by",
        "stale-if-error": "downloads pass the cache by",
    ]
}
