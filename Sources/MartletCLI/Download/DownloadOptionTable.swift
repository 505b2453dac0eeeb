import Martlet

/// Every option of `download`: its own, those it shares with `get`, and the others of `get`, which are refused by name.
enum DownloadOptionTable {
    /// The options by name and letter.
    static let commandOptions = OptionTable.options(
        files + transfers + resumption + retries, shared, helps: helps, refusing: reasons,
        others: "makes no sense for a download", usage: "martlet download [options] URL… | -i FILE")

    /// What holds where nothing is said.
    static var defaults: OptionGroup {
        var group = OptionGroup()
        group.transfer.followsRedirects = true
        return group
    }

    private static let files: [CurlOption] = [
        .value("output", "o", "FILE", "the file's name, for one URL; else the server's or the URL's") {
            (group, text) throws(UsageError) in
            guard text != "-" else {
                throw UsageError(
                    "option -o: a download becomes a file; “martlet get URL” writes to standard output")
            }
            guard !text.isEmpty else { throw UsageError("option -o: takes a file") }
            group.transfer.destinations.append(.named(text))
        },
        .value(
            "dir", nil, "DIR", "the folder of the files; the working one by default", \.download.folder,
            OptionValues.folder),
        .value("output-dir", nil, "DIR", "the same", \.download.folder, OptionValues.folder),
        .value(
            "input-file", "i", "FILE",
            "a list: a URL a line, below it indented out=, checksum=, header= lines; - is standard input"
        ) { $0.download.lists.append($1) },
        .flag(
            "fail-if-exists", nil, "fail where the file is there already, the default", \.download.collision,
            .fail),
        .flag(
            "overwrite", nil, "replace a file that is there, once the new one is complete",
            \.download.collision, .overwrite),
        .flag(
            "rename", nil, "name the file “name (1).ext” where it is there already", \.download.collision,
            .rename),
        .toggle("remote-time", "R", "give the file the time of Last-Modified", \.download.keepsRemoteTime),
        .value("checksum", nil, "NAME=HEX", "what the one URL must come to: sha256, sha512, sha1 or md5") {
            (group, text) throws(UsageError) in
            guard group.download.checksum == nil else {
                throw UsageError("option --checksum: goes with one URL; a list has a line for each")
            }
            group.download.checksum = try DownloadOptionTable.checksum(text, "option --checksum")
        },
    ]

    private static let transfers: [CurlOption] = [
        .value(
            "segments", nil, "NUMBER", "connections for a file, 1 to 64 at the most; 4 by default",
            \.download.segments, OptionValues.number(in: 1...64)),
        .value(
            "max-files", nil, "NUMBER", "how many files come at once; 3 by default", \.download.fileLimit,
            OptionValues.number(in: DownloadWish.fileLimits)),
        .value(
            "max-per-host", nil, "NUMBER", "how many of them come from one host; 2 by default",
            \.download.fileLimitPerHost, OptionValues.number(in: DownloadWish.fileLimits)),
        .value(
            "limit-rate", nil, "BYTES", "bytes a second, all together; K, M, G may follow", \.download.rate,
            OptionValues.size),
        .value(
            "stall-timeout", nil, "SECONDS", "how long a connection may bring nothing; 30 by default",
            \.download.stallTimeout, OptionValues.seconds),
        .value(
            "max-time", "m", "SECONDS", "how long a file may take; what has come is kept",
            \.transfer.totalTimeout, OptionValues.seconds),
        .toggle(
            "location", "L", "follow redirects, the default; --no-location does not",
            \.transfer.followsRedirects),
        // That a status which is no success is a failure needs no asking for here.
        .flag("fail", "f", opposite: { _ in }, { _ in }),
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
        .value(
            "state", nil, "DIR", "a queue in a folder, which goes on where it was; see below",
            \.download.stateFolder, OptionValues.folder),
    ]

    private static let retries: [CurlOption] = [
        .value(
            "retry", nil, "NUMBER", "how many failures in a row are borne, without a new byte; 5 by default",
            \.download.retryCount, OptionValues.number(in: 0...1_000_000)),
        .value(
            "retry-delay", nil, "SECONDS",
            "the longest wait after the first failure, doubled with each; 0.5 by default",
            \.download.retryDelay, OptionValues.seconds),
        .flag("retry-connrefused", opposite: { _ in }, { _ in }),
    ]

    /// A checksum, `sha256=…`.
    static func checksum(_ text: String, _ place: String) throws(UsageError) -> Checksum {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first?.lowercased().filter { $0 != "-" } ?? ""
        guard parts.count == 2, let algorithm = DigestSink.Algorithm(rawValue: name) else {
            throw UsageError("\(place): “\(text)” is not sha256=HEX, nor of sha512, sha1 or md5")
        }
        do throws(HTTPError) {
            return try Checksum(algorithm, hexadecimal: String(parts[1]))
        } catch {
            throw UsageError("\(place): \(error.message)")
        }
    }
}

extension DownloadOptionTable {
    /// Options that mean here what they mean to `get`.
    private static let shared =
        OptionTable.named(
            "url header user-agent referer globoff create-dirs max-filesize location-trusted max-redirs proto-redir"
        ) + OptionTable.callers + OptionTable.cookies + OptionTable.named("retry-max-time connect-timeout")
        + OptionTable.connecting + OptionTable.proxy + OptionTable.security
        + OptionTable.named(
            "http1.1 silent show-error verbose no-buffer disable fail-early progress-bar progress-meter"
                + " no-progress-meter progress version help config")

    /// What the help says of them where it is another thing.
    private static let helps: [String: String] = [
        "create-dirs": "make the folders that are missing",
        "max-filesize": "refuse larger files; K, M, G may follow",
        "retry-max-time": "after how long no further try of a file begins",
        "connect-timeout": "how long opening a connection may take; 10 by default",
        "silent": "nothing on standard error",
        "verbose": "show what the session does, and every failure that passes",
        "fail-early": "stop at the first file that fails", "progress-bar": "bars; see below",
        "progress": "auto, bar, plain, json or none; see below",
    ]

    /// Why others are refused.
    private static let reasons: [(reason: String, options: [CurlOption])] = [
        ("a download is a GET", OptionTable.named("request")),
        ("a download is of the whole file", OptionTable.named("range")),
        ("a download is of the file as it is", OptionTable.named("compressed raw")),
        ("is not supported for downloads", OptionTable.named("path-as-is")),
        (
            "a file gets the server's or the URL's name without it",
            OptionTable.named("remote-name remote-name-all")
        ),
        ("a file gets the name that the server proposes without it", OptionTable.named("remote-header-name")),
        ("a download goes on by itself; --restart begins anew", OptionTable.named("continue-at")),
        (
            "a status that is no success is a failure, and its body no file",
            OptionTable.named("fail-with-body")
        ),
        ("a list (-i) has lines of its own for each URL", OptionTable.named("next")),
        (
            "files come side by side; --max-files says how many",
            OptionTable.named("parallel parallel-immediate")
        ),
        ("--max-files says how many files come at once", OptionTable.named("parallel-max")),
        ("--stall-timeout says how long nothing may come", OptionTable.named("speed-limit speed-time")),
        ("downloads are tried again after passing failures alone", OptionTable.named("retry-all-errors")),
        (
            "what is there already is compared by itself",
            OptionTable.named("time-cond etag-save etag-compare")
        ),
        ("is of get alone", OptionTable.named("har timeline")),
        ("downloads pass the cache by", OptionTable.named("cache offline stale-if-error")),
    ]
}
