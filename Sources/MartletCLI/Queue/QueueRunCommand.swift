import ArgumentParser
import Martlet

/// `martlet queue run`: sends the requests of a queue.
struct QueueRunCommand: WordsCommand {
    static let path = ["queue", "run"]
    static let configuration = makeConfiguration(
        "Send what is there, until SIGINT or SIGTERM, or until nothing is left to send.")

    @Argument(parsing: .captureForPassthrough, help: "Options, in any order.") var words: [String] = []

    static func run(_ groups: [TransferOptions]) async throws(UsageError) -> ExitStatus {
        let group = groups[0]
        if let word = group.urls.first {
            throw UsageError("“\(word)”: a queue sends what is in it; “martlet queue add” takes a URL")
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
        // A silent server must not block its lane forever.
        let timeouts = Timeouts()
        options.request.timeouts = Timeouts(
            connect: group.connectTimeout ?? timeouts.connect, head: timeouts.head,
            idle: timeouts.idle, total: group.totalTimeout)
        let credentials = secrets.apply(to: &options.request, for: origin)
        let queue = try await QueueDirectory.open(
            path, session: session, options: options, credentials: credentials)
        // Unstructured: it ends with the session.
        let telling =
            group.global.isVerbose
            ? session.tellEvents { await Console.complain("* \(TerminalText.escaped($0))\n") } : nil
        let status = await QueueRunner(queue: queue, options: group.queue, global: group.global).run {
            await SignalHandler.next()
        }
        telling?.cancel()
        if let name = group.cookieOutput { await CookiePlan.write(jar, to: name, group.global) }
        return status
    }
}

extension QueueRunCommand {
    /// Its own options, those of `get` for credentials, connections and redirects, and the others of `get`, which are
    /// rejected by name.
    static let options = CommandOptions(
        OptionTable.rows(own, shared, helps: helps, refusing: reasons, others: "makes no sense for a queue"),
        usage: "martlet queue run [options]", notes: QueueEventJSON.help
    ) { group in
        group.redirects.followsRedirects = true
        // A POST stays one where its resource has moved permanently.
        group.redirects.methodPreservingStatuses = [301]
        group.queue.hasSecretFields = true
    }

    private static let own: [CurlOption] = [
        QueueOptions.directory,
        .flag("until-empty", nil, "end when nothing waits any more", \.queue.endsWhenEmpty),
        .flag(
            "accept-redirects", nil,
            "count the page to which a 302 or 303 leads after a POST as its response; else the POST was not delivered",
            \.queue.acceptsRedirectedResults),
        .flag("json", nil, "print each event as a JSON object on a line; see below", \.queue.isJSON),
        .value(
            "header", "H", "LINE",
            "a field for every request, in place of what it has, such as a secret one; @FILE",
            OptionValues.header),
    ]

    private static let helps: [String: String] = [
        "user":
            "who is calling, where all that waits goes to one origin; the password is asked for on a terminal",
        "oauth2-bearer": "a Bearer token, where all that waits goes to one origin",
        "cookie": "send cookies, where all that waits goes to one origin; or read them from a file",
        "netrc-optional": "the same", "location": "follow redirects, the default; --no-location does not",
        "connect-timeout": "how long opening a connection may take; 10 by default",
        "max-time": "how long a try may take", "verbose": "show what the session does, on standard error",
        "silent": "nothing on standard error",
    ]

    private static let shared =
        OptionTable.callers + OptionTable.cookies
        + OptionTable.named("location max-redirs proto-redir connect-timeout max-time")
        + OptionTable.connecting + OptionTable.named("expect100-timeout") + OptionTable.proxy
        + OptionTable.security + OptionTable.named("silent show-error verbose disable version help config")

    private static let reasons: KeyValuePairs = [
        "is part of a request; “martlet queue add” takes it": """
        url request head get user-agent referer range path-as-is globoff data data-ascii data-raw data-binary \
        data-urlencode form form-string form-escape upload-file
        """,
        "a queue tries again by itself":
            "retry retry-delay retry-max-time retry-connrefused retry-all-errors",
        "requests of a queue take no credentials wherever they are led": "location-trusted",
    ]
}

/// Prints the events of a queue until the end of the run.
struct QueueRunner: Sendable {
    let queue: OfflineQueue
    let options: QueueCommandOptions
    let global: GlobalOptions

    /// Runs until it is interrupted, or an event cannot be printed, or with `--until-empty` no request waits any more; then
    /// closes the queue.
    /// - Parameter interruption: Returns when the run is interrupted.
    /// - Returns: The exit code.
    func run(interruption: @escaping @Sendable () async -> Int32) async -> ExitStatus {
        let (ends, end) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let events = queue.events
        // Unstructured, all three: a signal may never come, and each of them may end the others.
        // A signal is waited for before anything is printed, since the reader of the output may send one.
        let waiting = Task.immediate {
            _ = await interruption()
            end.yield()
        }
        let printing = Task { await print(events, end) }
        let draining =
            options.endsWhenEmpty
            ? Task { [queue] in if (try? await queue.drained) != nil { end.yield() } } : nil
        for await _ in ends { break }
        await queue.close()
        draining?.cancel()
        waiting.cancel()
        let (tally, failure) = await printing.value
        let left = await tally.left(pending: queue.pendingCount, resting: queue.restingCount)
        if let failure {
            if !failure.isClosedPipe, global.tellsErrors { await Console.report("\(failure)") }
            return .writeFailed
        }
        let status = tally.status(left: left)
        let line = options.isJSON ? tally.json(left: left, status) : tally.text(left: left)
        return (try? await Console.write(line + "\n")) == nil ? .writeFailed : status
    }

    /// Prints all events. One that cannot be printed ends the run.
    private func print(
        _ events: EventSequence<OfflineEvent>, _ end: AsyncStream<Void>.Continuation
    ) async -> (QueueSummary, OutputError?) {
        var tally = QueueSummary()
        var failure: OutputError?
        for await event in events {
            tally.note(event)
            guard failure == nil else { continue }
            do throws(OutputError) {
                try await Console.write(
                    (options.isJSON ? QueueEventJSON.line(event) : QueueEventText.line(event)) + "\n")
            } catch {
                failure = error
                end.yield()
            }
        }
        return (tally, failure)
    }
}
