import ArgumentParser
import Martlet

struct QueueRunCommand: WordsCommand {
    static let path = ["queue", "run"]
    static let configuration = makeConfiguration("Send the requests until SIGINT, SIGTERM, or the end of the queue")

    @Argument(parsing: .captureForPassthrough, help: "Options, in any order") var words: [String] = []

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus {
        let group = groups[0]
        if let word = group.urls.first {
            throw UsageError("“\(word)”: “queue run” takes no URL; “martlet queue add URL” adds a request")
        }
        let path = try QueueDirectory.path(group.queue.directory)
        let secrets = try await QueueSecrets(group)
        let jar = CookiePlan.makeJar()
        let session = ProgramSessions.shared.make(
            try await SessionPlan.configuration(for: group, usesTLS: true, jar: jar))
        let origin = try await secrets.origin(ofQueue: path, group.global)
        var options = OfflineQueueOptions()
        options.request = TransferPlan.requestOptions(group)
        options.acceptsRedirectedResults = group.queue.acceptsRedirectedResults
        // Unlike for `get`, the other timeouts are the session's: a silent server must not block its lane forever.
        options.request.timeouts = Timeouts(total: group.totalTimeout)
        if let timeout = group.connectTimeout { options.request.timeouts.connect = timeout }
        let credentials = secrets.apply(to: &options.request, for: origin)
        let queue = try await QueueDirectory.open(path, session: session, options: options, credentials: credentials)
        // Unstructured: the sequence of events ends only with the session.
        let reporting =
            group.global.isVerbose
            ? session.reportEvents { await Console.printError("* \(TerminalText.escaped($0))\n") } : nil
        let status = await QueueRunner(queue: queue, options: group.queue, global: group.global).run {
            await SignalHandler.next()
        }
        reporting?.cancel()
        if let name = group.cookieOutput { await CookiePlan.write(jar, to: name, group.global) }
        return status
    }

    /// The command's own options, and those of `get` for credentials, connections and redirects. Other options of `get`
    /// are rejected.
    static let options = CommandOptions(
        OptionTable.rows(own, shared, helps: helps, rejecting: reasons, others: "has no meaning for a queue"),
        usage: "martlet queue run [options]", notes: QueueEventLine.help
    ) { group in
        group.redirects.followsRedirects = true
        // A POST stays a POST when its resource has moved permanently.
        group.redirects.methodPreservingStatuses = [301]
        group.queue.hasSecretFields = true
    }

    private static let own: [CurlOption] = [
        QueueOptions.directory, .toggle("--until-empty", "End when no request waits", \.queue.endsWhenEmpty),
        .toggle(
            "--accept-redirects", "Accept the page after a 302 or 303 as the response to a POST",
            \.queue.acceptsRedirectedResults),
        .toggle("--json", "Print each event as a line of JSON, see below", \.queue.isJSON),
        .value(
            "-H, --header LINE", "Set a field of every request, for example a secret one; @FILE", OptionValues.header),
    ]

    private static let helps: [String: String] = [
        "user": "Set the credentials, if all requests are for one origin",
        "oauth2-bearer": "Send a bearer token, if all requests are for one origin",
        "cookie": "Send cookies, if all requests are for one origin; or read them from a file",
        "netrc-optional": "Same as --netrc", "location": "Follow redirects, the default; --no-location does not",
        "connect-timeout": "Limit the time to open a connection; 10 by default",
        "max-time": "Limit the time of an attempt", "verbose": "Print the session's events to standard error",
        "silent": "Print nothing to standard error",
    ]

    private static let shared =
        OptionTable.callers + OptionTable.cookies
        + OptionTable.named("location max-redirs proto-redir connect-timeout max-time") + OptionTable.connecting
        + OptionTable.named("expect100-timeout") + OptionTable.proxy + OptionTable.security
        + OptionTable.named("silent show-error verbose disable version help config")

    private static let reasons: KeyValuePairs = [
        "is part of a request: use it with “martlet queue add”": """
        url request head get user-agent referer range path-as-is globoff data data-ascii data-raw data-binary \
        data-urlencode form form-string form-escape upload-file
        """,
        "is not needed: a queue retries by itself":
            "retry retry-delay retry-max-time retry-connrefused retry-all-errors",
        "a queue sends no credentials to other origins": "location-trusted",
    ]
}

/// Prints the events of a queue until the end of the run.
struct QueueRunner: Sendable {
    let queue: OfflineQueue
    let options: QueueCommandOptions
    let global: GlobalOptions

