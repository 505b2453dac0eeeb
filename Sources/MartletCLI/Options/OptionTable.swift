import Martlet

/// Every option of `get`: curl's that are carried out, curl's that are refused by name, and our own.
enum OptionTable {
    /// All of them.
    static let all =
        request + conditions + body + output + redirects + callers + cookies + retries + connection + proxy
        + security + caching + general + refused

    /// The same, by name and letter.
    static let commandOptions = CommandOptions(all, usage: "martlet [get] [options] URL…")

    private static let request: [CurlOption] = [
        .value("url", nil, "URL", "a URL, as if it stood by itself") { $0.transfer.urls.append($1) },
        .value(
            "request", "X", "METHOD", "the method, in place of the one that follows from the options",
            \.transfer.method),
        .value(
            "header", "H", "LINE",
            "a field: 'Name: value', 'Name;' for an empty one, 'Name:' for none, @FILE", OptionValues.header),
        .toggle("head", "I", "ask for the head alone, and show it", \.transfer.isHead),
        .toggle("get", "G", "put the data into the query, and use GET", \.transfer.putsDataInQuery),
        .value(
            "user-agent", "A", "TEXT", "what User-Agent says; empty for none", \.transfer.userAgent,
            HeaderLines.checked),
        .value("referer", "e", "URL", "what Referer says") { (group, text) throws(UsageError) in
            guard !text.hasSuffix(";auto") else { throw UsageError("option -e: “;auto” is not supported") }
            group.transfer.referer = try HeaderLines.checked(text, "-e")
        },
        .value(
            "range", "r", "FIRST-LAST", "ask for a part of the resource, in bytes", \.transfer.range,
            HeaderLines.checked),
        .value(
            "continue-at", "C", "OFFSET",
            "go on at this byte, and append to the file of -o; - for where the file ends"
        ) { (group, text) throws(UsageError) in group.transfer.continuation = try Continuation(text) },
        .toggle("compressed", nil, "ask for a content coding and undo it", \.transfer.isCompressed),
        .toggle("raw", nil, "undo neither chunks nor content coding", \.transfer.isRaw),
        .toggle(
            "ignore-content-length", nil,
            "a body ends with its connection, whatever its length is said to be",
            \.transfer.ignoresContentLength),
        .flag("http1.0", "0", "speak HTTP/1.0", \.transfer.version, .http10),
        .flag("http1.1", nil, "speak HTTP/1.1, the default", \.transfer.version, .http11),
        .toggle("path-as-is", nil, "keep . and .. in the path", \.transfer.keepsPath),
        .flag("globoff", "g", "take { } [ ] in URLs as they are", \.transfer.takesBracesLiterally),
        .value(
            "expect100-timeout", nil, "SECONDS", "how long to wait for 100 Continue; 1 by default",
            \.transfer.continueTimeout, OptionValues.seconds),
    ]

    private static let conditions: [CurlOption] = [
        .value(
            "time-cond", "z", "TIME|FILE",
            "ask for what is newer than a date, or than a file; older with - before it"
        ) { OptionValues.timeCondition(&$0, $1) },
        .value(
            "etag-compare", nil, "FILE", "ask for what has another ETag than the file says",
            \.transfer.comparedTagFile),
        .value(
            "etag-save", nil, "FILE", "write the response's ETag to a file; - for standard output",
            \.transfer.savedTagFile),
    ]

