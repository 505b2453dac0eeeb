import ArgumentParser
import Glibc
import Martlet
import MartletDemo

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

    /// The commands that read their words themselves, but for `get`, which needs no name.
    private static let wordsCommands: [(path: [String], command: any WordsCommand.Type)] = [
        (["download"], DownloadCommand.self), (["queue", "add"], QueueAddCommand.self),
        (["queue", "run"], QueueRunCommand.self),
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
            if let (path, command) = wordsCommands.first(where: { words.starts(with: $0.path) }) {
                try await command.run(Array(words.dropFirst(path.count)))
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
        } catch let status as ExitStatus { return status } catch {
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

/// The first word of a command line, which may be a mistyped name of a command.
enum CommandName {
    /// The command that a word most likely means; `nil` when it is a URL or an option.
    ///
    /// Without a command, `martlet WORD` fetches `http://WORD/`. A word of letters alone that is one or two mistakes away from
    /// a command's name is taken for that, not for a host.
    static func suggestion(for word: String, among names: [String]) -> String? {
        guard !word.isEmpty, word.utf8.allSatisfy({ (97...122).contains($0 | 0x20) || $0 == 0x2D }),
            word.first != "-"
        else { return nil }
        let distances = names.map {
            (name: $0, distance: distance(Array(word.lowercased().utf8), Array($0.utf8)))
        }
        return distances.filter { $0.distance <= ($0.name.utf8.count > 4 ? 2 : 1) }
            .min { $0.distance < $1.distance }?.name
    }

    /// How many letters must be added, left out, replaced or swapped with their neighbour to make one word of another.
    private static func distance(_ word: [UInt8], _ name: [UInt8]) -> Int {
        guard abs(word.count - name.count) <= 2 else { return .max }
        var beforeLast: [Int] = []
        var last = Array(0...name.count)
        for (row, letter) in word.enumerated() {
            var next = [row + 1]
            for (column, other) in name.enumerated() {
                var best = min(
                    next[column] + 1, last[column + 1] + 1, last[column] + (letter == other ? 0 : 1))
                if row > 0, column > 0, letter == name[column - 1], other == word[row - 1] {
                    best = min(best, beforeLast[column - 1] + 1)
                }
                next.append(best)
            }
            (beforeLast, last) = (last, next)
        }
        return last[name.count]
    }
}

/// The environment variables of the process.
enum Environment {
    /// A variable's value; `nil` when it is not set.
    static subscript(name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(cString: value)
    }

    /// Whether the locale speaks UTF-8.
    static var speaksUTF8: Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { self[$0] }.first { !$0.isEmpty }
        let name = locale?.lowercased() ?? ""
        return name.contains("utf-8") || name.contains("utf8")
    }
}

/// `martlet demo`: the main uses of Martlet, against an origin of its own.
struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "Start an origin with TLS on this machine, use each feature once, and print what happened.")

    mutating func run() async throws {
        do {
            let hasPassed = try await Demo.run(makeSession: { ProgramSessions.shared.make($0) }) { text in
                try? await Console.write(text)
            }
            guard hasPassed else { throw ExitStatus(code: 1) }
        } catch let status as ExitStatus { throw status } catch {
            await Console.complain("martlet: the demo could not begin: \(error)\n")
            throw ExitStatus(code: 1)
        }
    }
}
