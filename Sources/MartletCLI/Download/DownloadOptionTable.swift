import Martlet

/// Every option of `download`: its own, those it shares with `get`, and the others of `get`, which are refused by name.
enum DownloadOptionTable {
    /// The options by name and letter.
    static let commandOptions = CommandOptions(
        own + shared + refused, usage: "martlet download [options] URL… | -i FILE")

    /// What holds where nothing is said.
    static var defaults: OptionGroup {
        var group = OptionGroup()
        group.transfer.followsRedirects = true
        return group
    }

    private static let own: [CurlOption] = files + transfers + resumption + retries

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
        .value("dir", nil, "DIR", "the folder of the files; the working one by default") {
            (group, text) throws(UsageError) in
            guard !text.isEmpty else { throw UsageError("option --dir: takes a folder") }
            group.download.folder = text
        },
        .value("output-dir", nil, "DIR", "the same") { (group, text) throws(UsageError) in
            guard !text.isEmpty else { throw UsageError("option --output-dir: takes a folder") }
            group.download.folder = text
        },
        .value(
            "input-file", "i", "FILE",
            "a list: a URL a line, below it indented out=, checksum=, header= lines; - is standard input"
        ) { $0.download.lists.append($1) },
        .flag("fail-if-exists", nil, "fail where the file is there already, the default") {
            $0.download.collision = .fail
        },
        .flag("overwrite", nil, "replace a file that is there, once the new one is complete") {
            $0.download.collision = .overwrite
        },
        .flag("rename", nil, "name the file “name (1).ext” where it is there already") {
            $0.download.collision = .rename
        },
        .flag("remote-time", "R", "give the file the time of Last-Modified") {
            $0.download.keepsRemoteTime = true
        },
        .value(
            "checksum", nil, "NAME=HEX", "what the one URL must come to: sha256, sha512, sha1 or md5"
        ) { (group, text) throws(UsageError) in
            guard group.download.checksum == nil else {
                throw UsageError("option --checksum: goes with one URL; a list has a line for each")
            }
            group.download.checksum = try DownloadOptionTable.checksum(text, "option --checksum")
        },
    ]

    private static let transfers: [CurlOption] = [
        .value("segments", nil, "NUMBER", "connections for a file, 1 to 64 at the most; 4 by default") {
            (group, text) throws(UsageError) in
            group.download.segments = try OptionValues.number(text, in: 1...64, "--segments")
        },
        .value("max-files", nil, "NUMBER", "how many files come at once; 3 by default") {
            (group, text) throws(UsageError) in
            group.download.fileLimit = try OptionValues.number(
                text, in: DownloadWish.fileLimits, "--max-files")
        },
        .value("max-per-host", nil, "NUMBER", "how many of them come from one host; 2 by default") {
            (group, text) throws(UsageError) in
            group.download.fileLimitPerHost = try OptionValues.number(
                text, in: DownloadWish.fileLimits, "--max-per-host")
        },
        .value("limit-rate", nil, "BYTES", "bytes a second, all together; K, M, G may follow") {
            (group, text) throws(UsageError) in
            group.download.rate = try OptionValues.size(text, "--limit-rate")
        },
        .value("stall-timeout", nil, "SECONDS", "how long a connection may bring nothing; 30 by default") {
            (group, text) throws(UsageError) in
            group.download.stallTimeout = try OptionValues.seconds(text, "--stall-timeout")
        },
        .value("max-time", "m", "SECONDS", "how long a file may take; what has come is kept") {
            (group, text) throws(UsageError) in
            group.transfer.totalTimeout = try OptionValues.seconds(text, "-m")
        },
        .flag("location", "L", "follow redirects, the default; --no-location does not") {
            $0.transfer.followsRedirects = true
        },
        // That a status which is no success is a failure needs no asking for here.
        .flag("fail", "f") { _ in },
    ]

    private static let resumption: [CurlOption] = [
        .flag("continue", nil, "go on with what an earlier run left, the default") {
            $0.download.resumption = .automatic
        },
        .flag("restart", nil, "throw away what an earlier run left") { $0.download.resumption = .restart },
        .flag(
            "resume-unverified", nil,
            "go on also where nothing but the last 64 KiB tells that the file is the same"
        ) { $0.download.resumption = .unverified },
        .value("state", nil, "DIR", "a queue in a folder, which goes on where it was; see below") {
            (group, text) throws(UsageError) in
            guard !text.isEmpty else { throw UsageError("option --state: takes a folder") }
            group.download.stateFolder = text
        },
    ]

    private static let retries: [CurlOption] = [
        .value(
            "retry", nil, "NUMBER", "how many failures in a row are borne, without a new byte; 5 by default"
        ) { (group, text) throws(UsageError) in
            group.download.retryCount = try OptionValues.number(text, in: 0...1_000_000, "--retry")
        },
        .value(
            "retry-delay", nil, "SECONDS",
            "the longest wait after the first failure, doubled with each; 0.5 by default"
        ) { (group, text) throws(UsageError) in
            group.download.retryDelay = try OptionValues.seconds(text, "--retry-delay")
        },
        .flag("retry-connrefused", nil) { _ in },
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
