import Martlet

/// Every option of `get`: curl's supported options, curl's options that are rejected by name, and Martlet's own.
enum OptionTable {
    static let all =
        request + conditions + body + output + redirects + callers + cookies + retries + connection + proxy + security
        + hsts + caching + general + rejected

    private static let request: [CurlOption] = [
        .list("--url URL", "Fetch this URL, as if it were given without an option", \.urls) { $0 },
        .value("-X, --request METHOD", "Use this method instead of the one that follows from the options", \.method),
        .value(
            "-H, --header LINE", "Set a field: 'Name: value', 'Name;' if empty; 'Name:' removes it; @FILE",
            OptionValues.header), .toggle("-I, --head", "Request only the head, and print it", \.isHead),
        .toggle("-G, --get", "Append the data to the query, and use GET", \.putsDataInQuery),
        .value("-A, --user-agent TEXT", "Set User-Agent; empty to remove it", \.userAgent, HeaderLines.checked),
        .value("-e, --referer URL", "Set Referer", \.referer, OptionValues.referer),
        .value("-r, --range FIRST-LAST", "Request a range of bytes", \.range, HeaderLines.checked),
        .value("-C, --continue-at OFFSET", "Resume a file of -o; - for its end", \.continuation, Continuation.read),
        .toggle("--compressed", "Accept content codings, and decode them", \.isCompressed),
        .toggle("--raw", "Decode neither chunks nor content codings", \.isRaw),
        .toggle("--ignore-content-length", "Read the body until the connection ends", \.ignoresContentLength),
        .flag("-0, --http1.0", "Use HTTP/1.0", \.version, .http10),
        .flag("--http1.1", "Use HTTP/1.1, the default", \.version, .http11),
        .toggle("--path-as-is", "Keep . and .. in the path", \.keepsPath),
        .toggle("-g, --globoff", "Allow { } [ ] in URLs", \.disablesGlobbing),
        .seconds("--expect100-timeout", "Limit the wait for 100 Continue; 1 by default", \.continueTimeout),
    ]

    private static let conditions: [CurlOption] = [
        .value("-z, --time-cond TIME|FILE", "Request only if newer; -TIME if older", OptionValues.timeCondition),
        .value("--etag-compare FILE", "Request only if the ETag differs from the one in a file", \.comparedTagFile),
        .value("--etag-save FILE", "Write the response's ETag to a file; - for standard output", \.savedTagFile),
    ]

    private static let body: [CurlOption] = [
        .list("-d, --data DATA", "Send data, or @FILE without line breaks; joined by &", \.data) { .data($0) },
        .list("--data-ascii DATA", "", \.data) { .data($0) },
        .list("--data-raw DATA", "Send data as -d does, but @ has no meaning", \.data) { .raw($0) },
        .list("--data-binary DATA", "Send data as -d does, but keep line breaks of files", \.data) { .binary($0) },
        .list("--data-urlencode DATA", "Send encoded: [[NAME]=]TEXT, [NAME]@FILE", \.data) { .encoded($0) },
        .list("--json DATA", "Send JSON, or @FILE: sets Content-Type and Accept", \.data) { .json($0) },
        .list("-F, --form NAME=CONTENT", "Send a form part: TEXT, @FILE or <FILE; ;type= ;filename=", \.form) {
            .init($0)
        },
        .list("--form-string NAME=TEXT", "Send a form part without special characters", \.form) { .init(literal: $0) },
        .flag("--form-escape", "Escape quotes in names of -F with a backslash, not as %22", \.formQuoting, .backslash),
        .list("-T, --upload-file FILE", "Send a file with PUT; - for standard input, in chunks", \.uploads) { $0 },
    ]

    private static let files: CurlOption.Setting<[TransferOptions.Destination]> = \.destinations

