import ArgumentParser
import FoundationEssentials
import Martlet

struct QueueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue", abstract: "Store requests until they are delivered",
        discussion: """
            “martlet queue add” stores a request in a directory, and “martlet queue run” sends the stored requests: \
            those of one origin or lane in order, each until it is accepted. One command at a time can use the directory.

            EXIT CODES, besides those of get:
            0: all requests were delivered
            2: a mistake on the command line, or an unknown request
            22: a request became a dead letter, uncertain or expired in this run
            26: a file of the queue cannot be read
            103: requests are left for another run
            105: the queue has no room for the request
            106: another command or program uses the directory
            """,
        subcommands: [
            QueueAddCommand.self, QueueListCommand.self, QueueRunCommand.self, QueueRetryCommand.self,
            QueueDropCommand.self,
        ])
}

/// The options of the commands that show and change the contents of a queue.
struct QueueOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Use this directory; by default martlet/queue in $XDG_STATE_HOME or ~/.local/state", valueName: "dir"))
    var queue: String?
    /// The same option for the commands that parse their arguments themselves.
    static let directory = CurlOption.value(
        "--queue DIR", "Use this directory (default: martlet/queue in $XDG_STATE_HOME or ~/.local/state)",
        \.queue.directory)

    /// Runs a function with the idle queue. Reports the events of opening it; throws the exit code of a reported error.
    func open<Value: Sendable>(_ body: (OfflineQueue) async throws(UsageError) -> Value) async throws(ExitStatus)
        -> Value
    {
        do throws(UsageError) {
            return try await QueueDirectory.withIdleQueue(try QueueDirectory.path(queue), global: GlobalOptions(), body)
        } catch { throw await error.printMessage() }
    }
}

struct QueueDropCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "drop", abstract: "Remove requests from the queue")

    @OptionGroup var decision: QueueDecision

    mutating func run() async throws { try await decision.forEach { queue, id in try await queue.drop(id) } }
}

struct QueueRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Send dead or uncertain requests again in the next run, in their original order",
        discussion: "An uncertain request may have taken effect: retry it only if it may take effect again.")

    @OptionGroup var decision: QueueDecision

    mutating func run() async throws { try await decision.forEach { queue, id in try await queue.retry(id) } }
}

enum QueueDirectory {
    /// The directory of a queue: `named`, or by default the user's (XDG Base Directory Specification).
    static func path(_ named: String?, variable: (String) -> String? = { Environment[$0] }) throws(UsageError)
        -> FilePath
    {
        if let named {
            try check(!named.isEmpty && !named.utf8.contains(0), "option --queue: needs a directory")
            return FilePath(named)
        }
        // The specification requires that a relative path is ignored.
        if let directory = variable("XDG_STATE_HOME"), directory.hasPrefix("/") {
            return FilePath(directory).pushing("martlet/queue")
        }
        guard let home = variable("HOME"), home.hasPrefix("/") else {
            throw UsageError("no directory for the queue: use --queue DIR, or set HOME")
        }
        return FilePath(home).pushing(".local/state/martlet/queue")
    }

    static func open(
        _ path: FilePath, session: HTTPSession, options: OfflineQueueOptions, credentials: OfflineCredentials? = nil
    ) async throws(UsageError) -> OfflineQueue {
        do {
            return try await OfflineQueue(session: session, directory: path, options: options, credentials: credentials)
        } catch { throw UsageError(ofQueue: error) }
    }

    /// Opens a queue that sends nothing, runs a function with it, closes it, and reports the events of opening it.
    static func withIdleQueue<Value: Sendable>(
        _ path: FilePath, secretFields: Set<HTTPField.Name> = [], global: GlobalOptions,
        _ body: (OfflineQueue) async throws(UsageError) -> Value
    ) async throws(UsageError) -> Value {
        let queue = try await open(
            path, session: ProgramSessions.shared.make(),
            options: OfflineQueueOptions(secretFields: secretFields, sendsRequests: false))
        let events = queue.events
        let result: Result<Value, UsageError>
        do throws(UsageError) { result = .success(try await body(queue)) } catch { result = .failure(error) }
        await queue.close()
        for await event in events where isFinding(event) && global.printsErrors {
            await Console.report(QueueEventLine(event).text)
        }
        return try result.get()
    }

