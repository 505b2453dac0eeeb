import ArgumentParser
import Glibc
import Martlet

/// The program: `martlet`.
@main
struct MartletCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "martlet", abstract: "HTTP from the command line, with curl's options.",
        version: "martlet \(martletVersion)", subcommands: subcommands, defaultSubcommand: GetCommand.self)

    private static let subcommands: [any ParsableCommand.Type] = [
        GetCommand.self, DownloadCommand.self, BatchCommand.self, ServeCommand.self, DemoCommand.self,
        CacheCommand.self, QueueCommand.self, NetworkCommand.self, ManualCommand.self,
        CompletionsCommand.self,
    ]

    /// Runs what the command line says, and exits.
    static func main() async {
        StandardDescriptors.open()
        Interrupts.prepare()
        let words = Array(CommandLine.arguments.dropFirst())
        let result = await status(of: words)
        await ProgramSessions.shared.end()
        Glibc.exit(result.code)
    }

    /// Carries a command line out.
    private static func status(of words: [String]) async -> ExitStatus {
        do {
            if words.first == "download" {
                try await DownloadCommand.run(Array(words.dropFirst()))
            } else if words.starts(with: ["queue", "add"]) {
                try await QueueAddCommand.run(Array(words.dropFirst(2)))
            } else if words.starts(with: ["queue", "run"]) {
                try await QueueRunCommand.run(Array(words.dropFirst(2)))
            } else if let getWords = getWords(words) {
                if getWords.count == words.count { try await refuseMistypedCommand(words) }
                try await GetCommand.run(getWords)
            } else {
                var command = try parseAsRoot(words)
                if var command = command as? any AsyncParsableCommand {
                    try await command.run()
                } else {
                    try command.run()
                }
            }
        } catch let status as ExitStatus {
            return status
        } catch {
            // A mistake on the command line of one of our own commands is exit code 2, as everywhere here.
            let message = fullMessage(for: error)
            let isClean = exitCode(for: error) == .success
            let text = message.hasSuffix("\n") ? message : "\(message)\n"
            guard isClean else {
                await Console.complain(text)
                return .usage
            }
            do throws(ExitStatus) {
                try await Console.print(text)
            } catch {
                return error
            }
        }
        return .success
    }

    /// Throws for a first word that looks like a command's name, misspelt: it would be fetched as a host.
    private static func refuseMistypedCommand(_ words: [String]) async throws(ExitStatus) {
        let names = subcommands.compactMap { $0.configuration.commandName }
        guard let first = words.first, let name = CommandName.suggestion(for: first, among: names) else {
            return
        }
        let error = UsageError(
            "“\(first)” is not a command: did you mean “\(name)”? To fetch from a host of that name, write http://\(first)/"
        )
        await error.tell()
        throw error.status
    }

    /// The words for `get`, whose options only it can read; `nil` when another command is meant.
    private static func getWords(_ words: [String]) -> [String]? {
        guard let first = words.first else { return nil }
        if first == "get" { return Array(words.dropFirst()) }
        let others =
            subcommands.map { $0.configuration.commandName ?? "" } + ["help", "--help", "-h", "--version"]
        let isOther =
            others.contains(first) || first.hasPrefix("--generate-completion-script")
            || first.hasPrefix("--experimental")
        return isOther ? nil : words
    }
}