    private static let output: [CurlOption] = [
        .list("-o, --output FILE", "Write the body to a file; one for each URL; - for standard output", files) {
            .named($0)
        },
        .flag("-O, --remote-name", "Write the body to a file named after the URL's path") {
            $0.destinations.append(.remoteName)
        }, .toggle("--remote-name-all", "Use -O for every URL", \.usesRemoteNames),
        .toggle("-J, --remote-header-name", "Use the response's file name with -O, if new", \.usesRemoteHeaderName),
        .flag("--lines", "Write the body line by line, each as soon as it arrives", \.reading, .lines),
        .flag("--sse", "Read server-sent events, and write each as a line of JSON; reconnects", \.reading, .events),
        .value("--output-dir DIR", "Write the files of -o and -O to this directory", \.outputDirectory),
        .toggle("--create-dirs", "Create missing directories of files", \.makesDirectories),
        .toggle("-R, --remote-time", "Set the time of files to Last-Modified", \.preservesModificationTime),
        .toggle("-i, --include", "Print the head before the body", \.includesHeads),
        .value("-D, --dump-header FILE", "Write the heads to a file; - for standard output", \.headsFile),
        .value("-w, --write-out FORMAT", "Print this after a transfer, with curl's variables", OptionValues.writeOut),
        .flag("-f, --fail", "Fail with exit code 22 on status 400 and above", opposite: { $0.failsOnStatus = false }) {
            ($0.failsOnStatus, $0.keepsBodyOnFailure) = (true, false)
        },
        .flag("--fail-with-body", "Fail with exit code 22 on status 400 and above, and write the body") {
            ($0.failsOnStatus, $0.keepsBodyOnFailure) = (true, true)
        }, .size("--max-filesize", "Reject larger bodies; suffixes K, M, G", \.sizeLimit),
    ]

    private static let connection: [CurlOption] = [
        .seconds("--connect-timeout", "Limit the time to open a connection; 300 by default", \.connectTimeout),
        .seconds("-m, --max-time", "Limit the time of a whole transfer", \.totalTimeout),
        .size("--limit-rate", "Limit the bytes per second in each direction; suffixes K, M, G", \.rateLimit),
        .value("-Y, --speed-limit BYTES", "Fail below this many bytes per second during the time of -y") {
            (group, text) throws(UsageError) in
            group.speedLimit = try OptionValues.number(text)
            if group.speedTime == .zero { group.speedTime = .seconds(30) }
        },
        .value("-y, --speed-time SECONDS", "Set the time of -Y; 30 by default; without -Y, -Y is 1") {
            (group, text) throws(UsageError) in
            group.speedTime = .seconds(try OptionValues.number(in: 0...31_536_000)(text))
            if group.speedLimit == 0 { group.speedLimit = 1 }
        }, .value("--resolve HOST:PORT:ADDRESS", "Use these addresses for a host, with commas", OptionValues.resolve),
        .value("--connect-to HOST:PORT:HOST:PORT", "Connect to another host; requests keep their names") {
            (group, text) throws(UsageError) in group.session.connectOverrides.append(try OptionValues.connectTo(text))
        }, .value("--unix-socket PATH", "Connect to a Unix domain socket", \.session.unixSocketPath),
        .value("--abstract-unix-socket NAME", "Connect to an abstract Unix domain socket") {
            $0.session.unixSocketPath = "@" + $1
        }, .value("--interface NAME", "Connect from this interface or address", OptionValues.interface),
        .flag("-4, --ipv4", "Use only IPv4", \.session.happyEyeballs.families, .ipv4Only),
        .flag("-6, --ipv6", "Use only IPv6", \.session.happyEyeballs.families, .ipv6Only),
        .value("--happy-eyeballs-timeout-ms MILLISECONDS", "Try the next address after this time") {
            (group, text) throws(UsageError) in
            group.session.happyEyeballs.attemptDelay = .milliseconds(try OptionValues.number(text))
        }, .flag("--no-keepalive", "Send no TCP keep-alive probes", keepAlive, nil),
        .flag("--keepalive", "", keepAlive, .seconds(60)),
        .value("--keepalive-time SECONDS", "Send TCP keep-alive probes after this idle time") {
            (group, text) throws(UsageError) in group[keyPath: keepAlive] = .seconds(try OptionValues.number(text))
        }, .ignored("--tcp-nodelay"),
    ]

    private static let keepAlive: CurlOption.Setting<Duration?> = \.session.socketOptions.keepAliveInterval

