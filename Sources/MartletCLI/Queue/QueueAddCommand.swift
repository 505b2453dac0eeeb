import ArgumentParser
import Martlet

/// `martlet queue add`: writes a request down and prints its number.
struct QueueAddCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Write a request down, to be sent later, and print its number.",
        discussion: "“martlet queue add --help” lists the options.")

    @Argument(parsing: .captureForPassthrough, help: "Options and a URL, in any order.")
    var words: [String] = []

    mutating func run() async throws {
        try await QueueAddCommand.run(words)
    }

    /// Carries a command line out.
    /// - Throws: The exit code.
    static func run(_ words: [String]) async throws {
        try await SingleCommand(options: QueueAddOptionTable.commandOptions).run(words) {
            group throws(UsageError) in
            try await add(group)
            return .success
        }
    }

    private static func add(_ group: OptionGroup) async throws(UsageError) {
        let addition = try QueueAddition(group)
        let (ticket, secrets) = try await QueueDirectory.withIdleQueue(
            try QueueDirectory.path(group.queue.directory), secretFields: addition.secretFields,
            global: group.global
        ) { queue throws(UsageError) in
            do {
                let ticket = try await queue.submit(
                    addition.request, body: addition.body, as: addition.submission)
                let entry = await queue.entry(of: ticket.id)
                return (ticket, entry?.secretFields ?? [])
            } catch {
                throw UsageError(ofQueue: error)
            }
        }
        do throws(OutputError) {
            try await Console.write("\(ticket.id)\n")
        } catch {
            throw UsageError("request \(ticket.id) was added; \(error)", status: .writeFailed)
        }
        guard !secrets.isEmpty, !group.global.isSilent else { return }
        await Console.complain(
            "martlet: not stored: \(secrets.joined(separator: ", ")); “martlet queue run” takes what is secret, with -u, "
                + "--oauth2-bearer, -n, -b and -H\n")
    }
}
