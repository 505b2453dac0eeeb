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