    static let proxy: [CurlOption] = [
        .value("-x, --proxy URL", "Use a proxy: http, https, socks5 or socks5h; empty for none", \.proxy.address),
        .value("-U, --proxy-user USER:PASSWORD", "Set the credentials for the proxy", \.proxy.user),
        .ignored("--proxy-basic", "Use Basic for the proxy, the default; Digest if the proxy requires it"),
        .flag("--proxy-digest", "Use only Digest for the proxy, which never receives the password") {
            if $0.proxy.scheme == .basic { $0.proxy.scheme = .digest }
        }, .flag("--proxy-anyauth", "Use the safest scheme that the proxy offers in a challenge", \.proxy.scheme, .any),
        .value("--noproxy LIST", "Connect to these hosts without a proxy; * for all", \.proxy.exceptions),
        .toggle("-p, --proxytunnel", "Use a tunnel through the proxy for http as well", \.proxy.alwaysTunnels),
        .value("--socks5 HOST[:PORT]", "Use a SOCKS5 proxy, and resolve names locally") {
            $0.proxy.address = ProxyPlan.socks($1, "socks5")
        },
        .value("--socks5-hostname HOST[:PORT]", "Use a SOCKS5 proxy that resolves names") {
            $0.proxy.address = ProxyPlan.socks($1, "socks5h")
        }, .ignored("--socks5-basic"),
        .value("--proxy-cacert FILE", "Trust only these authorities for an HTTPS proxy", \.proxy.authorityFile),
        .toggle("--proxy-insecure", "Accept any certificate of an HTTPS proxy", \.proxy.acceptsAnyCertificate),
    ]

    private static let versions: KeyValuePairs<String, TLSVersion> = ["1.2": .tls12, "1.3": .tls13, "default": .tls13]

    static let security: [CurlOption] = [
        .toggle("-k, --insecure", "Accept any certificate", \.acceptsAnyCertificate),
        .value("--cacert FILE", "Trust only these authorities", \.authorityFile),
        .value("--capath DIR", "Trust only the authorities in this directory of hashed names", \.authorityDirectory),
        .value("-E, --cert FILE[:PASSWORD]", "Use a client certificate", \.certificate),
        .choice(
            "--cert-type TYPE", "Set the format of -E, PEM by default; P12 includes the key:", \.isPKCS12,
            ["PEM": false, "DER": false, "P12": true]),
        .value("--key FILE", "Use this private key of the client certificate", \.privateKey),
        .value("--key-type TYPE", "Set the key's format: PEM or DER; detected by default", OptionValues.checkKeyType),
        .value("--pass PHRASE", "Set the passphrase of the private key", \.passphrase),
        .value("--pinnedpubkey FILE|HASHES", "Require a public key: a file, or sha256//BASE64;…", \.pinnedKeys),
        .value("--crlfile FILE", "Use revocation lists of all authorities in the chain", \.revocationLists),
        .flag("-1, --tlsv1", "", \.session.tls.minimumVersion, .tls12),
        .flag("--tlsv1.2", "Use TLS 1.2 or later, the default", \.session.tls.minimumVersion, .tls12),
        .flag("--tlsv1.3", "Use only TLS 1.3", \.session.tls.minimumVersion, .tls13),
        .choice("--tls-max VERSION", "Limit TLS to", \.session.tls.maximumVersion, versions),
        .value("--ciphers LIST", "Set the ciphers of TLS 1.2", \.session.tls.cipherList),
        .value("--tls13-ciphers LIST", "Set the cipher suites of TLS 1.3", \.session.tls.cipherSuites),
        .flag("--no-alpn", "Offer no protocol with ALPN", \.session.tls.applicationProtocols, []),
        .flag("--no-sessionid", "Resume no TLS sessions", \.session.tls.usesSessionTickets, false),
    ]

    private static let forms: KeyValuePairs<String, GlobalOptions.Progress> = [
        "auto": .auto, "bar": .bar, "plain": .plain, "json": .json, "none": .none,
    ]

