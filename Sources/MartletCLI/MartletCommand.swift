import ArgumentParser
import Glibc
import Martlet
import MartletDemo

@main struct MartletCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "martlet", abstract: "HTTP from the command line, with the options of curl",
        version: "martlet \(martletVersion)", subcommands: subcommands, defaultSubcommand: GetCommand.self)

    static let subcommands: [any ParsableCommand.Type] = [
        GetCommand.self, DownloadCommand.self, UploadCommand.self, WebSocketCommand.self, BatchCommand.self,
        ServeCommand.self, DemoCommand.self, CacheCommand.self, QueueCommand.self, NetworkCommand.self,
        ManualCommand.self, CompletionsCommand.self,
    ]

    /// The commands that parse their arguments themselves. The first is the default if no command is named.
    static let wordsCommands: [any WordsCommand.Type] = [
        GetCommand.self, DownloadCommand.self, UploadCommand.self, WebSocketCommand.self, QueueAddCommand.self,
        QueueRunCommand.self,
    ]

    static let groups: [any ParsableCommand.Type] = [CacheCommand.self, QueueCommand.self]

    static let commands = subcommands.map {
        (name: $0.configuration.commandName ?? "", purpose: $0.configuration.abstract)
    }

    static func main() async {
        StandardDescriptors.open()
        SignalHandler.prepare()
        let result: ExitStatus
        do throws(UsageError) { result = await status(of: try Environment.arguments()) } catch {
            result = await error.printMessage()
        }
        await ProgramSessions.shared.end()
        Glibc.exit(result.code)
    }

    private static func status(of words: [String]) async -> ExitStatus {
        do {
            if let text = HelpText.text(for: words) {
                try await Console.print(text)
            } else if let error = CommandName.usageError(in: words) {
                return await error.printMessage()
            } else if let command = wordsCommands.first(where: { words.starts(with: $0.path) }) {
                try await command.carryOut(Array(words.dropFirst(command.path.count)))
            } else if let first = words.first, !isCommand(first) {
                try await GetCommand.carryOut(words)
            } else {
                var command = try parseAsRoot(words)
                if var command = command as? any AsyncParsableCommand {
                    try await command.run()
                } else {
                    try command.run()
                }
            }
        } catch let status as ExitStatus { return status } catch {
            // A usage error gives exit code 2 here, as for all commands; ArgumentParser's own code is 64.
            guard exitCode(for: error) == .success else {
                let group = groups.first { $0.configuration.commandName == words.first }
                let names = group?.configuration.subcommands.map { $0.configuration.commandName } ?? []
                let isInGroup = words.count > 1 && names.contains(words[1])
                let command = words.prefix(isInGroup ? 2 : 1).joined(separator: " ")
                return await UsageError("\(message(for: error)); try martlet \(command) --help").printMessage()
            }
            let message = fullMessage(for: error)
            do throws(ExitStatus) { try await Console.print(message.hasSuffix("\n") ? message : "\(message)\n") } catch
            { return error }
        }
        return .success
    }

    /// Whether the first argument is a command or an option of ArgumentParser. Other command lines belong to `get`.
    private static func isCommand(_ word: String) -> Bool {
        (commands.map(\.name) + ["help", "--help", "-h", "--version"]).contains(word)
            || word.hasPrefix("--generate-completion-script") || word.hasPrefix("--experimental")
    }
}

enum CommandName {
    /// Command names of other programs, and the equivalent command lines of this one.
    private static let alternatives = [
        "post": "martlet -d DATA URL", "put": "martlet -T FILE URL", "head": "martlet -I URL",
        "patch": "martlet -X PATCH -d DATA URL", "delete": "martlet -X DELETE URL",
        "options": "martlet -X OPTIONS URL", "fetch": "martlet URL", "version": "martlet --version",
    ]

