import Martlet

/// Every option of `queue run`: its own, those of `get` for credentials, connections and redirects, and the others of `get`,
/// which are refused by name.
enum QueueRunOptionTable {
    /// The options by name and letter.
    static let commandOptions = CommandOptions(
        own + OptionTable.options(sharedNames, helps: helps)
            + OptionTable.refusals(reasons, others: "makes no sense for a queue"),
        usage: "martlet queue run [options]")

    /// What holds where nothing is said.
    static var defaults: OptionGroup {
        var group = OptionGroup()
        group.transfer.followsRedirects = true
        // What is told goes on to where it belongs.
        group.transfer.statusesThatKeepMethod = [301]
        return group
    }

    private static let own: [CurlOption] = [
        QueueOptions.directory,
        .flag("until-empty", nil, "end when nothing waits any more") { $0.queue.endsWhenEmpty = true },
        .flag(
            "accept-redirects", nil,
            "count the page to which a 302 or 303 leads after a POST as its response; else the POST was not delivered"
        ) { $0.queue.acceptsRedirectedResults = true },
        .flag("json", nil, "print each event as a JSON object on a line; see below") {
            $0.queue.isJSON = true
        },
        .value(
            "header", "H", "LINE",
            "a field for every request, in place of what it has, such as a secret one; @FILE"
        ) { (group, line) throws(UsageError) in try OptionValues.header(line, &group) },
    ]

    private static let helps: [String: String] = [
        "user":
            "who is calling, where all that waits goes to one origin; the password is asked for on a terminal",
        "oauth2-bearer": "a Bearer token, where all that waits goes to one origin",
        "cookie": "send cookies, where all that waits goes to one origin; or read them from a file",
        "netrc-optional": "the same",
        "location": "follow redirects, the default; --no-location does not",
        "connect-timeout": "how long opening a connection may take; 10 by default",
        "max-time": "how long a try may take",
        "verbose": "show what the session does, on standard error",
        "silent": "nothing on standard error",
    ]

    private static let sharedNames =
        "user basic digest anyauth oauth2-bearer netrc netrc-optional netrc-file"
        + " cookie cookie-jar junk-session-cookies location max-redirs proto-redir"
        + " connect-timeout max-time resolve connect-to unix-socket abstract-unix-socket interface ipv4 ipv6"
        + " happy-eyeballs-timeout-ms no-keepalive keepalive keepalive-time tcp-nodelay expect100-timeout"
        + " proxy proxy-user proxy-basic proxy-digest proxy-anyauth noproxy proxytunnel socks5 socks5-hostname"
        + " socks5-basic proxy-cacert proxy-insecure"
        + " insecure cacert capath cert cert-type key key-type pass pinnedpubkey crlfile tlsv1 tlsv1.2 tlsv1.3"
        + " tls-max ciphers tls13-ciphers no-alpn no-sessionid"
        + " silent show-error verbose disable version help config"

    private static let reasons: [String: String] = {
        let retries = "a queue tries again by itself"
        let requests =
            "url request head get user-agent referer range path-as-is globoff data data-ascii data-raw data-binary"
            + " data-urlencode form form-string form-escape upload-file"
        var reasons = Dictionary(
            uniqueKeysWithValues: requests.split(separator: " ").map {
                (String($0), "is part of a request; “martlet queue add” takes it")
            })
        for name in ["retry", "retry-delay", "retry-max-time", "retry-connrefused", "retry-all-errors"] {
            reasons[name] = retries
        }
        reasons["location-trusted"] = "requests of a queue take no credentials wherever they are led"
        return reasons
    }()
}