    private static let body: [CurlOption] = [
        .value(
            "data", "d", "DATA", "a form's data, or @FILE without its line breaks; several are joined by &"
        ) { $0.transfer.data.append(.data($1)) },
        .value("data-ascii", nil, "DATA") { $0.transfer.data.append(.data($1)) },
        .value("data-raw", nil, "DATA", "as -d, but @ means nothing") { $0.transfer.data.append(.raw($1)) },
        .value("data-binary", nil, "DATA", "as -d, but a file's line breaks stay") {
            $0.transfer.data.append(.binary($1))
        },
        .value("data-urlencode", nil, "DATA", "as -d, encoded: text, =text, name=text, @FILE, name@FILE") {
            $0.transfer.data.append(.encoded($1))
        },
        .value("json", nil, "DATA", "post JSON, or @FILE: sets Content-Type and Accept") {
            $0.transfer.data.append(.json($1))
        },
        .value(
            "form", "F", "NAME=CONTENT",
            "a part of a form: NAME=TEXT, NAME=@FILE, NAME=<FILE; ;type= ;filename="
        ) { $0.transfer.form.append(FormPart(text: $1, isLiteral: false)) },
        .value("form-string", nil, "NAME=TEXT", "as -F, but @, < and ; mean nothing") {
            $0.transfer.form.append(FormPart(text: $1, isLiteral: true))
        },
        .flag(
            "form-escape", nil, "quotes in names of -F after a backslash, in place of %22",
            \.transfer.formQuoting, .backslash),
        .value("upload-file", "T", "FILE", "put a file; - for standard input, in chunks") {
            $0.transfer.uploads.append($1)
        },
    ]

    private static let output: [CurlOption] = [
        .value("output", "o", "FILE", "write the body to a file; one for each URL; - for standard output") {
            $0.transfer.destinations.append(.named($1))
        },
        .flag("remote-name", "O", "write the body to a file named after the URL's path") {
            $0.transfer.destinations.append(.remoteName)
        },
        .toggle("remote-name-all", nil, "-O for every URL", \.transfer.usesRemoteNames),
        .toggle(
            "remote-header-name", "J",
            "-O under the name that the response proposes; never over a file that is there",
            \.transfer.heedsProposedNames),
        .flag(
            "lines", nil, "write the body line by line, as soon as each is there", \.transfer.reading, .lines),
        .flag(
            "sse", nil, "read server-sent events, and write each as JSON on a line; connects again",
            \.transfer.reading, .events),
        .value("output-dir", nil, "DIR", "the folder of the files of -o and -O", \.transfer.outputFolder),
        .toggle("create-dirs", nil, "make the folders that -o names", \.transfer.makesFolders),
        .toggle("remote-time", "R", "give files the time of Last-Modified", \.transfer.keepsRemoteTime),
        .toggle("include", "i", "show the head before the body", \.transfer.includesHeads),
        .value(
            "dump-header", "D", "FILE", "write the heads to a file; - for standard output",
            \.transfer.headsFile),
        .value("write-out", "w", "FORMAT", "print this when a transfer is over, with curl's variables") {
            (group, text) throws(UsageError) in
            // As in curl: the file may have as many lines as are good to read.
            let format = try InputFile.contents(behindAtOf: text)?.filter { $0 != 10 && $0 != 13 }
            group.transfer.writeOut = format.map { String(decoding: $0, as: UTF8.self) } ?? text
        },
        .flag(
            "fail", "f", "no body, and exit code 22, from status 400 on",
            opposite: { $0.transfer.failsOnStatus = false }
        ) {
            $0.transfer.failsOnStatus = true
            $0.transfer.keepsBodyOnFailure = false
        },
        .flag("fail-with-body", nil, "exit code 22 from status 400 on, with the body") {
            $0.transfer.failsOnStatus = true
            $0.transfer.keepsBodyOnFailure = true
        },
        .value(
            "max-filesize", nil, "BYTES", "refuse larger bodies; K, M, G may follow", \.transfer.sizeLimit,
            OptionValues.size),
    ]