    /// The error for a misspelled command or subcommand, also after `help`; `nil` if nothing is misspelled.
    static func usageError(in words: [String]) -> UsageError? {
        guard let first = words.first else { return nil }
        let commands = MartletCommand.commands.map(\.name) + ["help"]
        if let group = MartletCommand.groups.first(where: { $0.configuration.commandName == first }), words.count > 1 {
            let names = group.configuration.subcommands.compactMap { $0.configuration.commandName }
            if names.contains(words[1]) { return nil }
            return suggestion(for: words[1], among: names).map { unknown("\(first) \(words[1])", "\(first) \($0)") }
        }
        if first == "help", words.count > 1, !commands.contains(words[1]) {
            return suggestion(for: words[1], among: commands).map { unknown(words[1], $0) }
                ?? UsageError("unknown command “\(words[1])”; “martlet help” lists the commands")
        }
        guard !commands.contains(first),
            let name = alternatives[first.lowercased()] ?? suggestion(for: first, among: commands)
        else { return nil }
        // Without this error, `get` would use the word as a host name.
        var error = unknown(first, name)
        error.description += " To fetch from a host of that name, write http://\(first)/"
        return error
    }

    /// The command name that a word of letters and hyphens probably means; `nil` for other words, URLs and options.
    static func suggestion(for word: String, among names: [String]) -> String? {
        guard word.first != "-", word.utf8.allSatisfy({ (97...122).contains($0 | 0x20) || $0 == 0x2D }) else {
            return nil
        }
        return Spelling.suggestion(for: word, among: names)
    }

    private static func unknown(_ given: String, _ meant: String) -> UsageError {
        UsageError("unknown command “\(given)”; did you mean “\(meant)”?")
    }
}

enum Spelling {
    /// The name most similar to a word: at most two edits away, one for a name of three or four letters, none for a
    /// shorter one.
    static func suggestion(for word: String, among names: [String]) -> String? {
        let letters = Array(word.lowercased().utf8)
        let distances = names.map { (name: $0, distance: distance(letters, Array($0.utf8))) }
        let near = distances.filter { $0.distance <= min(2, ($0.name.utf8.count - 1) / 2) }
        return near.min { $0.distance < $1.distance }?.name
    }

    /// The number of letters to insert, delete, replace or swap with a neighbor to turn one word into the other.
    private static func distance(_ word: [UInt8], _ name: [UInt8]) -> Int {
        guard abs(word.count - name.count) <= 2 else { return .max }
        var beforeLast: [Int] = []
        var last = Array(0...name.count)
        for (row, letter) in word.enumerated() {
            var next = [row + 1]
            for (column, other) in name.enumerated() {
                var best = min(next[column] + 1, last[column + 1] + 1, last[column] + (letter == other ? 0 : 1))
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

enum Environment {
    /// The value of a variable. One that is not UTF-8 counts as missing: repaired, it would name another file.
    static subscript(name: String) -> String? {
        guard let value = unsafe getenv(name) else { return nil }
        return unsafe String(validatingCString: value)
    }

    /// The arguments of the program, without its name. Throws for one that is not UTF-8, which `CommandLine.arguments`
    /// would repair: the program would send other bytes than the given ones, or use another file.
    static func arguments() throws(UsageError) -> [String] {
        var words: [String] = []
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = unsafe CommandLine.unsafeArgv[index] else { break }
            let bytes = unsafe UnsafeBufferPointer(start: argument, count: strlen(argument))
            guard let word = unsafe String(validating: bytes, as: UTF8.self) else {
                throw UsageError("argument \(index) is not UTF-8; to send such bytes, use a file: --data-binary @FILE")
            }
            words.append(word)
        }
        return words
    }

    static var speaksUTF8: Bool {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { self[$0] }.first { !$0.isEmpty }
        let name = locale?.lowercased() ?? ""
        return name.contains("utf-8") || name.contains("utf8")
    }
}

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Run the main features against a local server")

    mutating func run() async throws {
        let hasPassed: Bool
        do {
            hasPassed = try await Demo.run(makeSession: { ProgramSessions.shared.make($0) }) { text in
                try? await Console.write(text)
            }
        } catch { throw await ExitStatus(code: 1).reporting("the demo could not start: \(error)") }
        if !hasPassed { throw ExitStatus(code: 1) }
    }
}
