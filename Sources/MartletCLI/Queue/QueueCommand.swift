import ArgumentParser
import Martlet

/// `martlet queue`: requests that are stored until they are delivered.
struct QueueCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "queue",
        abstract:
            "Store requests until they are delivered",
        discussion: """
            “martlet queue add” writes a request to a folder, and “martlet queue run” sends what is there: the requests to an \
            origin, or in a lane, one after the other, each again until it is taken. One command at a time has the folder.

            EXIT CODES, besides those of get:
            0: done; all was delivered
            2: a mistake on the command line, or there is no such request
            22: a request became a dead letter, uncertain, or too old, in this run
            26: something in the folder could not be read
            103: requests are left, which another run will send
            105: there is no room for the request
            106: another command or program has the folder
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
            "The queue's folder; $XDG_STATE_HOME/martlet/queue or ~/.local/state/martlet/queue by default.",
            valueName: "dir")) var queue: String?

    /// The same for the commands with options like those of `get`.
    static let directory = CurlOption.value(
        "queue", nil, "DIR",
        "the queue's folder; $XDG_STATE_HOME/martlet/queue or ~/.local/state/martlet/queue by default",
        \.queue.directory)

    /// Runs a function with the queue, which sends nothing meanwhile, and reports the events of opening it.
    /// - Throws: The exit code, after the failure was reported.
    func open<Value: Sendable>(
        _ body: (OfflineQueue) async throws(UsageError) -> Value
    ) async throws(ExitStatus) -> Value {
        do throws(UsageError) {
            return try await QueueDirectory.withIdleQueue(
                try QueueDirectory.path(queue), global: GlobalOptions(), body)
        } catch {
            await error.tell()
            throw error.status
        }
    }
}

/// `martlet queue drop`: removes requests.
struct QueueDropCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop", abstract: "Take requests out of the queue, whatever becomes of them.")

    @OptionGroup var decision: QueueDecision

    mutating func run() async throws { try await decision.forEach { queue, id in try await queue.drop(id) } }
}

/// `martlet queue retry`: lets dead and uncertain requests be sent again.
struct QueueRetryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "retry",
        abstract: "Let dead or uncertain requests be sent again, by the next run, in their old places.",
        discussion:
            "An uncertain request may have taken effect: it is for you to know that it has not, or may again."
    )

    @OptionGroup var decision: QueueDecision

    mutating func run() async throws { try await decision.forEach { queue, id in try await queue.retry(id) } }
}

/// The directories of queues.
enum QueueDirectory {
    /// The directory of a queue: the given one, or that of the user (XDG Base Directory Specification).
    /// - Parameter variable: The environment.
    static func path(
        _ named: String?, variable: (String) -> String? = { Environment[$0] }
    ) throws(UsageError) -> FilePath {
        if let named {
            try check(!named.isEmpty && !named.utf8.contains(0), "option --queue: takes a folder")
            return FilePath(named)
        }
        // The specification says that a path that is not absolute is ignored.
        if let folder = variable("XDG_STATE_HOME"), folder.hasPrefix("/") {
            return FilePath(folder).pushing("martlet/queue")
        }
        guard let home = variable("HOME"), home.hasPrefix("/") else {
            throw UsageError("there is no folder for a queue: give --queue DIR, or set HOME")
        }
        return FilePath(home).pushing(".local/state/martlet/queue")
    }

    static func open(
        _ path: FilePath, session: HTTPSession, options: OfflineQueueOptions,
        credentials: OfflineCredentials? = nil
    ) async throws(UsageError) -> OfflineQueue {
        do {
            return try await OfflineQueue(
                session: session, directory: path, options: options, credentials: credentials)
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
        do throws(UsageError) {
            result = .success(try await body(queue))
        } catch {
            result = .failure(error)
        }
        await queue.close()
        for await event in events where isFinding(event) && global.tellsErrors {
            await Console.report(QueueEventText.line(event))
        }
        return try result.get()
    }

    /// Whether an event is not an effect of the command.
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
        // The limit is that of the queue: there is no room.
        self.init(error.message, status: error.code == .limitExceeded ? .diskFull : ExitStatus(error))
    }
}