    private static let connection: [CurlOption] = [
        .value(
            "connect-timeout", nil, "SECONDS", "how long opening a connection may take; 300 by default",
            \.transfer.connectTimeout, OptionValues.seconds),
        .value(
            "max-time", "m", "SECONDS", "how long a whole transfer may take", \.transfer.totalTimeout,
            OptionValues.seconds),
        .value(
            "limit-rate", nil, "BYTES", "bytes a second either way; K, M, G may follow", \.transfer.rateLimit,
            OptionValues.size),
        .value("speed-limit", "Y", "BYTES", "give up what is slower, in bytes a second, for the time of -y") {
            (group, text) throws(UsageError) in
            group.transfer.speedLimit = try OptionValues.number(text, "-Y")
            if group.transfer.speedTime == .zero { group.transfer.speedTime = .seconds(30) }
        },
        .value(
            "speed-time", "y", "SECONDS", "the time of -Y, 30 by default; without -Y it means 1 byte a second"
        ) { (group, text) throws(UsageError) in
            group.transfer.speedTime = .seconds(try OptionValues.number(in: 0...31_536_000)(text, "-y"))
            if group.transfer.speedLimit == 0 { group.transfer.speedLimit = 1 }
        },
        .value(
            "resolve", nil, "HOST:PORT:ADDRESS", "use these addresses for a host; several after commas",
            OptionValues.resolve),
        .value("connect-to", nil, "HOST:PORT:HOST:PORT", "connect elsewhere; names stay what they are") {
            (group, text) throws(UsageError) in
            group.transfer.redirections.append(try OptionValues.connectTo(text))
        },
        .value("unix-socket", nil, "PATH", "connect to a unix domain socket", \.transfer.unixSocketPath),
        .value("abstract-unix-socket", nil, "NAME", "connect to a unix domain socket in the abstract space") {
            $0.transfer.unixSocketPath = "@" + $1
        },
        .value("interface", nil, "NAME", "connect from this interface or address", \.transfer.interface),
        .flag("ipv4", "4", "IPv4 alone", \.transfer.families, .ipv4Only),
        .flag("ipv6", "6", "IPv6 alone", \.transfer.families, .ipv6Only),
        .value("happy-eyeballs-timeout-ms", nil, "MILLISECONDS", "the head start of an address") {
            (group, text) throws(UsageError) in
            group.transfer.attemptDelay = .milliseconds(
                try OptionValues.number(text, "--happy-eyeballs-timeout-ms"))
        },
        .flag("no-keepalive", nil, "no TCP probes", \.transfer.keepAliveInterval, nil),
        .flag("keepalive", nil, "", \.transfer.keepAliveInterval, .seconds(60)),
        .value("keepalive-time", nil, "SECONDS", "after how much silence TCP probes") {
            (group, text) throws(UsageError) in
            group.transfer.keepAliveInterval = .seconds(try OptionValues.number(text, "--keepalive-time"))
        },
        .flag("tcp-nodelay", nil) { _ in },
    ]

    /// Proxies.
    static let proxy: [CurlOption] = [
        .value(
            "proxy", "x", "URL", "a proxy: http, https, socks5 or socks5h; empty for none",
            \.transfer.proxy.address),
        .value(
            "proxy-user", "U", "USER:PASSWORD", "what the proxy is told of who asks", \.transfer.proxy.user),
        .flag("proxy-basic", nil, "Basic for the proxy at once, the default; Digest where it wants that") {
            _ in
        },
        .flag("proxy-digest", nil, "Digest alone for the proxy: it never sees the password") {
            if $0.transfer.proxy.scheme == .basic { $0.transfer.proxy.scheme = .digest }
        },
        .flag(
            "proxy-anyauth", nil, "the safest that the proxy offers, once it has asked",
            \.transfer.proxy.scheme, .any),
        .value(
            "noproxy", nil, "LIST", "the servers reached without a proxy; * for all",
            \.transfer.proxy.exceptions),
        .flag(
            "proxytunnel", "p", "a tunnel through the proxy for http as well",
            \.transfer.proxy.tunnelsEverything),
        .value("socks5", nil, "HOST[:PORT]", "a SOCKS5 proxy; names are looked up here") {
            $0.transfer.proxy.address = ProxyPlan.socks($1, "socks5")
        },
        .value("socks5-hostname", nil, "HOST[:PORT]", "a SOCKS5 proxy, which looks names up") {
            $0.transfer.proxy.address = ProxyPlan.socks($1, "socks5h")
        },
        .flag("socks5-basic", nil) { _ in },
        .value(
            "proxy-cacert", nil, "FILE", "trust these authorities alone for an HTTPS proxy",
            \.transfer.proxy.authorityFile),
        .flag(
            "proxy-insecure", nil, "accept any certificate from an HTTPS proxy",
            \.transfer.proxy.acceptsAnyCertificate),
    ]

