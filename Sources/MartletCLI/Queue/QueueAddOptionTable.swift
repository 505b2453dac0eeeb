import HTTPTypes
import Martlet

/// Every option of `queue add`: its own, those of `get` that make a request, and the others of `get`, which are refused by
/// name.
enum QueueAddOptionTable {
    /// The options by name and letter.
    static let commandOptions = CommandOptions(
        own + OptionTable.options(sharedNames, helps: helps)
            + OptionTable.refusals(reasons, others: "makes no sense for a request that is sent later"),
        usage: "martlet queue add [options] URL")

    private static let own: [CurlOption] = [
        QueueOptions.directory,
        .value("lane", nil, "NAME", "the line it stands in; that of its origin by default") {
            (group, text) throws(UsageError) in
            guard !text.isEmpty else { throw UsageError("option --lane: takes a name") }
            group.queue.lane = text
        },
        .value("tag", nil, "TEXT", "what it is called in lists and events") { $0.queue.tag = $1 },
        .value(
            "key", nil, "KEY", "its Idempotency-Key; a random one by default where the method needs one"
        ) { (group, text) throws(UsageError) in
            guard !text.isEmpty, text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) else {
                throw UsageError("option --key: takes printable ASCII")
            }
            group.queue.key = .value(text)
        },
        .flag(
            "no-key", nil,
            "no Idempotency-Key: a POST is sent at most once, and reported where that is unclear"
        ) {
            $0.queue.key = .none
        },
        .value("expires", nil, "TIME", "when to give it up, as 7d (the default), 12h, 30m or 90s") {
            (group, text) throws(UsageError) in
            group.queue.expires = try OptionValues.length(text, "--expires")
        },
        .flag("copy", nil, "keep a copy of the file of -T; else it must be the same when it is sent") {
            $0.queue.files = .copy
        },
        .value("secret", nil, "NAME", "a field of -H that is not stored, as Authorization and Cookie are not")
        {
            (group, text) throws(UsageError) in
            guard let name = HTTPField.Name(text) else {
                throw UsageError("option --secret: “\(text)” is not a field name")
            }
            group.queue.secretNames.insert(name.canonicalName)
        },
        .value("cookie", "b", "DATA", "cookies, 'name=value; …'; they are not stored") {
            (group, text) throws(UsageError) in
            guard text.contains("=") else {
                throw UsageError("option -b: a file of cookies is given to “martlet queue run”")
            }
            group.transfer.cookies.append(text)
        },
    ]

    private static let helps: [String: String] = [
        "head": "ask for the head alone",
        "user": "who is calling; it is not stored",
        "oauth2-bearer": "a Bearer token; it is not stored",
        "upload-file": "put a file; - for standard input",
        "silent": "no notes, and no errors",
    ]

    private static let sharedNames =
        "url request header head get user-agent referer range path-as-is globoff"
        + " data data-ascii data-raw data-binary data-urlencode json form form-string form-escape upload-file"
        + " user oauth2-bearer silent show-error disable version help config"

    private static let atRun = "is given to “martlet queue run”, which sends"

    private static let reasons: [String: String] = {
        let names =
            "basic digest anyauth netrc netrc-optional netrc-file cookie-jar junk-session-cookies"
            + " location location-trusted max-redirs proto-redir connect-timeout max-time resolve connect-to"
            + " unix-socket abstract-unix-socket interface ipv4 ipv6 happy-eyeballs-timeout-ms no-keepalive keepalive"
            + " keepalive-time tcp-nodelay expect100-timeout proxy proxy-user proxy-basic proxy-digest proxy-anyauth"
            + " noproxy proxytunnel socks5 socks5-hostname socks5-basic proxy-cacert proxy-insecure insecure cacert"
            + " capath cert cert-type key-type pass pinnedpubkey crlfile tlsv1 tlsv1.2 tlsv1.3 tls-max ciphers"
            + " tls13-ciphers no-alpn no-sessionid verbose"
        var reasons = Dictionary(
            uniqueKeysWithValues: names.split(separator: " ").map { (String($0), atRun) })
        reasons["next"] = "one request is added at a time"
        return reasons
    }()
}
