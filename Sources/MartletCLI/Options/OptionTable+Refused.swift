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
            "preproxy proxy1.0 socks4 socks4a"
                + " socks5-gssapi socks5-gssapi-nec socks5-gssapi-service"
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
