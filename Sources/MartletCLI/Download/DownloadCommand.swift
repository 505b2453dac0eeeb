import ArgumentParser
import Martlet

/// `martlet download`: downloads files in segments, resumes and verifies them. Options are parsed as for `get`.
struct DownloadCommand: WordsCommand {
    static let path = ["download"]
    static let configuration = makeConfiguration("Download files: segments, resumption, checksums, progress bars")

    @Argument(parsing: .captureForPassthrough, help: "Options and URLs, in any order") var words: [String] = []

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus {
        let group = groups[0]
        var lists: [DownloadListEntry] = []
        for name in group.download.lists {
            let bytes = try InputFile.contents(of: name)
            lists += try DownloadList.entries(of: bytes, named: name, disablesGlobbing: group.disablesGlobbing)
        }
        for name in group.download.metalinks {
            lists += try MetalinkList.entries(of: try InputFile.contents(of: name), named: name)
        }
        let caller = try await CredentialPlan.load(group)
        var plans = try DownloadPlan.plans(for: group, lists: lists, caller: caller)
        let session = ProgramSessions.shared.make(try await configuration(group, plans))
        let form = ProgressStyle(group.global)
        let managed = try await ManagedDownloads.open(group, plans, caller, session)
        if let managed { plans = managed.plans }
        let screen = DownloadScreen(form: form, fileCount: plans.count)
        let runner = DownloadRunner(
            plans: plans, group: group, starter: managed ?? SessionDownloads(session: session), screen: screen,
            limits: managed == nil ? (group.download.fileLimit, group.download.fileLimitPerHost) : nil)
        if let managed { await reportFindings(of: managed, on: screen, form) }
        let warning = managed.map { reportErrors(of: $0, on: screen) }
        // Unstructured: it ends with the session.
        let reporting =
            group.global.isVerbose && form.progress != .json
            ? session.reportEvents { line in
                await screen.say("* \(ColumnText.safe(line, usesUnicode: form.usesUnicode))")
            } : nil
        let status = await runner.run { await SignalHandler.next() }
        await managed?.close()
        reporting?.cancel()
        warning?.cancel()
        if let name = group.cookieOutput, let jar = session.configuration.cookies {
            await CookiePlan.write(jar, to: name, group.global)
        }
        await Console.flush()
        return status
    }

    private static func configuration(_ group: TransferOptions, _ plans: [DownloadPlan]) async throws(UsageError)
        -> SessionConfiguration
    {
        let usesTLS =
            group.redirects.followsRedirects || group.download.stateDirectory != nil || group.download.followsMetalink
            || plans.contains { $0.url.scheme == .https || $0.options.mirrors.contains { $0.scheme == .https } }
        var configuration = try await SessionPlan.configuration(for: group, usesTLS: usesTLS, jar: CookiePlan.makeJar())
        if let rate = group.download.rate { configuration.bandwidth.total.download = .bytesPerSecond(rate) }
        // Six, as in browsers, or those of one file: many files with many segments must not look like an attack.
        configuration.pool.connectionsPerHost = max(6, group.download.options.segments)
        return configuration
    }

    /// Reports stored downloads that are damaged or cannot be read, and an empty queue.
    private static func reportFindings(of managed: ManagedDownloads, on screen: DownloadScreen, _ form: ProgressStyle)
        async
    {
        for event in managed.manager.pastEvents {
            switch event {
            case .itemQuarantined(let path, let reason):
                await screen.warn("a download of the queue was moved to \(path): \(reason)")
            case .itemSkipped(let path, let reason):
                await screen.warn("a download of the queue was ignored: \(path): \(reason)")
            default: break
            }
        }
        if managed.plans.isEmpty, form.isReadableText { await screen.say("the queue is empty") }
    }

    /// Reports failures to write to the directory, which do not stop the downloads.
    private static func reportErrors(of managed: ManagedDownloads, on screen: DownloadScreen) -> Task<Void, Never> {
        let events = managed.manager.events
        return Task {
            for await event in events {
                guard case .fileFailed(let id, let error) = event else { continue }
                await screen.warn("download \(id) of the queue: \(error.message)")
            }
        }
    }