    /// Whether an event reports something found in the directory, not an effect of the command.
    private static func isFinding(_ event: OfflineEvent) -> Bool {
        switch event {
        case .recordQuarantined, .recordSkipped, .fileFailed, .uncertain, .expired: true
        case .submitted, .attempt, .delivered, .postponed, .dead, .dropped, .drained: false
        }
    }
}

extension UsageError {
    /// The message and the exit code for an error of a queue.
    init(ofQueue error: any Error) {
        guard let error = error as? HTTPError else {
            self.init("\(error)", status: error is CancellationError ? .interrupted : .readFailed)
            return
        }
        // The queue is full.
        self.init(error.message, status: error.code == .limitExceeded ? .diskFull : ExitStatus(error))
    }
}

struct QueueListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Print a line for each request, in the order they were added",
        discussion: """
            A line has the number, state (waiting, dead or uncertain), attempts, expiry, body size, method, URL and \
            [tag]; the lane if it is not that of the origin, the fields that are not stored, and the reason for a dead or \
            uncertain state. With --json each line is an object. A missing directory is an empty queue.
            """)

    @OptionGroup var options: QueueOptions

    @Flag(help: "Print JSON") var json = false

    mutating func run() async throws {
        if let path = try? QueueDirectory.path(options.queue), !FileManager.default.fileExists(atPath: path.string) {
            return
        }
        let entries = try await options.open { queue in await queue.entries }
        let now = Int64(Date().timeIntervalSince1970 * 1000)
        for entry in entries {
            let line = QueueEntryLine(entry, now: now)
            try await Console.print((json ? line.members.jsonLine : line.text) + "\n")
        }
    }
}

struct QueueEntryLine {
    private let entry: OfflineEntry
    /// The current time, in milliseconds since 1970.
    private let now: Int64

    init(_ entry: OfflineEntry, now: Int64) { (self.entry, self.now) = (entry, now) }

    var text: String {
        let columns = [
            ("\(entry.ticket.id)", 4), (state, 9), ("\(entry.attempts) \(entry.attempts == 1 ? "try" : "tries")", 8),
            (expiry, 21), (ProgressText.size(Double(entry.bodyByteCount)), 10),
        ]
        var parts = columns.map { ColumnText.fitted($0, to: max($1, ColumnText.width($0))) }
        parts.append(QueueEventLine.words(entry.ticket))
        if entry.ticket.lane != entry.ticket.url.origin.description {
            parts.append("lane \(TerminalText.escaped(entry.ticket.lane))")
        }
        if !entry.secretFields.isEmpty {
            parts.append("not stored: \(TerminalText.escaped(entry.secretFields.joined(separator: ", ")))")
        }
        if let letter { parts.append(TerminalText.escaped(QueueEventLine.words(letter))) }
        return parts.joined(separator: "  ")
    }

    var members: JSONMembers {
        QueueEventLine.members(entry.ticket) + [
            "state": state, "attempts": entry.attempts, "submitted_ms": entry.submittedAt,
            "expires_ms": entry.expiresAt, "bytes": entry.bodyByteCount, "secret_fields": entry.secretFields,
            "letter": letter.map { QueueEventLine.members($0) },
        ]
    }

    private var state: String { entry.described.state }
    private var letter: OfflineDeadLetter? { entry.described.letter }

    private var expiry: String {
        guard entry.isWaiting else { return "-" }
        let (difference, overflows) = entry.expiresAt.subtractingReportingOverflow(now)
        let left = overflows ? .max : difference
        guard left > 0 else { return "expired" }
        let days = left / 86_400_000
        return days > 1 ? "expires in \(days) d" : "expires in \(ProgressText.time(.milliseconds(left)))"
    }
}

extension OfflineEntry {
    /// The name of the state, and the dead letter of a request that is sent again only on command.
    var described: (state: String, letter: OfflineDeadLetter?) {
        switch state {
        case .waiting, .sending: ("waiting", nil)
        case .dead(let letter): ("dead", letter)
        case .uncertain(let letter): ("uncertain", letter)
        }
    }

    var isWaiting: Bool { described.letter == nil }
}
