import ArgumentParser

/// A shell that completes commands and options, which are taken from the tables of the program.
enum ShellCompletions: String, CaseIterable, Sendable {
    case bash
    case zsh
    case fish

    /// What the shell is to read.
    var script: String {
        switch self {
        case .bash: ShellCompletions.bashScript
        // It understands what is made for bash, once it is asked to.
        case .zsh: "autoload -U +X bashcompinit && bashcompinit\n" + ShellCompletions.bashScript
        case .fish: ShellCompletions.fishScript
        }
    }

    private static let commandNames = OptionSection.commands.map { $0.name }

    private static var bashScript: String {
        let cases = OptionSection.all.map { section in
            "        \(section.words.joined(separator: "-"))) words=\"\(names(section))\" ;;"
        }
        let groups = OptionSection.subcommands.map { name, words in
            "        \(name)) words=\"\(words.joined(separator: " "))\" ;;"
        }
        return """
            _martlet() {
                local current="${COMP_WORDS[COMP_CWORD]}" command="${COMP_WORDS[1]}" words=""
                COMPREPLY=()
                case " \(commandNames.joined(separator: " ")) " in
                    *" $command "*) ;;
                    *) command=get ;;
                esac
                if [[ $COMP_CWORD -eq 1 && $current != -* ]]; then
                    words="\(commandNames.joined(separator: " "))"
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

    private static func names(_ section: OptionSection) -> String {
        section.listed.flatMap { option in ["--\(option.name)"] + (option.letter.map { ["-\($0)"] } ?? []) }
            .joined(separator: " ")
    }

    private static var fishScript: String {
        let others = commandNames.dropFirst().joined(separator: " ")
        var lines = OptionSection.commands.map { name, purpose in
            "complete -c martlet -n __fish_use_subcommand -a \(name) -d '\(quoted(purpose))'"
        }
        for (name, words) in OptionSection.subcommands {
            lines.append(
                "complete -c martlet -n '__fish_seen_subcommand_from \(name)' -a '\(words.joined(separator: " "))'"
            )
        }
        for section in OptionSection.all {
            let condition =
                section.words == ["get"]
                ? "not __fish_seen_subcommand_from \(others)"
                : section.words.map { "__fish_seen_subcommand_from \($0)" }.joined(separator: "; and ")
            for option in section.listed {
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

/// `martlet completions`: what a shell is told, so that it completes commands and options.
struct CompletionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "completions",
        abstract:
            "Print what makes a shell complete commands and options: source <(martlet completions bash).")

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
