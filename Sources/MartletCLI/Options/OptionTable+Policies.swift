import Martlet

extension OptionTable {
    /// Redirects.
    static let redirects: [CurlOption] =
        [
            .toggle("location", "L", "follow redirects", \.transfer.followsRedirects),
            .flag(
                "location-trusted", nil, "-L, and send credentials wherever it leads",
                opposite: { ($0.transfer.followsRedirects, $0.transfer.trustsOtherOrigins) = (false, false) }
            ) { ($0.transfer.followsRedirects, $0.transfer.trustsOtherOrigins) = (true, true) },
            .value(
                "max-redirs", nil, "NUMBER",
                "how many redirects are followed; 50 by default, -1 for any number"
            ) { (group, text) throws(UsageError) in
                if text == "-1" {
                    group.transfer.redirectLimit = nil
                } else {
                    group.transfer.redirectLimit = try OptionValues.number(text, "--max-redirs")
                }
            },
            .value(
                "proto-redir", nil, "LIST",
                "schemes that redirects may lead to, as =https or -http; both by default"
            ) { (group, text) throws(UsageError) in
                group.transfer.redirectSchemes = try SchemeList.applying(
                    text, to: group.transfer.redirectSchemes, "option --proto-redir")
            },
        ]
        + [301, 302, 303].map { status in
            .flag(
                "post\(status)", nil, "keep POST after a \(status)",
                opposite: { $0.transfer.statusesThatKeepMethod.remove(status) }
            ) { $0.transfer.statusesThatKeepMethod.insert(status) }
        }

    /// Who is calling.
    static let callers: [CurlOption] = [
        .value(
            "user", "u", "USER[:PASSWORD]", "who is calling; the password is asked for on a terminal",
            \.transfer.user), .toggle("basic", nil, "Basic for -u, the default", \.transfer.offersBasic),
        .toggle("digest", nil, "Digest for -u", \.transfer.offersDigest),
        .flag("anyauth", nil, "the safest that the server offers for -u") {
            $0.transfer.offersBasic = true
            $0.transfer.offersDigest = true
        },
        .value("oauth2-bearer", nil, "TOKEN", "a Bearer token", \.transfer.bearer),
        .flag(
            "netrc", "n", "names and passwords from ~/.netrc", \.transfer.netrc, .required,
            opposite: TransferOptions.NetrcUse.none),
        .flag(
            "netrc-optional", nil, "as -n, but what the URL says comes first", \.transfer.netrc, .optional,
            opposite: TransferOptions.NetrcUse.none),
        .value("netrc-file", nil, "FILE", "as -n, from this file") {
            $0.transfer.netrcFile = $1
            if $0.transfer.netrc == .none { $0.transfer.netrc = .required }
        },
    ]

    /// Cookies.
    static let cookies: [CurlOption] = [
        .value(
            "cookie", "b", "DATA|FILE",
            "send cookies, 'name=value; …', or read them from a file and keep what comes"
        ) { (group, text) throws(UsageError) in
            if text.begins(with: "@") {
                group.transfer.cookieFiles.append(text.rest(behind: text.startIndex))
            } else if text.first("=") != nil {
                group.transfer.cookies.append(try HeaderLines.checked(text, "-b"))
            } else {
                group.transfer.cookieFiles.append(text)
            }
        },
        .value(
            "cookie-jar", "c", "FILE", "write all cookies to a file in the end; - for standard output",
            \.transfer.cookieOutput),
        .toggle(
            "junk-session-cookies", "j", "leave cookies without an end out of what -b reads",
            \.transfer.dropsSessionCookies),
    ]

    /// Retries.
    static let retries: [CurlOption] = [
        .value(
            "retry", nil, "NUMBER", "how many times a passing failure is tried again",
            \.transfer.retries.count, OptionValues.number),
        .value(
            "retry-delay", nil, "SECONDS", "how long to wait in between; by default 1 s, doubled each time",
            \.transfer.retries.delay, OptionValues.seconds),
        .value(
            "retry-max-time", nil, "SECONDS", "after how long no further try begins",
            \.transfer.retries.timeLimit, OptionValues.seconds),
        .toggle(
            "retry-connrefused", nil, "count a refused connection as a passing failure",
            \.transfer.retries.includesRefusedConnections),
        .toggle(
            "retry-all-errors", nil, "count every failure as a passing one",
            \.transfer.retries.includesAllErrors),
    ]

    /// The cache.
    static let caching: [CurlOption] = [
        .value(
            "cache", nil, "DIR",
            "keep responses in a folder, and answer from it what is fresh there; -k keeps it out",
            \.transfer.cacheFolder, OptionValues.folder),
        .toggle(
            "offline", nil, "answer from --cache alone, however stale; exit code 104 for what is not there",
            \.transfer.isOffline),
        .value(
            "stale-if-error", nil, "SECONDS",
            "what --cache has stands in for an error for so long after it has become stale",
            \.transfer.staleIfError, OptionValues.number),
    ]
}