    /// Runs until it is interrupted, an event cannot be printed, or with `--until-empty` no request waits.
    func run(interruption: @escaping @Sendable () async -> Int32?) async -> ExitStatus {
        let (ends, end) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let events = queue.events
        // The three tasks are unstructured: a signal may never arrive, and each task may end the run. The wait for a
        // signal starts before anything is printed, because the reader of the output may send one.
        let waiting = Task.immediate {
            _ = await interruption()
            end.yield()
        }
        let printing = Task { await print(events, end) }
        let draining =
            options.endsWhenEmpty ? Task { [queue] in if (try? await queue.drained) != nil { end.yield() } } : nil
        for await _ in ends { break }
        // From now on a signal ends the program, also while the queue waits for its last responses.
        waiting.cancel()
        await queue.close()
        draining?.cancel()
        let (summary, failure) = await printing.value
        let left = await summary.left(pending: queue.pendingCount, resting: queue.restingCount)
        if let failure {
            if !failure.isClosedPipe, global.printsErrors { await Console.report("\(failure)") }
            return .writeFailed
        }
        let status = summary.status(left: left)
        let line = options.isJSON ? summary.json(left: left, status) : summary.text(left: left)
        return (try? await Console.write(line + "\n")) == nil ? .writeFailed : status
    }

    /// Prints all events. An event that cannot be printed ends the run.
    private func print(_ events: EventSequence<OfflineEvent>, _ end: AsyncStream<Void>.Continuation) async -> (
        QueueSummary, OutputError?
    ) {
        var summary = QueueSummary()
        var failure: OutputError?
        for await event in events {
            summary.note(event)
            guard failure == nil else { continue }
            do throws(OutputError) {
                try await Console.write(
                    (options.isJSON ? QueueEventLine(event).json : QueueEventLine(event).text) + "\n")
            } catch {
                failure = error
                end.yield()
            }
        }
        return (summary, failure)
    }
}

/// The secrets that `queue run` adds to requests, which are stored without them. Credentials of a netrc and cookies of
/// a file are for their hosts. All other secrets are for one origin: they are rejected if requests to several origins
/// wait, because each origin would receive them.
struct QueueSecrets: Sendable {
    private let caller: CredentialPlan
    private let fields: HTTPFields
    private let omitted: Set<HTTPField.Name>
    /// The option whose secret is for one origin, for messages; `nil` without one.
    private let option: String?

    /// Reads the options and the netrc, and prompts for a missing password.
    init(_ options: TransferOptions) async throws(UsageError) {
        var lines = try HeaderLines(options.headerLines)
        for name in [HTTPField.Name.idempotencyKey, .contentLength, .transferEncoding] where lines.fields[name] != nil {
            throw UsageError("option -H: queued requests have their own \(name.rawName)")
        }
        if lines.omitted.contains(.idempotencyKey) {
            throw UsageError("option -H: queued requests keep their Idempotency-Key")
        }
        let hasFields = !lines.fields.isEmpty
        lines.setCookies(options)
        caller = try await CredentialPlan.load(options)
        (fields, omitted) = (lines.fields, lines.omitted)
        if caller.isOneForAll {
            option = options.bearer == nil ? "-u" : "--oauth2-bearer"
        } else {
            option = hasFields ? "-H" : fields.isEmpty ? nil : "-b"
        }
    }

    /// Returns the only origin of the waiting requests; `nil` without requests or secrets. Throws if there are several.
    func origin(ofQueue path: FilePath, _ global: GlobalOptions) async throws(UsageError) -> HTTPURL.Origin? {
        guard let option else { return nil }
        let origins = try await QueueDirectory.withIdleQueue(path, global: global) { queue in
            Set(await queue.entries.filter(\.isWaiting).map(\.ticket.url.origin))
        }
        try check(
            origins.count <= 1,
            "option \(option): requests to \(origins.count) origins wait, and each would receive the secret; "
                + "use -n for credentials by host")
        return origins.first
    }

    /// Adds the secrets only to the requests to an origin. Returns the credentials that add header fields, if any.
    func apply(to options: inout RequestOptions, for origin: HTTPURL.Origin?) -> OfflineCredentials? {
        options.authentication = caller.settings(for: origin)
        options.omittedFields = omitted
        guard !fields.isEmpty else { return nil }
        return OfflineCredentials { [fields] request in
            try check(try HTTPSession.url(of: request).origin == origin, "the secrets are for another origin")
            var request = request
            for field in fields { request.headerFields[field.name] = nil }
            for field in fields { request.headerFields.append(field) }
            return request
        }
    }
}
