import ArgumentParser
import Martlet

/// `martlet queue run`: sends what is in a queue.
struct QueueRunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run",
        abstract: "Send what is there, until SIGINT or SIGTERM, or until nothing is left to send.",
        discussion: "“martlet queue run --help” lists the options.")

    @Argument(parsing: .captureForPassthrough, help: "Options, in any order.")
    var words: [String] = []

    mutating func run() async throws {
        try await QueueRunCommand.run(words)
    }

    /// Carries a command line out.
    /// - Throws: The exit code.
    static func run(_ words: [String]) async throws {
        try await SingleCommand(
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
        if !group.global.isSilent { await KeyLogPlan.warn() }
        var configuration = try SessionPlan.configuration(for: group.transfer, usesTLS: true)
        let jar = CookiePlan.makeJar()
        if CookiePlan.isActive(group.transfer) {
            await CookiePlan.fill(jar, for: group.transfer, group.global)
            configuration.cookies = jar
        }
        let session = ProgramSessions.shared.make(configuration)
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
