import Martlet

/// Every option of `get`: curl's that are carried out, curl's that are rejected by name, and our own.
enum OptionTable {
    static let all =
        request + conditions + body + output + redirects + callers + cookies + retries + connection + proxy
        + security + caching + general + refused

    private static let request: [CurlOption] = [
        .list("url", nil, "URL", "a URL, as if it stood by itself", \.urls) { $0 },
        .value(
            "request", "X", "METHOD", "the method, in place of the one that follows from the options",
            \.method),
        .value(
            "header", "H", "LINE",
            "a field: 'Name: value', 'Name;' for an empty one, 'Name:' for none, @FILE", OptionValues.header),
        .toggle("head", "I", "ask for the head alone, and show it", \.isHead),
        .toggle("get", "G", "put the data into the query, and use GET", \.putsDataInQuery),
        .value(
            "user-agent", "A", "TEXT", "what User-Agent says; empty for none", \.userAgent,
            HeaderLines.checked),
        .value("referer", "e", "URL", "what Referer says", \.referer) { (text, option) throws(UsageError) in
            try check(!text.hasSuffix(";auto"), "option -e: “;auto” is not supported")
            return try HeaderLines.checked(text, option)
        },
        .value(
            "range", "r", "FIRST-LAST", "ask for a part of the resource, in bytes", \.range,
            HeaderLines.checked),
        .value(
            "continue-at", "C", "OFFSET",
            "go on at this byte, and append to the file of -o; - for where the file ends",
            \.continuation, Continuation.read),
        .toggle("compressed", nil, "ask for a content coding and undo it", \.isCompressed),
        .toggle("raw", nil, "undo neither chunks nor content coding", \.isRaw),
        .toggle(
            "ignore-content-length", nil,
            "a body ends with its connection, whatever its length is said to be", \.ignoresContentLength),
        .flag("http1.0", "0", "speak HTTP/1.0", \.version, .http10),
        .flag("http1.1", nil, "speak HTTP/1.1, the default", \.version, .http11),
        .toggle("path-as-is", nil, "keep . and .. in the path", \.keepsPath),
        .flag("globoff", "g", "take { } [ ] in URLs as they are", \.disablesGlobbing),
        .seconds(
            "expect100-timeout", nil, "how long to wait for 100 Continue; 1 by default", \.continueTimeout),
    ]

    private static let conditions: [CurlOption] = [
        .value(
            "time-cond", "z", "TIME|FILE",
            "ask for what is newer than a date, or than a file; older with - before it",
            OptionValues.timeCondition),
        .value(
            "etag-compare", nil, "FILE", "ask for what has another ETag than the file says",
            \.comparedTagFile),
        .value(
            "etag-save", nil, "FILE", "write the response's ETag to a file; - for standard output",
            \.savedTagFile),
    ]

    private static let body: [CurlOption] = [
        .list(
            "data", "d", "DATA", "a form's data, or @FILE without its line breaks; several are joined by &",
            \.data
        ) { .data($0) },
        .list("data-ascii", nil, "DATA", "", \.data) { .data($0) },
        .list("data-raw", nil, "DATA", "as -d, but @ means nothing", \.data) { .raw($0) },
        .list("data-binary", nil, "DATA", "as -d, but a file's line breaks stay", \.data) { .binary($0) },
        .list(
            "data-urlencode", nil, "DATA", "as -d, encoded: text, =text, name=text, @FILE, name@FILE", \.data
        ) { .encoded($0) },
        .list("json", nil, "DATA", "post JSON, or @FILE: sets Content-Type and Accept", \.data) { .json($0) },
        .list(
            "form", "F", "NAME=CONTENT",
            "a part of a form: NAME=TEXT, NAME=@FILE, NAME=<FILE; ;type= ;filename=", \.form
        ) { FormPart(text: $0, isLiteral: false) },
        .list("form-string", nil, "NAME=TEXT", "as -F, but @, < and ; mean nothing", \.form) {
            FormPart(text: $0, isLiteral: true)
        },
        .flag(
            "form-escape", nil, "quotes in names of -F after a backslash, in place of %22", \.formQuoting,
            .backslash),
        .list("upload-file", "T", "FILE", "put a file; - for standard input, in chunks", \.uploads) { $0 },
    ]

