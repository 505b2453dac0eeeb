import ArgumentParser
import Martlet

/// `martlet queue run`: sends what is in a queue.
struct QueueRunCommand: WordsCommand {
    static let configuration = CommandConfiguration(
        words: "queue run",
        abstract: "Send what is there, until SIGINT or SIGTERM, or until nothing is left to send.")

    @Argument(parsing: .captureForPassthrough, help: "Options, in any order.") var words: [String] = []

    static func run(_ words: [String]) async throws {
        try await CommandWords(
            options: QueueRunOptionTable.commandOptions, defaults: QueueRunOptionTable.defaults,
            notes: QueueEventJSON.help
        ).run(words) { group in
            // Whatever is given here is what was not to be stored.
            group.queue.secretNames = Set(
                group.transfer.headerLines.map { $0.prefix { $0 != ":" && $0 != ";" }.lowercased() })
        } _: { group throws(UsageError) in
            try await status(of: group)
        }
    }

    private static func status(of group: OptionGroup) async throws(UsageError) -> ExitStatus {
        if let word = group.transfer.urls.first {
            throw UsageError("“\(word)”: a queue sends what is in it; “martlet queue add” takes a URL")
        }
        let path = try QueueDirectory.path(group.queue.directory)
        let secrets = try await QueueSecrets(group.transfer)
        let jar = CookiePlan.makeJar()
        let session = ProgramSessions.shared.make(
            try await SessionPlan.configuration(for: group.transfer, group.global, usesTLS: true, jar: jar))
        let origin = try await secrets.origin(ofQueue: path, group.global)
        var options = OfflineQueueOptions()
        options.request = TransferPlan.requestOptions(group.transfer)
        options.acceptsRedirectedResults = group.queue.acceptsRedirectedResults
        // A server that says nothing must not hold up its lane for ever, which nobody watches.
        let timeouts = Timeouts()
        options.request.timeouts = Timeouts(
            connect: group.transfer.connectTimeout ?? timeouts.connect, head: timeouts.head,
            idle: timeouts.idle, total: group.transfer.totalTimeout)
        let credentials = secrets.apply(to: &options.request, for: origin)
        let queue = try await QueueDirectory.open(
            path, session: session, options: options, credentials: credentials)
        // Unstructured: it ends with the session.
        let telling = group.global.isVerbose ? tellEvents(of: session) : nil
        let status = await QueueRunner(queue: queue, wish: group.queue, global: group.global).run {
            await Interrupts.next()
        }
        telling?.cancel()
        if let name = group.transfer.cookieOutput { await CookiePlan.write(jar, to: name, group.global) }
        return status
    }

    /// `-v`: what the session does, a line each.
    private static func tellEvents(of session: HTTPSession) -> Task<Void, Never> {
        let events = session.events
        return Task {
            for await event in events {
                await Console.complain("* \(TerminalText.escaped(event.description))\n")
            }
        }
    }
}

/// Every option of `queue run`: its own, those of `get` for credentials, connections and redirects, and the others of `get`,
/// which are refused by name.
enum QueueRunOptionTable {
    /// The options by name and letter.
    static let commandOptions = OptionTable.options(
        own, shared, helps: helps, refusing: reasons, others: "makes no sense for a queue",
        usage: "martlet queue run [options]")

    /// What holds where nothing is said.
    static var defaults: OptionGroup {
        var group = OptionGroup()
        group.transfer.followsRedirects = true
        // What is told goes on to where it belongs.
        group.transfer.statusesThatKeepMethod = [301]
        return group
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

    private static let reasons: [(reason: String, options: [CurlOption])] = [
        (
            "is part of a request; “martlet queue add” takes it",
            OptionTable.named(
                "url request head get user-agent referer range path-as-is globoff data data-ascii data-raw"
                    + " data-binary data-urlencode form form-string form-escape upload-file")
        ),
        ("a queue tries again by itself", OptionTable.retries),
        (
            "requests of a queue take no credentials wherever they are led",
            OptionTable.named("location-trusted")
        ),
    ]
}

/// Prints what happens in a queue, until it is to end.
struct QueueRunner: Sendable {
    /// The queue, which sends.
    let queue: OfflineQueue
    /// When it ends, and how events are printed.
    let wish: QueueWish
    /// What is told on standard error.
    let global: GlobalOptions

    /// Runs until it is interrupted, or nothing waits any more where that is the end, or what happens cannot be printed; then
    /// closes the queue.
    /// - Parameter interruption: Returns when it is to end.
    /// - Returns: What the program exits with.
    func run(interruption: @escaping @Sendable () async -> Int32) async -> ExitStatus {
        let (ends, end) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let events = queue.events
        // Unstructured, all three: a signal may never come, and each of them may be the end of the others.
        // A signal is waited for before anything is printed, since who reads it may send one.
        let waiting = Task.immediate {
            _ = await interruption()
            end.yield()
        }
        let printing = Task { await print(events, end) }
        let draining =
            wish.endsWhenEmpty
            ? Task { [queue] in if (try? await queue.drained) != nil { end.yield() } } : nil
        for await _ in ends { break }
        await queue.close()
        draining?.cancel()
        waiting.cancel()
        let (tally, failure) = await printing.value
        let left = await tally.left(pending: queue.pendingCount, resting: queue.restingCount)
        if let failure {
            if !failure.isClosedPipe, global.tellsErrors { await Console.complain("martlet: \(failure)\n") }
            return .writeFailed
        }
        let status = tally.status(left: left)
        let line = wish.isJSON ? tally.json(left: left, status) : tally.text(left: left)
        return (try? await Console.write(line + "\n")) == nil ? .writeFailed : status
    }

    /// Prints events to their end. One that cannot be printed is the end of the run.
    private func print(
        _ events: EventSequence<OfflineEvent>, _ end: AsyncStream<Void>.Continuation
    ) async -> (QueueTally, OutputError?) {
        var tally = QueueTally()
        var failure: OutputError?
        for await event in events {
            tally.note(event)
            guard failure == nil else { continue }
            do throws(OutputError) {
                try await Console.write(
                    (wish.isJSON ? QueueEventJSON.line(event) : QueueEventText.line(event)) + "\n")
            } catch {
                failure = error
                end.yield()
            }
        }
        return (tally, failure)
    }
}