    /// Its own options, those that it shares with `get`, and the others of `get`, which are rejected by name.
    static let options = CommandOptions(
        OptionTable.rows(
            files + transfers + resumption + retries, shared, helps: helps, rejecting: reasons,
            others: "has no meaning for a download"), usage: "martlet download [options] URL… | -i FILE",
        notes: DownloadJSON.help
    ) { $0.redirects.followsRedirects = true }

    private static let files: [CurlOption] = [
        .value("-o, --output FILE", "Set the file's name, for one URL; by default the server's or the URL's") {
            (group, text) throws(UsageError) in
            try check(text != "-", "a download is written to a file; “martlet get URL” writes to standard output")
            group.destinations.append(.named(try OptionValues.text(text, "a file")))
        }, .directory("--dir", "Write files to this directory, by default the working directory; create it", directory),
        .directory("--output-dir", "Same as --dir", directory),
        .list("-i, --input-file FILE", "Read URLs from a list, see below; - for standard input", \.download.lists) {
            $0
        }, .flag("--fail-if-exists", "Fail if the file exists, the default", \.download.options.collision, .fail),
        .flag(
            "--overwrite", "Replace an existing file when the new one is complete", \.download.options.collision,
            .overwrite),
        .flag("--rename", "Use the name “name (1).ext” if the file exists", \.download.options.collision, .rename),
        .toggle(
            "-R, --remote-time", "Set the file's time to Last-Modified", \.download.options.preservesModificationTime),
        .list("--metalink FILE", "Download the files of a Metalink document; - for standard input", metalinks) { $0 },
        .toggle("--follow-metalink", "Download the files of a downloaded Metalink document, the default", follows),
        .value("--mirror URL", "Add another URL of the file of the one URL; repeatable") {
            (group, text) throws(UsageError) in
            let url = try CommandLineURL.completed(text, disablesGlobbing: group.disablesGlobbing)
            group.download.options.mirrors.append(try CommandLineURL.parsed(url))
        },
        .value("--checksum NAME=HEX", "Verify the file of the one URL: sha256, sha512, sha1 or md5") {
            (group, text) throws(UsageError) in
            try check(group.download.options.checksum == nil, "needs exactly one URL; for several, write a list (-i)")
            group.download.options.checksum = try checksum(text)
        },
        .flag(
            "--no-sync", "Do not wait for the disk: after a power cut, complete files may be damaged",
            \.download.options.durability, .unsynced),
    ]

    private static let metalinks: CurlOption.Setting<[String]> = \.download.metalinks
    private static let follows: CurlOption.Setting<Bool> = \.download.followsMetalink
    private static let retry: CurlOption.Setting<Int> = \.download.options.retry.maximumRetries
    private static let perHost: CurlOption.Setting<Int> = \.download.fileLimitPerHost
    private static let directory: CurlOption.Setting<String?> = \.download.directory

    private static let transfers: [CurlOption] = [
        .number("--segments", "Limit the connections of a file; 4 by default", 1...64, \.download.options.segments),
        .number("--max-files", "Limit the concurrent files; 3 by default", 1...256, \.download.fileLimit),
        .number("--max-per-host", "Limit the concurrent files of one host; 2 by default", 1...256, perHost),
        .size("--limit-rate", "Limit the bytes per second of all files together; suffixes K, M, G", \.download.rate),
        .value("--stall-timeout SECONDS", "Reconnect after this time without a byte; 30 by default") {
            (group, text) throws(UsageError) in
            guard let timeout = try OptionValues.seconds(text) else { return }
            group.download.options.stallTimeout = min(max(timeout, .milliseconds(100)), .seconds(86400))
        }, .seconds("-m, --max-time", "Limit the time of each file; its bytes are kept", \.totalTimeout),
        .toggle(
            "-L, --location", "Follow redirects, the default; --no-location does not", \.redirects.followsRedirects),
        // An unsuccessful status is always a failure.
        .ignored("-f, --fail", hasOpposite: true),
    ]