    private static let output: [CurlOption] = [
        .list(
            "output", "o", "FILE", "write the body to a file; one for each URL; - for standard output",
            \.destinations
        ) { .named($0) },
        .flag("remote-name", "O", "write the body to a file named after the URL's path") {
            $0.destinations.append(.remoteName)
        },
        .toggle("remote-name-all", nil, "-O for every URL", \.usesRemoteNames),
        .toggle(
            "remote-header-name", "J",
            "-O under the name that the response proposes; never over a file that is there",
            \.usesRemoteHeaderName),
        .flag("lines", nil, "write the body line by line, as soon as each is there", \.reading, .lines),
        .flag(
            "sse", nil, "read server-sent events, and write each as JSON on a line; connects again",
            \.reading, .events),
        .value("output-dir", nil, "DIR", "the folder of the files of -o and -O", \.outputFolder),
        .toggle("create-dirs", nil, "make the folders that -o names", \.makesFolders),
        .toggle("remote-time", "R", "give files the time of Last-Modified", \.preservesModificationTime),
        .toggle("include", "i", "show the head before the body", \.includesHeads),
        .value("dump-header", "D", "FILE", "write the heads to a file; - for standard output", \.headsFile),
        .value("write-out", "w", "FORMAT", "print this when a transfer is over, with curl's variables") {
            (group, text) throws(UsageError) in
            // As in curl, line breaks of the file are for its reader alone.
            let format = try InputFile.contents(behindAtOf: text)?.filter { $0 != 10 && $0 != 13 }
            group.writeOut = format.map { String(decoding: $0, as: UTF8.self) } ?? text
        },
        .flag(
            "fail", "f", "no body, and exit code 22, from status 400 on",
            opposite: { $0.failsOnStatus = false }
        ) { ($0.failsOnStatus, $0.keepsBodyOnFailure) = (true, false) },
        .flag("fail-with-body", nil, "exit code 22 from status 400 on, with the body") {
            ($0.failsOnStatus, $0.keepsBodyOnFailure) = (true, true)
        },
        .size("max-filesize", "refuse larger bodies; K, M, G may follow", \.sizeLimit),
    ]

    private static let connection: [CurlOption] = [
        .seconds(
            "connect-timeout", nil, "how long opening a connection may take; 300 by default",
            \.connectTimeout),
        .seconds("max-time", "m", "how long a whole transfer may take", \.totalTimeout),
        .size("limit-rate", "bytes a second either way; K, M, G may follow", \.rateLimit),
        .value("speed-limit", "Y", "BYTES", "give up what is slower, in bytes a second, for the time of -y") {
            (group, text) throws(UsageError) in
            group.speedLimit = try OptionValues.number(text, "-Y")
            if group.speedTime == .zero { group.speedTime = .seconds(30) }
        },
        .value(
            "speed-time", "y", "SECONDS", "the time of -Y, 30 by default; without -Y it means 1 byte a second"
        ) { (group, text) throws(UsageError) in
            group.speedTime = .seconds(try OptionValues.number(in: 0...31_536_000)(text, "-y"))
            if group.speedLimit == 0 { group.speedLimit = 1 }
        },
        .value(
            "resolve", nil, "HOST:PORT:ADDRESS", "use these addresses for a host; several after commas",
            OptionValues.resolve),
        .value("connect-to", nil, "HOST:PORT:HOST:PORT", "connect elsewhere; names stay what they are") {
            (group, text) throws(UsageError) in
            group.session.connectOverrides.append(try OptionValues.connectTo(text))
        },
        .value("unix-socket", nil, "PATH", "connect to a unix domain socket", \.session.unixSocketPath),
        .value("abstract-unix-socket", nil, "NAME", "connect to a unix domain socket in the abstract space") {
            $0.session.unixSocketPath = "@" + $1
        },
        .value("interface", nil, "NAME", "connect from this interface or address", OptionValues.interface),
        .flag("ipv4", "4", "IPv4 alone", \.session.happyEyeballs.families, .ipv4Only),
        .flag("ipv6", "6", "IPv6 alone", \.session.happyEyeballs.families, .ipv6Only),
        .value(
            "happy-eyeballs-timeout-ms", nil, "MILLISECONDS", "the head start of an address",
            \.session.happyEyeballs.attemptDelay, OptionValues.number { .milliseconds($0) }),
        .flag("no-keepalive", nil, "no TCP probes", \.session.socketOptions.keepAliveInterval, nil),
        .flag("keepalive", nil, "", \.session.socketOptions.keepAliveInterval, .seconds(60)),
        .value(
            "keepalive-time", nil, "SECONDS", "after how much silence TCP probes",
            \.session.socketOptions.keepAliveInterval, OptionValues.number { .seconds($0) }),
        .ignored("tcp-nodelay"),
    ]

    static let proxy: [CurlOption] = [
        .value(
            "proxy", "x", "URL", "a proxy: http, https, socks5 or socks5h; empty for none", \.proxy.address),
        .value("proxy-user", "U", "USER:PASSWORD", "what the proxy is told of who asks", \.proxy.user),
        .ignored("proxy-basic", nil, "Basic for the proxy at once, the default; Digest where it wants that"),
        .flag("proxy-digest", nil, "Digest alone for the proxy: it never sees the password") {
            if $0.proxy.scheme == .basic { $0.proxy.scheme = .digest }
        },
        .flag(
            "proxy-anyauth", nil, "the safest that the proxy offers, once it has asked", \.proxy.scheme, .any),
        .value("noproxy", nil, "LIST", "the servers reached without a proxy; * for all", \.proxy.exceptions),
        .flag("proxytunnel", "p", "a tunnel through the proxy for http as well", \.proxy.alwaysTunnels),
        .value("socks5", nil, "HOST[:PORT]", "a SOCKS5 proxy; names are looked up here") {
            $0.proxy.address = ProxyPlan.socks($1, "socks5")
        },
        .value("socks5-hostname", nil, "HOST[:PORT]", "a SOCKS5 proxy, which looks names up") {
            $0.proxy.address = ProxyPlan.socks($1, "socks5h")
        },
        .ignored("socks5-basic"),
        .value(
            "proxy-cacert", nil, "FILE", "trust these authorities alone for an HTTPS proxy",
            \.proxy.authorityFile),
        .flag(
            "proxy-insecure", nil, "accept any certificate from an HTTPS proxy",
            \.proxy.acceptsAnyCertificate),
    ]

