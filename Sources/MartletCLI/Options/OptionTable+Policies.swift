import Martlet

extension OptionTable {
    static let redirects: [CurlOption] =
        [
            .toggle("location", "L", "follow redirects", \.redirects.followsRedirects),
            .flag(
                "location-trusted", nil, "-L, and send credentials wherever it leads",
                opposite: {
                    ($0.redirects.followsRedirects, $0.redirects.sendsCredentialsCrossOrigin) = (false, false)
                }
            ) { ($0.redirects.followsRedirects, $0.redirects.sendsCredentialsCrossOrigin) = (true, true) },
            .value(
                "max-redirs", nil, "NUMBER",
                "how many redirects are followed; 50 by default, -1 for any number", \.redirects.limit
            ) { (text, option) throws(UsageError) in
                if text == "-1" { return .max }
                return try OptionValues.number(text, option)
            },
            .value(
                "proto-redir", nil, "LIST",
                "schemes that redirects may lead to, as =https or -http; both by default"
            ) { (group, text) throws(UsageError) in
                group.redirects.schemes = try SchemeList.applying(
                    text, to: group.redirects.schemes, "option --proto-redir")
            },
        ]
        + [301, 302, 303].map { status in
            .flag(
                "post\(status)", nil, "keep POST after a \(status)",
                opposite: { $0.redirects.methodPreservingStatuses.remove(status) }
            ) { $0.redirects.methodPreservingStatuses.insert(status) }
        }

    static let callers: [CurlOption] = [
        .value(
            "user", "u", "USER[:PASSWORD]", "who is calling; the password is asked for on a terminal", \.user),
        .toggle("basic", nil, "Basic for -u, the default", \.offersBasic),
        .toggle("digest", nil, "Digest for -u", \.offersDigest),
        .flag("anyauth", nil, "the safest that the server offers for -u") {
            ($0.offersBasic, $0.offersDigest) = (true, true)
        },
        .value("oauth2-bearer", nil, "TOKEN", "a Bearer token", \.bearer),
        .flag(
            "netrc", "n", "names and passwords from ~/.netrc", \.netrc, .required,
            opposite: TransferOptions.NetrcUse.none),
        .flag(
            "netrc-optional", nil, "as -n, but what the URL says comes first", \.netrc, .optional,
            opposite: TransferOptions.NetrcUse.none),
        .value("netrc-file", nil, "FILE", "as -n, from this file") {
            $0.netrcFile = $1
            if $0.netrc == .none { $0.netrc = .required }
        },
    ]

    static let cookies: [CurlOption] = [
        .value(
            "cookie", "b", "DATA|FILE",
            "send cookies, 'name=value; …', or read them from a file and keep what comes"
        ) { (group, text) throws(UsageError) in
            if text.begins(with: "@") {
                group.cookieFiles.append(text.rest(behind: text.startIndex))
            } else if text.first("=") != nil {
                group.cookies.append(try HeaderLines.checked(text, "-b"))
            } else {
                group.cookieFiles.append(text)
            }
        },
        .value(
            "cookie-jar", "c", "FILE", "write all cookies to a file in the end; - for standard output",
            \.cookieOutput),
        .toggle(
            "junk-session-cookies", "j", "leave cookies without an end out of what -b reads",
            \.dropsSessionCookies),
    ]

    static let retries: [CurlOption] = [
        .value(
            "retry", nil, "NUMBER", "how many times a passing failure is tried again",
            \.retries.count, OptionValues.number),
        .seconds(
            "retry-delay", nil, "how long to wait in between; by default 1 s, doubled each time",
            \.retries.delay),
        .seconds("retry-max-time", nil, "after how long no further try begins", \.retries.timeLimit),
        .toggle(
            "retry-connrefused", nil, "count a refused connection as a passing failure",
            \.retries.includesRefusedConnections),
        .toggle("retry-all-errors", nil, "count every failure as a passing one", \.retries.includesAllErrors),
    ]

    static let caching: [CurlOption] = [
        .folder(
            "cache", "keep responses in a folder, and answer from it what is fresh there; -k keeps it out",
            \.cacheFolder),
        .toggle(
            "offline", nil, "answer from --cache alone, however stale; exit code 104 for what is not there",
            \.isOffline),
        .value(
            "stale-if-error", nil, "SECONDS",
            "what --cache has stands in for an error for so long after it has become stale",
            \.staleIfError, OptionValues.number),
    ]
}