    private static let general: [CurlOption] = [
        .toggle("-s, --silent", "Print neither progress nor errors", \.global.isSilent),
        .toggle("-S, --show-error", "Print errors even with -s", \.global.showsErrors),
        .toggle("-v, --verbose", "Print sent and received heads to standard error", \.global.isVerbose),
        .value("--har FILE", "Write a HAR log: secrets are masked, bodies are limited to 1 MiB", \.global.harFile),
        .toggle("--timeline", "Print the phases of each transfer to standard error", \.global.showsTimeline),
        .ignored("-N, --no-buffer"), .ignored("-q, --disable"),
        .toggle("-Z, --parallel", "Run transfers concurrently", \.global.isParallel),
        .number(
            "--parallel-max", "Limit the concurrent transfers of -Z; 50 by default", 1...300, \.global.parallelLimit),
        .ignored(
            "--parallel-immediate", "Open connections rather than wait for one, as -Z always does", hasOpposite: true),
        .toggle("--fail-early", "Stop at the first transfer that fails", \.global.stopsAtFirstError),
        .flag("-#, --progress-bar", "Draw a progress bar", \.global.progress, .bar),
        .flag("--progress-meter", "", \.global.progress, .auto),
        .flag("--no-progress-meter", "Print no progress", \.global.progress, .none),
        .choice("--progress FORM", "Print progress as", \.global.progress, forms),
        .toggle("-V, --version", "Print the version", \.global.showsVersion),
        .toggle("-h, --help", "Print this help", \.global.showsHelp),
        CurlOption("-K, --config FILE", "Read options from a file", .config),
        CurlOption("-:, --next", "Start a new set of options for the following URLs", .next),
    ]

    static let redirects: [CurlOption] =
        [
            .toggle("-L, --location", "Follow redirects", \.redirects.followsRedirects),
            .flag(
                "--location-trusted", "Follow redirects, and send credentials to every host",
                opposite: { ($0.redirects.followsRedirects, $0.redirects.sendsCredentialsCrossOrigin) = (false, false) }
            ) { ($0.redirects.followsRedirects, $0.redirects.sendsCredentialsCrossOrigin) = (true, true) },
            .value("--max-redirs NUMBER", "Limit the redirects; 50 by default, -1 for no limit", \.redirects.limit) {
                (text) throws(UsageError) in text == "-1" ? .max : try OptionValues.number(text)
            },
            .value("--proto-redir LIST", "Allow redirects to these schemes: =https, -http; both by default") {
                (group, text) throws(UsageError) in
                group.redirects.schemes = try SchemeList.applying(text, to: group.redirects.schemes)
            },
        ]
        + [301, 302, 303].map { status in
            .flag(
                "--post\(status)", "Keep POST after a \(status)",
                opposite: { $0.redirects.methodPreservingStatuses.remove(status) }
            ) { $0.redirects.methodPreservingStatuses.insert(status) }
        }

    static let callers: [CurlOption] = [
        .value("-u, --user USER[:PASSWORD]", "Set the credentials; prompts for a missing password", \.user),
        .toggle("--basic", "Use Basic for -u, the default", \.offersBasic),
        .toggle("--digest", "Use Digest for -u", \.offersDigest),
        .flag("--anyauth", "Use the safest scheme that the server offers for -u") {
            ($0.offersBasic, $0.offersDigest) = (true, true)
        }, .value("--oauth2-bearer TOKEN", "Send a bearer token", \.bearer),
        .flag("-n, --netrc", "Read credentials from ~/.netrc", \.netrc, .required, opposite: noNetrc),
        .flag("--netrc-optional", "Use ~/.netrc unless the URL has credentials", \.netrc, .optional, opposite: noNetrc),
        .value("--netrc-file FILE", "Read credentials from this file, as -n does") {
            $0.netrcFile = $1
            if $0.netrc == .none { $0.netrc = .required }
        },
    ]

    private static let noNetrc = TransferOptions.NetrcUse.none

    static let cookies: [CurlOption] = [
        .value("-b, --cookie DATA|FILE", "Send cookies 'name=value; …', or those of a file", OptionValues.cookie),
        .value("-c, --cookie-jar FILE", "Write all cookies to a file at the end; - for stdout", \.cookieOutput),
        .toggle("-j, --junk-session-cookies", "Ignore session cookies in files of -b", \.dropsSessionCookies),
    ]

    static let hsts: [CurlOption] = [
        .value("--hsts FILE", "Use https for hosts that ask for it (HSTS), and store them in a file", \.hstsFile)
    ]

    static let retries: [CurlOption] = [
        .value("--retry NUMBER", "Retry this many times after transient errors", \.retries.count, OptionValues.number),
        .seconds("--retry-delay", "Wait this long before each retry; by default 1, doubled each time", \.retries.delay),
        .seconds("--retry-max-time", "Start no retry after this time", \.retries.timeLimit),
        .toggle("--retry-connrefused", "Retry after a refused connection", \.retries.includesRefusedConnections),
        .toggle("--retry-all-errors", "Retry after every failure", \.retries.includesAllErrors),
    ]