    static let security: [CurlOption] = [
        .toggle("insecure", "k", "accept any certificate from anybody", \.acceptsAnyCertificate),
        .value("cacert", nil, "FILE", "trust these authorities alone", \.authorityFile),
        .value(
            "capath", nil, "DIR", "trust the authorities in this folder of hashed names alone",
            \.authorityFolder),
        .value("cert", "E", "FILE[:PASSWORD]", "a client certificate", \.certificate),
        .value(
            "cert-type", nil, "TYPE", "PEM, DER or P12 (with its key); PEM by default", \.isPKCS12,
            OptionValues.isPKCS12),
        .value("key", nil, "FILE", "the certificate's private key", \.privateKey),
        .value("key-type", nil, "TYPE", "PEM or DER; whichever it is by default", OptionValues.checkKeyType),
        .value("pass", nil, "PHRASE", "the private key's pass phrase", \.passphrase),
        .value(
            "pinnedpubkey", nil, "FILE|HASHES",
            "the server's public key, or sha256//BASE64 with ; between several", \.pinnedKeys),
        .value("crlfile", nil, "FILE", "revocation lists for each authority in the chain", \.revocationLists),
        .flag("tlsv1", "1", "", \.session.tls.minimumVersion, .tls12),
        .flag("tlsv1.2", nil, "TLS 1.2 or later, the default", \.session.tls.minimumVersion, .tls12),
        .flag("tlsv1.3", nil, "TLS 1.3 alone", \.session.tls.minimumVersion, .tls13),
        .value(
            "tls-max", nil, "VERSION", "the newest TLS: 1.2, 1.3 or default", \.session.tls.maximumVersion,
            OptionValues.newestTLS),
        .value("ciphers", nil, "LIST", "the ciphers for TLS 1.2", \.session.tls.cipherList),
        .value("tls13-ciphers", nil, "LIST", "the cipher suites for TLS 1.3", \.session.tls.cipherSuites),
        .flag("no-alpn", nil, "offer no protocol by ALPN", \.session.tls.applicationProtocols, []),
        .flag("no-sessionid", nil, "resume no TLS sessions", \.session.tls.usesSessionTickets, false),
    ]

    private static let general: [CurlOption] = [
        .toggle("silent", "s", "neither progress nor errors", \.global.isSilent),
        .toggle("show-error", "S", "errors even with -s", \.global.showsErrors),
        .toggle("verbose", "v", "show what is sent and received, on standard error", \.global.isVerbose),
        .value(
            "har", nil, "FILE",
            "write a log that browsers' developer tools open; secrets masked, bodies up to 1 MiB",
            \.global.harFile),
        .flag(
            "timeline", nil, "show when the parts of each transfer happened, on standard error",
            \.global.showsTimeline),
        .ignored("no-buffer", "N"),
        .ignored("disable", "q"),
        .toggle(
            "parallel", "Z", "make all transfers at the same time, --parallel-max of them at most",
            \.global.isParallel),
        .value(
            "parallel-max", nil, "NUMBER", "how many transfers -Z makes at the same time; 50 by default",
            \.global.parallelLimit, OptionValues.number(in: 1...300)),
        .ignored(
            "parallel-immediate", nil, "open connections rather than wait for one, as -Z does anyway",
            hasOpposite: true),
        .flag("fail-early", nil, "stop at the first transfer that fails", \.global.stopsAtFirstError),
        .flag("progress-bar", "#", "a bar", \.global.progress, .bar),
        .flag("progress-meter", nil, "", \.global.progress, .auto),
        .flag("no-progress-meter", nil, "no progress", \.global.progress, .none),
        .value("progress", nil, "FORM", "auto, bar, plain, json or none", \.global.progress) {
            (text, option) throws(UsageError) in
            if let progress = GlobalOptions.Progress(rawValue: text) { return progress }
            throw UsageError("option \(option): “\(text)” is not one of auto, bar, plain, json, none")
        },
        .flag("version", "V", "print the version", \.global.showsVersion),
        .flag("help", "h", "print this", \.global.showsHelp),
        CurlOption(
            name: "config", letter: "K", kind: .config, help: "read options from a file", valueName: "FILE"),
        CurlOption(name: "next", letter: ":", kind: .next, help: "what follows has options of its own"),
    ]
}