extension OptionTable {
    /// Options of `get` by their long names, separated by spaces.
    static func named(_ names: String) -> [CurlOption] {
        names.split(separator: " ").compactMap { GetCommand.options[String($0)] }
    }

    /// The options of opening a connection, except for timeouts and rates.
    static let connecting = named(
        "resolve connect-to unix-socket abstract-unix-socket interface ipv4 ipv6 happy-eyeballs-timeout-ms"
            + " no-keepalive keepalive keepalive-time tcp-nodelay")

    /// The options of another command: its own, options of `get` with the same meaning, and all others of `get`, which are
    /// rejected by name. The options that `get` rejects itself keep their reason.
    /// - Parameters:
    ///   - helps: The help of shared options, where it differs from that of `get`.
    ///   - reasons: The reasons for rejecting options, by their long names, separated by spaces.
    ///   - others: The reason for rejecting the rest.
    static func rows(
        _ own: [CurlOption], _ shared: [CurlOption], helps: [String: String],
        refusing reasons: KeyValuePairs<String, String>, others: String
    ) -> [CurlOption] {
        let shared = shared.map { option in
            var option = option
            option.help = helps[option.name] ?? option.help
            return option
        }
        let reasons = reasons.map { (reason: $0, names: $1.split(separator: " ")) }
        let refused = all.map { option in
            if case .refused = option.kind { return option }
            let reason = reasons.first { $0.names.contains { $0 == option.name } }?.reason
            return .refused(option.name, option.letter, reason ?? others)
        }
        return own + shared + refused
    }
}

extension OptionTable {
    /// Options of curl for features that Martlet does not have: rejected by name, never ignored.
    static let refused: [CurlOption] = grouped.flatMap { reason, names in
        names.split(separator: " ").map { word in
            let parts = word.split(separator: "/")
            return .refused(String(parts[0]), parts.count > 1 ? parts[1].first : nil, reason)
        }
    }

    /// The reasons, and the options that are rejected for each; a letter follows a slash.
    private static let grouped: KeyValuePairs = [
        "this way to say who is calling is not supported":
            "ntlm ntlm-wb negotiate aws-sigv4 delegation krb login-options sasl-authzid sasl-ir service-name",
        "this part of proxies is not supported": """
        preproxy proxy1.0 socks4 socks4a socks5-gssapi socks5-gssapi-nec socks5-gssapi-service proxy-capath \
        proxy-cert proxy-cert-type proxy-ciphers proxy-crlfile proxy-header proxy-key proxy-key-type \
        proxy-negotiate proxy-ntlm proxy-pass proxy-pinnedpubkey proxy-service-name proxy-ssl-allow-beast \
        proxy-ssl-auto-client-cert proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser \
        proxy-tlsv1 haproxy-protocol suppress-connect-headers
        """,
        "limits on how often transfers begin are not supported": "rate",
        "this part of writing files is not supported yet":
            "xattr no-clobber remove-on-error create-file-mode",
        "this output is not supported yet": "libcurl trace trace-ascii trace-time stderr",
        "HTTP/2, HTTP/3 and HTTP/0.9 are not supported":
            "http2 http2-prior-knowledge http3 http3-only http0.9",
        "TLS older than 1.2 is not supported": "tlsv1.0 tlsv1.1 sslv2/2 sslv3/3 ssl ssl-reqd ssl-allow-beast",
        "this part of TLS is not supported": """
        curves engine egd-file false-start no-npn random-file cert-status ssl-auto-client-cert ssl-no-revoke \
        ssl-revoke-best-effort tlsauthtype tlspassword tlsuser alt-svc hsts
        """,
        "this is not supported": """
        request-target url-query local-port tcp-fastopen tr-encoding proto proto-default disallow-username-in-url \
        dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url doh-insecure doh-cert-status compressed-ssh \
        crlf metalink styled-output manual/M
        """,
        "it belongs to another protocol than HTTP": """
        append/a disable-eprt disable-epsv ftp-account ftp-alternative-to-user ftp-create-dirs ftp-method ftp-pasv \
        ftp-port/P ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-ccc-mode ftp-ssl-control hostpubmd5 hostpubsha256 \
        list-only/l mail-auth mail-from mail-rcpt mail-rcpt-allowfails pubkey quote/Q telnet-option/t tftp-blksize \
        tftp-no-options use-ascii/B
        """,
    ]
}