    private static let resumption: [CurlOption] = [
        .flag("--continue", "Resume what an earlier run left, the default", \.download.options.resumption, .automatic),
        .flag("--restart", "Discard what an earlier run left", \.download.options.resumption, .restart),
        .flag(
            "--resume-unverified", "Resume even if only the last 64 KiB show that the file is the same",
            \.download.options.resumption, .unverified),
        .directory("--state", "Keep the downloads in a queue in this directory, see below", \.download.stateDirectory),
    ]

    private static let retries: [CurlOption] = [
        .number("--retry", "Limit the failures without a new byte; 5 by default", 0...1_000_000, retry),
        .value("--retry-delay SECONDS", "Limit the first random delay; the limit then doubles; 0.5 by default") {
            (group, text) throws(UsageError) in
            guard let delay = try OptionValues.seconds(text) else { return }
            group.download.options.retry.initialDelay = delay
            group.download.options.retry.maximumDelay = max(delay, DownloadOptions().retry.maximumDelay)
        }, .ignored("--retry-connrefused", hasOpposite: true),
    ]

    static func checksum(_ text: String) throws(UsageError) -> Checksum {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first?.lowercased().filter { $0 != "-" } ?? ""
        guard parts.count == 2, let algorithm = DigestSink.Algorithm(rawValue: name) else {
            throw UsageError("“\(text)” is not sha256=HEX, sha512=HEX, sha1=HEX or md5=HEX")
        }
        do throws(HTTPError) { return try Checksum(algorithm, hexadecimal: String(parts[1])) } catch {
            throw UsageError(error.message)
        }
    }

    private static let shared =
        OptionTable.named(
            "url header user-agent referer globoff create-dirs max-filesize location-trusted max-redirs proto-redir")
        + OptionTable.callers + OptionTable.cookies + OptionTable.named("retry-max-time connect-timeout")
        + OptionTable.connecting + OptionTable.proxy + OptionTable.security
        + OptionTable.named(
            "http1.1 silent show-error verbose no-buffer disable fail-early progress-bar progress-meter"
                + " no-progress-meter progress version help config")

    private static let helps: [String: String] = [
        "create-dirs": "Create missing directories of -o and out=",
        "max-filesize": "Reject larger files; suffixes K, M, G",
        "retry-max-time": "Start no retry of a file after this time",
        "connect-timeout": "Limit the time to open a connection; 10 by default",
        "silent": "Print nothing to standard error",
        "verbose": "Print the session's events, and every transient failure",
        "fail-early": "Stop at the first file that fails", "progress-bar": "Draw progress bars, see below",
        "progress": "Print progress as auto, bar, plain, json or none, see below",
    ]

    private static let reasons: KeyValuePairs = [
        "a download is a GET": "request", "a download is the whole file": "range",
        "a download is the file without changes": "compressed raw", "is not supported for downloads": "path-as-is",
        "is not needed: a file gets the server's or the URL's name": "remote-name remote-name-all",
        "is not needed: a file gets the name that the server proposes": "remote-header-name",
        "is not needed: a download resumes by default; --restart starts again": "continue-at",
        "an unsuccessful status is a failure, and its body is not a file": "fail-with-body",
        "is not needed: a list (-i) has options for each URL": "next",
        "is not needed: files are downloaded concurrently; --max-files limits them": "parallel parallel-immediate",
        "is not needed: --max-files limits the concurrent files": "parallel-max",
        "is not needed: --stall-timeout limits the time without bytes": "speed-limit speed-time",
        "downloads are retried only after transient failures": "retry-all-errors",
        "is not needed: existing files are compared by default": "time-cond etag-save etag-compare",
        "is supported only by get": "har timeline", "downloads do not use a cache": "cache offline stale-if-error",
    ]
}

extension HTTPSession {
    /// The session without cookies and client certificate, for downloads that get no credentials.
    nonisolated var anonymous: HTTPSession {
        with {
            $0.cookies = nil
            $0.tls.identity = nil
        }
    }

    nonisolated func reportEvents(_ report: @escaping @Sendable (String) async -> Void) -> Task<Void, Never> {
        let events = events
        return Task { for await event in events { await report(event.description) } }
    }
}
