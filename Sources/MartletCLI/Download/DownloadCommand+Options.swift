import Martlet

extension DownloadCommand {
    /// Its own options, those it shares with `get`, and the others of `get`, which are rejected by name.
    static let options = CommandOptions(
        OptionTable.rows(
            files + transfers + resumption + retries, shared, helps: helps, refusing: reasons,
            others: "makes no sense for a download"),
        usage: "martlet download [options] URL… | -i FILE", notes: DownloadJSON.help
    ) { $0.redirects.followsRedirects = true }

    private static let files: [CurlOption] = [
        .value("output", "o", "FILE", "the file's name, for one URL; else the server's or the URL's") {
            (group, text) throws(UsageError) in
            try check(
                text != "-",
                "option -o: a download becomes a file; “martlet get URL” writes to standard output")
            try check(!text.isEmpty, "option -o: takes a file")
            group.destinations.append(.named(text))
        },
        .folder(
            "dir", "the directory of the files, created if it is missing; the working directory by default",
            \.download.folder),
        .folder("output-dir", "the same", \.download.folder),
        .list(
            "input-file", "i", "FILE",
            "a list: a URL a line, below it indented out=, checksum=, header= lines; - is standard input",
            \.download.lists
        ) { $0 },
        .flag(
            "fail-if-exists", nil, "fail where the file is there already, the default", \.download.collision,
            .fail),
        .flag(
            "overwrite", nil, "replace a file that is there, once the new one is complete",
            \.download.collision, .overwrite),
        .flag(
            "rename", nil, "name the file “name (1).ext” where it is there already", \.download.collision,
            .rename),
        .toggle(
            "remote-time", "R", "give the file the time of Last-Modified",
            \.download.preservesModificationTime),
        .value("checksum", nil, "NAME=HEX", "what the one URL must come to: sha256, sha512, sha1 or md5") {
            (group, text) throws(UsageError) in
            try check(
                group.download.checksum == nil,
                "option --checksum: goes with one URL; a list has a line for each")
            group.download.checksum = try checksum(text, "option --checksum")
        },
    ]

    private static let transfers: [CurlOption] = [
        .value(
            "segments", nil, "NUMBER", "connections for a file, 1 to 64 at the most; 4 by default",
            \.download.segments, OptionValues.number(in: 1...64)),
        .value(
            "max-files", nil, "NUMBER", "how many files come at once; 3 by default", \.download.fileLimit,
            OptionValues.number(in: 1...256)),
        .value(
            "max-per-host", nil, "NUMBER", "how many of them come from one host; 2 by default",
            \.download.fileLimitPerHost, OptionValues.number(in: 1...256)),
        .size("limit-rate", "bytes a second, all together; K, M, G may follow", \.download.rate),
        .seconds(
            "stall-timeout", nil, "how long a connection may bring nothing; 30 by default",
            \.download.stallTimeout),
        .seconds("max-time", "m", "how long a file may take; what has come is kept", \.totalTimeout),
        .toggle(
            "location", "L", "follow redirects, the default; --no-location does not",
            \.redirects.followsRedirects),
        // An unsuccessful status is always a failure.
        .ignored("fail", "f", hasOpposite: true),
    ]

    private static let resumption: [CurlOption] = [
        .flag(
            "continue", nil, "go on with what an earlier run left, the default", \.download.resumption,
            .automatic),
        .flag("restart", nil, "throw away what an earlier run left", \.download.resumption, .restart),
        .flag(
            "resume-unverified", nil,
            "go on also where nothing but the last 64 KiB tells that the file is the same",
            \.download.resumption, .unverified),
        .folder(
            "state", "a queue in a folder, which goes on where it was; see below", \.download.stateFolder),
    ]

    private static let retries: [CurlOption] = [
        .value(
            "retry", nil, "NUMBER", "how many failures in a row are borne, without a new byte; 5 by default",
            \.download.retryCount, OptionValues.number(in: 0...1_000_000)),
        .seconds(
            "retry-delay", nil, "the longest wait after the first failure, doubled with each; 0.5 by default",
            \.download.retryDelay),
        .ignored("retry-connrefused", hasOpposite: true),
    ]

    /// A checksum, `sha256=…`.
    static func checksum(_ text: String, _ place: String) throws(UsageError) -> Checksum {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first?.lowercased().filter { $0 != "-" } ?? ""
        guard parts.count == 2, let algorithm = DigestSink.Algorithm(rawValue: name) else {
            throw UsageError("\(place): “\(text)” is not sha256=HEX, nor of sha512, sha1 or md5")
        }
        do throws(HTTPError) { return try Checksum(algorithm, hexadecimal: String(parts[1])) } catch {
            throw UsageError("\(place): \(error.message)")
        }
    }

    /// The options with the same meaning as for `get`.
    private static let shared =
        OptionTable.named(
            "url header user-agent referer globoff create-dirs max-filesize location-trusted max-redirs proto-redir"
        ) + OptionTable.callers + OptionTable.cookies + OptionTable.named("retry-max-time connect-timeout")
        + OptionTable.connecting + OptionTable.proxy + OptionTable.security
        + OptionTable.named(
            "http1.1 silent show-error verbose no-buffer disable fail-early progress-bar progress-meter"
                + " no-progress-meter progress version help config")

    /// Their help, if it differs.
    private static let helps: [String: String] = [
        "create-dirs": "create missing directories for -o and out= as well",
        "max-filesize": "refuse larger files; K, M, G may follow",
        "retry-max-time": "after how long no further try of a file begins",
        "connect-timeout": "how long opening a connection may take; 10 by default",
        "silent": "nothing on standard error",
        "verbose": "show what the session does, and every failure that passes",
        "fail-early": "stop at the first file that fails", "progress-bar": "bars; see below",
        "progress": "auto, bar, plain, json or none; see below",
    ]

    /// The reasons for rejecting others.
    private static let reasons: KeyValuePairs = [
        "a download is a GET": "request", "a download is of the whole file": "range",
        "a download is of the file as it is": "compressed raw",
        "is not supported for downloads": "path-as-is",
        "a file gets the server's or the URL's name without it": "remote-name remote-name-all",
        "a file gets the name that the server proposes without it": "remote-header-name",
        "a download goes on by itself; --restart begins anew": "continue-at",
        "a status that is no success is a failure, and its body no file": "fail-with-body",
        "a list (-i) has lines of its own for each URL": "next",
        "files come side by side; --max-files says how many": "parallel parallel-immediate",
        "--max-files says how many files come at once": "parallel-max",
        "--stall-timeout says how long nothing may come": "speed-limit speed-time",
        "downloads are tried again after passing failures alone": "retry-all-errors",
        "what is there already is compared by itself": "time-cond etag-save etag-compare",
        "is of get alone": "har timeline", "downloads pass the cache by": "cache offline stale-if-error",
    ]
}
