import ArgumentParser

/// A shell that completes commands and options, from the tables of the program.
enum ShellCompletions: String, CaseIterable, Sendable {
    case bash
    case zsh
    case fish

    /// The script for the shell to read.
    var script: String {
        switch self {
        case .bash: ShellCompletions.bashScript
        // It understands scripts for bash.
        case .zsh: "autoload -U +X bashcompinit && bashcompinit\n" + ShellCompletions.bashScript
        case .fish: ShellCompletions.fishScript
        }
    }

    /// The commands after `martlet queue` and `martlet cache`.
    private static let subcommands =
        [("queue", QueueCommand.configuration), ("cache", CacheCommand.configuration)].map {
            ($0, $1.subcommands.compactMap { $0.configuration.commandName }.joined(separator: " "))
        }

    private static var bashScript: String {
        let commands = MartletCommand.commands.map(\.name).joined(separator: " ")
        let cases = MartletCommand.wordsCommands.map { command in
            "        \(command.path.joined(separator: "-"))) words=\"\(names(command.options))\" ;;"
        }
        let groups = subcommands.map { "        \($0)) words=\"\($1)\" ;;" }
        return """
            _martlet() {
                local current="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}" words=""
                COMPREPLY=()
                case " \(commands) " in
                    *" $command "*) ;;
                    *) command=get ;;
                esac
                if [[ $COMP_CWORD -eq 1 && $current != -* ]]; then
                    words="\(commands)"
                elif [[ $COMP_CWORD -eq 2 && $current != -* ]]; then
                    case "$command" in
            \(groups.joined(separator: "\n"))
                    esac
                elif [[ $current == -* ]]; then
                    case "$command" in
                        queue) command="queue-${COMP_WORDS[2]}" ;;
                    esac
                    case "$command" in
            \(cases.joined(separator: "\n"))
                    esac
                fi
                [[ -z $words ]] || COMPREPLY=($(compgen -W "$words" -- "$current"))
            }
            complete -o default -F _martlet martlet

            """
    }

    private static func names(_ options: CommandOptions) -> String {
        options.listed.map { "--\($0.name)" + ($0.letter.map { " -\($0)" } ?? "") }.joined(separator: " ")
    }

    private static var fishScript: String {
        let commands = MartletCommand.commands
        var lines = commands.map { name, purpose in
            "complete -c martlet -n __fish_use_subcommand -a \(name) -d '\(quoted(purpose))'"
        }
        lines += subcommands.map { "complete -c martlet -n '__fish_seen_subcommand_from \($0)' -a '\($1)'" }
        for command in MartletCommand.wordsCommands {
            let condition =
                command.path == ["get"]
                ? "not __fish_seen_subcommand_from \(commands.dropFirst().map(\.name).joined(separator: " "))"
                : command.path.map { "__fish_seen_subcommand_from \($0)" }.joined(separator: "; and ")
            for option in command.options.listed {
                let letter = option.letter.map { " -s '\(quoted(String($0)))'" } ?? ""
                let value = option.valueName.isEmpty ? "" : " -r"
                lines.append(
                    "complete -c martlet -n '\(condition)' -l \(option.name)\(letter)\(value) -d '\(quoted(option.help))'"
                )
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func quoted(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("'", with: "\\'")
    }
}

/// `martlet completions`: the script that makes a shell complete commands and options.
struct CompletionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "completions",
        abstract:
            "Print a completion script: source <(martlet completions bash)")

    @Argument(help: "bash, zsh or fish.") var shell: String

    mutating func validate() throws {
        guard ShellCompletions(rawValue: shell) != nil else {
            throw ValidationError("“\(shell)” is not one of bash, zsh, fish")
        }
    }

    mutating func run() async throws {
        try await Console.print(ShellCompletions(rawValue: shell)?.script ?? "")
    }
}
