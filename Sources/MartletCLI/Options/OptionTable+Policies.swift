import Martlet

extension OptionTable {
    /// Redirects.
    static let redirects: [CurlOption] = [
        .flag("location", "L", "follow redirects") { $0.transfer.followsRedirects = true },
        .flag("location-trusted", nil, "-L, and send credentials wherever it leads") {
            $0.transfer.followsRedirects = true
            $0.transfer.trustsOtherOrigins = true
        },
        .value(
            "max-redirs", nil, "NUMBER", "how many redirects are followed; 50 by default, -1 for any number"
        ) {
            (group, text) throws(UsageError) in
            if text == "-1" {
                group.transfer.redirectLimit = nil
            } else {
                group.transfer.redirectLimit = try OptionValues.number(text, "--max-redirs")
            }
        },
        .value(
            "proto-redir", nil, "LIST",
            "schemes that redirects may lead to, as =https or -http; both by default"
        ) {
            (group, text) throws(UsageError) in
            group.transfer.redirectSchemes = try SchemeList.applying(
                text, to: group.transfer.redirectSchemes, "option --proto-redir")
        },
        .flag("post301", nil, "keep POST after a 301") { $0.transfer.statusesThatKeepMethod.insert(301) },
        .flag("post302", nil, "keep POST after a 302") { $0.transfer.statusesThatKeepMethod.insert(302) },
        .flag("post303", nil, "keep POST after a 303") { $0.transfer.statusesThatKeepMethod.insert(303) },
    ]

    /// Who is calling.
    static let callers: [CurlOption] = [
        .value("user", "u", "USER[:PASSWORD]", "who is calling; the password is asked for on a terminal") {
            $0.transfer.user = $1
        },
        .flag("basic", nil, "Basic for -u, the default") { $0.transfer.offersBasic = true },
        .flag("digest", nil, "Digest for -u") { $0.transfer.offersDigest = true },
        .flag("anyauth", nil, "the safest that the server offers for -u") {
            $0.transfer.offersBasic = true
            $0.transfer.offersDigest = true
        },
        .value("oauth2-bearer", nil, "TOKEN", "a Bearer token") { $0.transfer.bearer = $1 },
        .flag("netrc", "n", "names and passwords from ~/.netrc") { $0.transfer.netrc = .required },
        .flag("netrc-optional", nil, "as -n, but what the URL says comes first") {
            $0.transfer.netrc = .optional
        },
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
        ) {
            (group, text) throws(UsageError) in
            if text.begins(with: "@") {
                group.transfer.cookieFiles.append(text.rest(behind: text.startIndex))
            } else if text.first("=") != nil {
                group.transfer.cookies.append(try HeaderLines.checked(text, "-b"))
            } else {
                group.transfer.cookieFiles.append(text)
            }
        },
        .value("cookie-jar", "c", "FILE", "write all cookies to a file in the end; - for standard output") {
            $0.transfer.cookieOutput = $1
        },
        .flag("junk-session-cookies", "j", "leave cookies without an end out of what -b reads") {
            $0.transfer.dropsSessionCookies = true
        },
    ]

    /// Retries.
    static let retries: [CurlOption] = [
        .value("retry", nil, "NUMBER", "how many times a passing failure is tried again") {
            (group, text) throws(UsageError) in
            group.transfer.retries.count = try OptionValues.number(text, "--retry")
        },
        .value(
            "retry-delay", nil, "SECONDS", "how long to wait in between; by default 1 s, doubled each time"
        ) {
            (group, text) throws(UsageError) in
            group.transfer.retries.delay = try OptionValues.seconds(text, "--retry-delay")
        },
        .value("retry-max-time", nil, "SECONDS", "after how long no further try begins") {
            (group, text) throws(UsageError) in
            group.transfer.retries.timeLimit = try OptionValues.seconds(text, "--retry-max-time")
        },
        .flag("retry-connrefused", nil, "count a refused connection as a passing failure") {
            $0.transfer.retries.includesRefusedConnections = true
        },
        .flag("retry-all-errors", nil, "count every failure as a passing one") {
            $0.transfer.retries.includesAllErrors = true
        },
    ]

    /// The cache.
    static let caching: [CurlOption] = [
        .value(
            "cache", nil, "DIR",
            "keep responses in a folder, and answer from it what is fresh there; -k keeps it out"
        ) {
            (group, text) throws(UsageError) in
            guard !text.isEmpty else { throw UsageError("option --cache: takes a folder") }
            group.transfer.cacheFolder = text
        },
        .flag("offline", nil, "answer from --cache alone, however stale; exit code 104 for what is not there")
        {
            $0.transfer.isOffline = true
        },
        .value(
            "stale-if-error", nil, "SECONDS",
            "what --cache has stands in for an error for so long after it has become stale"
        ) {
            (group, text) throws(UsageError) in
            group.transfer.staleIfError = try OptionValues.number(text, "--stale-if-error")
        },
    ]
}