extension OptionTable {
    /// Options of `get` by their long names, with blanks between them.
    static func named(_ names: String) -> [CurlOption] {
        names.split(separator: " ").compactMap { commandOptions[String($0)] }
    }

    /// What opens a connection, besides its clocks and its pace.
    static let connecting = named(
        "resolve connect-to unix-socket abstract-unix-socket interface ipv4 ipv6 happy-eyeballs-timeout-ms"
            + " no-keepalive keepalive keepalive-time tcp-nodelay")

    /// The options of another command: its own, options of `get` that mean the same to it, and all others of `get`, which it
    /// refuses by name. Those that `get` refuses itself keep their reason.
    /// - Parameters:
    ///   - helps: What the other help says of them where it is another thing.
    ///   - reasons: Why some are refused.
    ///   - others: Why the others are.
    static func options(
        _ own: [CurlOption], _ shared: [CurlOption], helps: [String: String],
        refusing reasons: [(reason: String, options: [CurlOption])], others: String, usage: String
    ) -> CommandOptions {
        var shared = shared
        for index in shared.indices {
            if let help = helps[shared[index].name] { shared[index].help = help }
        }
        let refused = all.map { option in
            if case .refused = option.kind { return option }
            let given = reasons.first { $0.options.contains { $0.name == option.name } }
            return .refused(option.name, option.letter, given?.reason ?? others)
        }
        return CommandOptions(own + shared + refused, usage: usage)
    }
}

extension OptionTable {
    /// Options of curl's whose feature Martlet does not have: refused by name, never ignored.
    static let refused: [CurlOption] = grouped.flatMap { reason, names in
        names.split(separator: " ").map { word in
            let parts = word.split(separator: "/")
            return .refused(String(parts[0]), parts.count > 1 ? parts[1].first : nil, reason)
        }
    }

    /// What is not supported, and the options that ask for it; a letter stands behind a slash.
    private static let grouped: [(String, String)] = [
        (
            "this way to say who is calling is not supported",
            "ntlm ntlm-wb negotiate aws-sigv4 delegation krb login-options sasl-authzid sasl-ir service-name"
        ),
        (
            "this part of proxies is not supported",
            "preproxy proxy1.0 socks4 socks4a" + " socks5-gssapi socks5-gssapi-nec socks5-gssapi-service"
                + " proxy-capath proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile"
                + " proxy-header proxy-key proxy-key-type proxy-negotiate proxy-ntlm proxy-pass"
                + " proxy-pinnedpubkey proxy-service-name proxy-ssl-allow-beast proxy-ssl-auto-client-cert"
                + " proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-tlsv1 haproxy-protocol"
                + " suppress-connect-headers"
        ),
        ("limits on how often transfers begin are not supported", "rate"),
        (
            "this part of writing files is not supported yet",
            "xattr no-clobber remove-on-error create-file-mode"
        ),
        (
            "this output is not supported yet",
            "libcurl trace trace-ascii trace-time stderr"
        ),
        (
            "HTTP/2, HTTP/3 and HTTP/0.9 are not supported",
            "http2 http2-prior-knowledge http3 http3-only http0.9"
        ),
        (
            "TLS older than 1.2 is not supported",
            "tlsv1.0 tlsv1.1 sslv2/2 sslv3/3 ssl ssl-reqd ssl-allow-beast"
        ),
        ("this part of TLS is not supported", unsupportedTLS),
        ("this is not supported", unsupported),
        ("it belongs to another protocol than HTTP", otherProtocols),
    ]

    private static let unsupportedTLS =
        "curves engine egd-file false-start no-npn random-file cert-status ssl-auto-client-cert"
        + " ssl-no-revoke ssl-revoke-best-effort tlsauthtype tlspassword tlsuser alt-svc hsts"

    private static let unsupported =
        "request-target url-query local-port tcp-fastopen tr-encoding proto proto-default"
        + " disallow-username-in-url dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url doh-insecure"
        + " doh-cert-status compressed-ssh crlf metalink styled-output manual/M"

    private static let otherProtocols =
        "append/a disable-eprt disable-epsv ftp-account ftp-alternative-to-user ftp-create-dirs ftp-method ftp-pasv"
        + " ftp-port/P ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control hostpubmd5"
        + " hostpubsha256 list-only/l mail-auth mail-from mail-rcpt mail-rcpt-allowfails pubkey quote/Q"
        + " telnet-option/t tftp-blksize tftp-no-options use-ascii/B"
}