    /// TLS.
    static let security: [CurlOption] = [
        .toggle("insecure", "k", "accept any certificate from anybody", \.transfer.acceptsAnyCertificate),
        .value("cacert", nil, "FILE", "trust these authorities alone", \.transfer.authorityFile),
        .value(
            "capath", nil, "DIR", "trust the authorities in this folder of hashed names alone",
            \.transfer.authorityFolder),
        .value("cert", "E", "FILE[:PASSWORD]", "a client certificate", \.transfer.certificate),
        .value("cert-type", nil, "TYPE", "PEM, DER or P12 (with its key); PEM by default") {
            (group, text) throws(UsageError) in
            group.transfer.isPKCS12 = try OptionValues.certificateType(text) == "P12"
        },
        .value("key", nil, "FILE", "the certificate's private key", \.transfer.privateKey),
        .value("key-type", nil, "TYPE", "PEM or DER; whichever it is by default") {
            (_, text) throws(UsageError) in try OptionValues.keyType(text)
        },
        .value("pass", nil, "PHRASE", "the private key's pass phrase", \.transfer.passphrase),
        .value(
            "pinnedpubkey", nil, "FILE|HASHES",
            "the server's public key, or sha256//BASE64 with ; between several", \.transfer.pinnedKeys),
        .value(
            "crlfile", nil, "FILE", "revocation lists for each authority in the chain",
            \.transfer.revocationLists), .flag("tlsv1", "1", "", \.transfer.minimumTLS, .tls12),
        .flag("tlsv1.2", nil, "TLS 1.2 or later, the default", \.transfer.minimumTLS, .tls12),
        .flag("tlsv1.3", nil, "TLS 1.3 alone", \.transfer.minimumTLS, .tls13),
        .value(
            "tls-max", nil, "VERSION", "the newest TLS: 1.2, 1.3 or default", \.transfer.maximumTLS,
            OptionValues.newestTLS),
        .value("ciphers", nil, "LIST", "the ciphers for TLS 1.2", \.transfer.cipherList),
        .value("tls13-ciphers", nil, "LIST", "the cipher suites for TLS 1.3", \.transfer.cipherSuites),
        .flag("no-alpn", nil, "offer no protocol by ALPN", \.transfer.offersProtocols, false),
        .flag("no-sessionid", nil, "resume no TLS sessions", \.transfer.usesTickets, false),
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
            \.global.showsTimeline), .flag("no-buffer", "N") { _ in }, .flag("disable", "q") { _ in },
        .toggle(
            "parallel", "Z", "make all transfers at the same time, --parallel-max of them at most",
            \.global.isParallel),
        .value(
            "parallel-max", nil, "NUMBER", "how many transfers -Z makes at the same time; 50 by default",
            \.global.parallelLimit, OptionValues.number(in: 1...300)),
        .flag(
            "parallel-immediate", nil, "open connections rather than wait for one, as -Z does anyway",
            opposite: { _ in }, { _ in }),
        .flag("fail-early", nil, "stop at the first transfer that fails", \.global.stopsAtFirstError),
        .flag("progress-bar", "#", "a bar", \.global.progress, .bar),
        .flag("progress-meter", nil, "", \.global.progress, .auto),
        .flag("no-progress-meter", nil, "no progress", \.global.progress, .none),
        .value("progress", nil, "FORM", "auto, bar, plain, json or none") {
            (group, text) throws(UsageError) in
            guard let progress = GlobalOptions.Progress(rawValue: text) else {
                throw UsageError("option --progress: “\(text)” is not one of auto, bar, plain, json, none")
            }
            group.global.progress = progress
        },
        .flag("version", "V", "print the version", \.global.showsVersion),
        .flag("help", "h", "print this", \.global.showsHelp),
        CurlOption(
            name: "config", letter: "K", kind: .config, help: "read options from a file", valueName: "FILE"),
        CurlOption(
            name: "next", letter: ":", kind: .next, help: "what follows has options of its own", valueName: ""
        ),
    ]
}