    static let caching: [CurlOption] = [
        .directory("--cache", "Store responses in a directory, and use fresh ones; not with -k", \.cacheDirectory),
        .toggle("--offline", "Use only --cache, even if stale; exit code 104 if it has no response", \.isOffline),
        .value("--stale-if-error SECONDS", "Use stale responses after an error", \.staleIfError, OptionValues.number),
    ]

    /// Options of `get` by their long names, separated by spaces.
    static func named(_ names: String) -> [CurlOption] {
        names.split(separator: " ").compactMap { GetCommand.options[String($0)] }
    }

    /// The options for opening connections, except for timeouts and rates.
    static let connecting = named(
        "resolve connect-to unix-socket abstract-unix-socket interface ipv4 ipv6 happy-eyeballs-timeout-ms"
            + " no-keepalive keepalive keepalive-time tcp-nodelay")

    /// The options of another command: its own, options of `get` with the same meaning (`helps` replaces their help),
    /// and all others of `get`, which are rejected. The reason is that of `get` if it rejects the option as well, else
    /// the one in `reasons` (names are separated by spaces), else `others`.
    static func rows(
        _ own: [CurlOption], _ shared: [CurlOption], helps: [String: String],
        rejecting reasons: KeyValuePairs<String, String>, others: String
    ) -> [CurlOption] {
        let shared = shared.map { option in
            var option = option
            option.help = helps[option.name] ?? option.help
            return option
        }
        let reasons = reasons.map { (reason: $0, names: $1.split(separator: " ")) }
        let rejected = all.map { option in
            if case .rejected = option.kind { return option }
            let reason = reasons.first { $0.names.contains { $0 == option.name } }?.reason
            return .rejected(option.name, option.letter, reason ?? others)
        }
        return own + shared + rejected
    }

    /// Options of curl for features that Martlet does not have: rejected by name, never ignored.
    static let rejected: [CurlOption] = grouped.flatMap { reason, names in
        names.split(separator: " ").map { word in
            let parts = word.split(separator: "/")
            return .rejected(String(parts[0]), parts.count > 1 ? parts[1].first : nil, reason)
        }
    }

    /// The reasons, and the options that are rejected for each; a letter follows a slash.
    private static let grouped: KeyValuePairs = [
        "this authentication method is not supported":
            "ntlm ntlm-wb negotiate aws-sigv4 delegation krb login-options sasl-authzid sasl-ir service-name",
        "this part of proxies is not supported": """
        preproxy proxy1.0 socks4 socks4a socks5-gssapi socks5-gssapi-nec socks5-gssapi-service proxy-capath \
        proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-header proxy-key proxy-key-type \
        proxy-negotiate proxy-ntlm proxy-pass proxy-pinnedpubkey proxy-service-name proxy-ssl-allow-beast \
        proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser \
        proxy-tlsv1 haproxy-protocol suppress-connect-headers
        """, "limits on how often transfers begin are not supported": "rate",
        "this part of writing files is not supported yet": "xattr no-clobber remove-on-error create-file-mode",
        "this output is not supported yet": "libcurl trace trace-ascii trace-time stderr",
        "HTTP/2, HTTP/3 and HTTP/0.9 are not supported": "http2 http2-prior-knowledge http3 http3-only http0.9",
        "TLS older than 1.2 is not supported": "tlsv1.0 tlsv1.1 sslv2/2 sslv3/3 ssl ssl-reqd ssl-allow-beast",
        "this part of TLS is not supported": """
        curves engine egd-file false-start no-npn random-file cert-status ssl-auto-client-cert ssl-no-revoke \
        ssl-revoke-best-effort tlsauthtype tlspassword tlsuser alt-svc
        """,
        "this is not supported": """
        request-target url-query local-port tcp-fastopen tr-encoding proto proto-default disallow-username-in-url \
        dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url doh-insecure doh-cert-status compressed-ssh \
        crlf metalink styled-output manual/M
        """,
        "it belongs to a protocol other than HTTP": """
        append/a disable-eprt disable-epsv ftp-account ftp-alternative-to-user ftp-create-dirs ftp-method ftp-pasv \
        ftp-port/P ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control hostpubmd5 hostpubsha256 \
        list-only/l mail-auth mail-from mail-rcpt mail-rcpt-allowfails pubkey quote/Q telnet-option/t tftp-blksize \
        tftp-no-options use-ascii/B
        """,
    ]
}
